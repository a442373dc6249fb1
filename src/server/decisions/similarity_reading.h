#pragma once

#include <string>

#include "server/decisions/question_reading.h"
#include "server/model_registry.h"
#include "skein/decision_method.h"

namespace skein {

// How near an option's embedding is to the input's: the cosine times kSimilarityScale stands for a
// logit. PromptForm::kChat embeds an option as its name and description; kQuestion puts the
// question before it, kCue the question's noun. It answers choices and scores, and predicates whose
// yes and no are described.
class SimilarityReading final : public QuestionReading {
 public:
  static constexpr double kSimilarityScale = 20;

  // `model` outlives the reading. `input_field` names the input in messages.
  SimilarityReading(const ModelEntry* model, PromptForm prompt, Request base,
                    std::string input_field)
      : model_(model),
        prompt_(prompt),
        base_(std::move(base)),
        input_field_(std::move(input_field)) {}
  Result<QuestionReads> Plan(const AskedQuestion& asked) const override;

 private:
  const ModelEntry* model_;
  PromptForm prompt_;
  Request base_;
  std::string input_field_;
};

}  // namespace skein
