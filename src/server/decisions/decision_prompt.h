#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/decisions/decision_question.h"
#include "server/model_registry.h"
#include "skein/decision_method.h"

namespace skein {

// The texts of docs/decisions.md, which fixes them: models are trained on it.
std::string DecisionHead(std::string_view instructions, std::string_view input);
// `labels` [question.options.size()]: what stands before each option (a predicate has none).
std::string QuestionText(const DecisionQuestion& question, const std::vector<std::string>& labels);
// The last line of QuestionText, which says how to answer.
std::string_view ClosingLine(DecisionKind kind, size_t num_options);
std::string RelevanceHead(std::string_view instruction, std::string_view query);
std::string RelevanceQuestion(std::string_view document);
// The same for the reading words: the head up to the document, and what follows it.
std::string RelevanceWordsHead(std::string_view instruction, std::string_view query);
inline constexpr char kRelevanceWordsQuestion[] =
    "\nQuestion: Is the document relevant to the query?";

// The text around a user's message in a model's prompt: its chat template with thinking off and the
// answer open, or the plain format of models that have none.
struct PromptFrame {
  std::string before;
  std::string after;
  std::string next;  // between an answer and the next message; empty: there may be none
  bool add_special_tokens = false;
  bool space_before_label = false;  // the variant that is tried first
};

// The frame of PromptForm::kChat if the model has a chat template, else of plain text that ends
// with "Answer:". Renders the template. kUnsupported if it does not show a message as it is.
Result<PromptFrame> MakePromptFrame(const ModelEntry& model, PromptForm form);

// Whether the chat template writes a space between where an answer begins and the answer (Mistral's
// and Llama 2's `[/INST]`): ModelTraits::space_before_answer. False where it cannot be rendered.
bool WritesSpaceBeforeAnswer(const ModelEntry& model);

// A question's prompt, all but the input and the examples.
struct PromptParts {
  PromptFrame frame;
  std::string input_before;  // "Text:\n"
  std::string input_after;   // "\n\n"
  std::string question;      // between the input and frame.after
  // Behind these tokens the answer begins: a piece of the prompt's end, long enough that the tokens
  // of an answer do not depend on what is before it.
  std::string ending;
};

// Letters before the options, read as QuestionText asks for. `frame`: of the form wanted.
PromptParts LettersPrompt(const PromptFrame& frame, const DecisionQuestion& question,
                          const std::vector<std::string>& labels);
// The options' own texts, as the form wants them.
PromptParts WordsPrompt(const PromptFrame& frame, PromptForm form,
                        const DecisionQuestion& question);

// The noun of `instructions` that an answer is the value of: "What is the sentiment of the text?"
// gives "Sentiment", "Which language is it?" "Language"; empty where none is found (English only).
std::string CueOf(std::string_view instructions);

// The text of a prompt for EncodePrompt; the user's texts are marked for `model` (PlainText).
// `answers` [question.options.size()]: what examples show of each option.
// kUnsupported if there are examples and the chat template does not take several messages.
Result<std::string> ComposePrompt(const ModelEntry& model, const PromptParts& parts,
                                  const AskedQuestion& asked,
                                  const std::vector<std::string>& answers);

}  // namespace skein
