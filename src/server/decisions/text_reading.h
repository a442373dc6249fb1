#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "server/decisions/decision_labels.h"
#include "server/decisions/decision_prompt.h"
#include "server/decisions/option_paths.h"
#include "server/decisions/question_reading.h"
#include "server/model_registry.h"

namespace skein {

// The settings common to all readings of a causal model's next tokens.
struct TextReadingConfig {
  const ModelEntry* model = nullptr;  // outlives the reading
  PromptForm prompt = PromptForm::kChat;
  PromptFrame frame;  // made for `prompt`
  Request base;       // scheduling fields
  std::string input_field;
  bool want_mass = true;
  // Only the option's own text counts, behind a space in plain prompts.
  bool exact_spelling = false;
};

// Reads labels of one token each: A, B, ...; 0, 1, ...; yes and no in all spellings that are one
// token.
class LettersReading final : public QuestionReading {
 public:
  explicit LettersReading(const TextReadingConfig* config) : config_(config) {}
  Result<QuestionReads> Plan(const AskedQuestion& asked) const override;

 private:
  Result<DecisionLabels> FindLabels(const DecisionQuestion& question) const;

  const TextReadingConfig* config_;
  // The labels of questions of one kind, size and set of digits, so that they are looked for once.
  mutable std::map<std::tuple<DecisionKind, size_t, std::string>, DecisionLabels> known_;
};

// Reads the options' own texts. The probabilities of an option's single-token spellings are added.
// An option of several tokens is read in the first spelling that the tokenizer can write behind the
// prompt.
class WordsReading final : public QuestionReading {
 public:
  explicit WordsReading(const TextReadingConfig* config) : config_(config) {}
  Result<QuestionReads> Plan(const AskedQuestion& asked) const override;

 private:
  const TextReadingConfig* config_;
};

}  // namespace skein
