#pragma once

#include <string>

#include "server/decisions/question_reading.h"
#include "server/model_registry.h"
#include "skein/decision_method.h"

namespace skein {

// Compares the embeddings of the options with the embedding of the input: an option's logit is the
// cosine times kSimilarityScale. PromptForm::kChat embeds an option's name and description;
// kQuestion puts the question before them, kCue the question's noun. Answers choices, scores, and
// predicates whose yes and no are described.
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
