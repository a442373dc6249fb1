#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/model_registry.h"

namespace skein {

// One thing that can be answered. Of a choice, the value; of a score, the level's label (may be
// empty); of a predicate, yes and no.
struct DecisionOption {
  std::string name;
  std::string description;  // empty: none
};

enum class DecisionKind { kPredicate, kChoice, kScore };

// A typed question about an input, whichever route it came by.
struct DecisionQuestion {
  DecisionKind kind = DecisionKind::kPredicate;
  std::string instructions;
  // In the order of the answer's probabilities. A predicate's are {yes, no}.
  std::vector<DecisionOption> options;
};

// The texts of docs/decisions.md, which fixes them: models are trained on it.
std::string DecisionHead(std::string_view instructions, std::string_view input);
// `labels` [question.options.size()]: what stands before each option (a predicate has none).
std::string QuestionText(const DecisionQuestion& question, const std::vector<std::string>& labels);
// The last line of QuestionText, which says how to answer.
std::string_view ClosingLine(DecisionKind kind, size_t num_options);
std::string RelevanceHead(std::string_view instruction, std::string_view query);
std::string RelevanceQuestion(std::string_view document);

// What a model's prompt has around a user's message: its chat template with thinking off and the
// answer open, or the plain format of models that have none.
struct PromptFrame {
  std::string before;
  std::string after;
  bool add_special_tokens = false;
  bool space_before_label = false;  // what is tried first

  std::string Wrap(std::string_view head, std::string_view question) const;
};

// Renders the template once. kUnsupported if it does not show a message as it is.
Result<PromptFrame> MakePromptFrame(const ModelEntry& model);

// Whether the chat template writes a space between where an answer begins and the answer (Mistral's
// and Llama 2's `[/INST]`): ModelTraits::space_before_answer. False where it cannot be rendered.
bool WritesSpaceBeforeAnswer(const ModelEntry& model);

}  // namespace skein
