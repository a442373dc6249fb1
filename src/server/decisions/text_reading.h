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

// The settings that all readings of a causal model's next tokens share.
struct TextReadingConfig {
  const ModelEntry* model = nullptr;  // outlives the reading
  PromptForm prompt = PromptForm::kChat;
  PromptFrame frame;  // of that form
  Request base;       // scheduling fields
  std::string input_field;
  bool want_mass = true;
  bool exact_spelling = false;  // an option is its own text alone, behind a space in plain prompts
};

// Labels of one token each: A, B, ...; 0, 1, ...; yes and no in all spellings that are one token.
class LettersReading final : public QuestionReading {
 public:
  explicit LettersReading(const TextReadingConfig* config) : config_(config) {}
  Result<QuestionReads> Plan(const AskedQuestion& asked) const override;

 private:
  Result<DecisionLabels> FindLabels(const DecisionQuestion& question) const;

  const TextReadingConfig* config_;
  // Labels of questions of one kind, size and digits, which are looked for once.
  mutable std::map<std::tuple<DecisionKind, size_t, std::string>, DecisionLabels> known_;
};

// The options' own texts. Spellings of an option that are one token are added up; an option of
// several tokens is read in the first spelling that the tokenizer can write there.
class WordsReading final : public QuestionReading {
 public:
  explicit WordsReading(const TextReadingConfig* config) : config_(config) {}
  Result<QuestionReads> Plan(const AskedQuestion& asked) const override;

 private:
  const TextReadingConfig* config_;
};

}  // namespace skein
