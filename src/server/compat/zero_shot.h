#pragma once

#include <memory>

#include "server/json/json.h"
#include "server/router.h"

namespace skein {

// Starts a zero-shot classification in the form of HuggingFace's endpoints: `body` has `inputs` (a
// text) and `parameters` {candidate_labels, multi_label, hypothesis_template}. The method depends
// on the model:
//
//   classifier with a class "entailment"   each label's hypothesis, read behind the text by the
//                                          head (Yin et al. 2019, "Benchmarking Zero-shot Text
//                                          Classification", section 5.2)
//   chat or decision model                 a choice among the labels; with multi_label one
//                                          predicate for each (docs/decisions.md)
//
// The answer is an array of {label, score}, best first. kUnsupported (param "model") for other
// models.
Status StartZeroShot(const ServerContext& context, const ModelEntry& model, const Json& body,
                     std::shared_ptr<Responder> responder);

}  // namespace skein
