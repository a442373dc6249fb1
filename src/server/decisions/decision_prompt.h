#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/decisions/decision_question.h"
#include "server/model_registry.h"
#include "skein/decision_method.h"

namespace skein {

// The texts that docs/decisions.md fixes, because models are trained on them.
std::string DecisionHead(std::string_view instructions, std::string_view input);
// The text of a question. `labels` [question.options.size()] stand before the options; a predicate
// has none.
std::string QuestionText(const DecisionQuestion& question, const std::vector<std::string>& labels);
// The last line of QuestionText, which says how to answer.
std::string_view ClosingLine(DecisionKind kind, size_t num_options);
std::string RelevanceHead(std::string_view instruction, std::string_view query);
std::string RelevanceQuestion(std::string_view document);
// The same for the reading `words`: the text before the document, and the text behind it.
std::string RelevanceWordsHead(std::string_view instruction, std::string_view query);
inline constexpr char kRelevanceWordsQuestion[] =
    "\nQuestion: Is the document relevant to the query?";

// The text around a user's message in a model's prompt. With a chat template: the template, with
// thinking off, up to the beginning of the answer. Without one: a plain format.
struct PromptFrame {
  std::string before;
  std::string after;
  std::string next;  // between an answer and the next message; empty: no second message is possible
  bool add_special_tokens = false;
  bool space_before_label = false;  // the variant of labels that is tried first
};

// Makes the frame: for PromptForm::kChat that of the model's chat template, if the model has one;
// otherwise plain text that ends with "Answer:". Renders the template. kUnsupported if the rendered
// text does not contain a message unchanged.
Result<PromptFrame> MakePromptFrame(const ModelEntry& model, PromptForm form);

// Whether the chat template writes a space before an answer (as Mistral's and Llama 2's do behind
// `[/INST]`): ModelTraits::space_before_answer. False if the template cannot be rendered.
bool WritesSpaceBeforeAnswer(const ModelEntry& model);

// The prompt of a question, without the input and the examples.
struct PromptParts {
  PromptFrame frame;
  std::string input_before;  // "Text:\n"
  std::string input_after;   // "\n\n"
  std::string question;      // between the input and frame.after
  // The end of the prompt, behind which the answer begins: long enough that the tokens of an answer
  // do not depend on the text before it.
  std::string ending;
};

// The prompt with letters before the options, in the words of QuestionText. `frame` must have the
// form that is asked for.
PromptParts LettersPrompt(const PromptFrame& frame, const DecisionQuestion& question,
                          const std::vector<std::string>& labels);
// The prompt whose answers are the options' own texts, in the given form.
PromptParts WordsPrompt(const PromptFrame& frame, PromptForm form,
                        const DecisionQuestion& question);

// The noun of `instructions` whose value is asked for: "What is the sentiment of the text?" gives
// "Sentiment", "Which language is it?" gives "Language". Empty if none is found (English only).
std::string CueOf(std::string_view instructions);

// The text of a prompt for EncodePrompt; the user's texts are marked for `model` (PlainText).
// `answers` [question.options.size()] are the answers that examples show for each option.
// kUnsupported if there are examples and the chat template cannot render several messages.
Result<std::string> ComposePrompt(const ModelEntry& model, const PromptParts& parts,
                                  const AskedQuestion& asked,
                                  const std::vector<std::string>& answers);

}  // namespace skein
