#include "server/decisions/decision_prompt.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "server/prompt_text.h"
#include "server/reasoning/reasoning_style.h"

namespace skein {
namespace {

constexpr size_t kLettersMax = 26;
constexpr char kYesNoLine[] = "Answer with yes or no only.";
// A stand-in for a message when the template is rendered. It begins and ends as messages do, and is
// searched for in the rendered text.
constexpr char kProbe[] = "Text:\nskein\n\nQuestion: skein\nAnswer with yes or no only.";
constexpr char kAnswerProbe[] = "skein";

std::string WithInstructions(std::string_view instructions) {
  return instructions.empty() ? std::string() : std::string(instructions) + "\n\n";
}

// The messages that a template renders: a user's probe without an answer, a probe with its answer,
// or a probe with its answer and a second probe without one.
enum class Turns { kOpen, kAnswered, kOpenAgain };

Result<std::string> Render(const ModelEntry& model, Turns turns) {
  const auto message = [](const char* role, const char* content) {
    Json json;
    json["role"] = role;
    json["content"] = content;
    return json;
  };
  Json variables = model.chat_template_kwargs;
  variables["messages"] = Json::array({message("user", kProbe)});
  if (turns != Turns::kOpen) variables["messages"].push_back(message("assistant", kAnswerProbe));
  if (turns == Turns::kOpenAgain) variables["messages"].push_back(message("user", kProbe));
  variables["add_generation_prompt"] = turns != Turns::kAnswered;
  variables["enable_thinking"] = false;
  variables["tools"] = nullptr;
  variables["documents"] = nullptr;
  return model.chat_template->Render(variables);
}

// "A. name: description".
std::string OptionLine(std::string_view label, std::string_view name,
                       const DecisionOption& option) {
  std::string line = fmt::format("{}.", label);
  if (!name.empty()) line += fmt::format(" {}", name);
  if (!option.description.empty()) {
    line += fmt::format("{} {}", name.empty() ? "" : ":", option.description);
  }
  return line + "\n";
}

}  // namespace

std::string DecisionHead(std::string_view instructions, std::string_view input) {
  return WithInstructions(instructions) + fmt::format("Text:\n{}\n\n", input);
}

std::string_view ClosingLine(DecisionKind kind, size_t num_options) {
  switch (kind) {
    case DecisionKind::kPredicate:
      return kYesNoLine;
    case DecisionKind::kChoice:
      return num_options > kLettersMax ? "Answer with one label only."
                                       : "Answer with one letter only.";
    case DecisionKind::kScore:
      return "Answer with one digit only.";
  }
  return kYesNoLine;
}

std::string QuestionText(const DecisionQuestion& question, const std::vector<std::string>& labels) {
  SKEIN_CHECK(labels.size() == question.options.size());
  // Levels that have the same names as their labels are not listed.
  const bool named = question.kind != DecisionKind::kScore ||
                     !std::ranges::equal(question.options, labels, {}, &DecisionOption::name);
  std::string text = fmt::format("Question: {}\n", question.instructions);
  for (size_t i = 0; i < labels.size(); ++i) {
    const DecisionOption& option = question.options[i];
    if (question.kind != DecisionKind::kPredicate) {
      text += OptionLine(labels[i], named ? option.name : std::string_view(), option);
    } else if (!option.description.empty()) {
      text += fmt::format("{}: {}\n", option.name, option.description);
    }
  }
  text += ClosingLine(question.kind, labels.size());
  return text;
}

std::string RelevanceHead(std::string_view instruction, std::string_view query) {
  return WithInstructions(instruction) + fmt::format("Query:\n{}\n\n", query);
}

std::string RelevanceQuestion(std::string_view document) {
  return fmt::format("Document:\n{}\n\nQuestion: Is the document relevant to the query?\n{}",
                     document, kYesNoLine);
}

std::string RelevanceWordsHead(std::string_view instruction, std::string_view query) {
  return WithInstructions(instruction) + fmt::format("Query: {}\nDocument: ", query);
}

namespace {

constexpr char kPlainAfter[] = "\nAnswer:";
constexpr char kPlainNext[] = "\n\n";

// The text that the template writes between an answer and the next message. Empty if it cannot be
// found.
std::string NextOf(const ModelEntry& model) {
  Result<std::string> text = Render(model, Turns::kOpenAgain);
  if (!text.ok()) return {};
  const std::string_view probe = kProbe;
  const size_t first = text->find(probe);
  const size_t second = text->rfind(probe);
  if (first == second) return {};
  const size_t answer = text->find(kAnswerProbe, first + probe.size());
  if (answer == std::string::npos || answer >= second) return {};
  const size_t begin = answer + std::string_view(kAnswerProbe).size();
  return text->substr(begin, second - begin);
}

// "value (description)", or "value" alone without a description.
std::string WrittenOut(const DecisionOption& option) {
  if (option.name.empty() || option.description.empty()) return option.text();
  return fmt::format("{} ({})", option.name, option.description);
}

// "Options: a; b (what b means)". The line of a predicate is empty unless its options are
// described.
std::string OptionsLine(const DecisionQuestion& question) {
  const bool described = std::ranges::any_of(
      question.options, [](const DecisionOption& o) { return !o.description.empty(); });
  if (question.kind == DecisionKind::kPredicate && !described) return {};
  std::string line = "\nOptions: ";
  for (size_t i = 0; i < question.options.size(); ++i) {
    line += (i == 0 ? "" : "; ") + WrittenOut(question.options[i]);
  }
  return line;
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
char Upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

// The words of a text, without the characters around them that are no letters, digits or hyphens.
std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    const bool inside = static_cast<unsigned char>(c) >= 0x80 || c == '-' || c == '\'' ||
                        (c >= '0' && c <= '9') || (Lower(c) >= 'a' && Lower(c) <= 'z');
    if (inside) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

bool IsOneOf(std::string word, std::initializer_list<std::string_view> list) {
  std::ranges::transform(word, word.begin(), Lower);
  return std::ranges::find(list, std::string_view(word)) != list.end();
}

}  // namespace

Result<PromptFrame> MakePromptFrame(const ModelEntry& model, PromptForm form) {
  if (form != PromptForm::kChat || model.chat_template == nullptr) {
    return PromptFrame{"", kPlainAfter, kPlainNext, /*add_special_tokens=*/true,
                       /*space_before_label=*/true};
  }
  SKEIN_ASSIGN_OR_RETURN(const std::string text, Render(model, Turns::kOpen));
  const size_t at = text.find(kProbe);
  if (at == std::string::npos || text.find(kProbe, at + 1) != std::string::npos) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("the chat template of the model {} does not show a user's message "
                              "once and as it is, which decisions need",
                              model.name()),
                  "model");
  }
  PromptFrame frame;
  frame.before = text.substr(0, at);
  frame.after = text.substr(at + std::string_view(kProbe).size());
  frame.next = NextOf(model);
  frame.space_before_label = model.traits.space_before_answer;
  CloseThoughts(&frame.after);
  OpenFinalChannel(&frame.after);
  return frame;
}

bool WritesSpaceBeforeAnswer(const ModelEntry& model) {
  if (model.chat_template == nullptr) return false;
  Result<std::string> open = Render(model, Turns::kOpen);
  Result<std::string> answered = Render(model, Turns::kAnswered);
  return open.ok() && answered.ok() && answered->starts_with(*open + " " + kAnswerProbe);
}

PromptParts LettersPrompt(const PromptFrame& frame, const DecisionQuestion& question,
                          const std::vector<std::string>& labels) {
  PromptParts parts{frame, "Text:\n", "\n\n", QuestionText(question, labels), {}};
  parts.ending =
      std::string(ClosingLine(question.kind, question.options.size())) + parts.frame.after;
  return parts;
}

PromptParts WordsPrompt(const PromptFrame& frame, PromptForm form,
                        const DecisionQuestion& question) {
  PromptParts parts{frame, "Text: ", "\n", {}, {}};
  if (form == PromptForm::kCue) {
    parts.question = question.cue.empty() ? CueOf(question.instructions) : question.cue;
    if (!parts.question.empty()) {
      parts.frame.after = ":";
      parts.ending = parts.question + ":";
      return parts;
    }
  }
  parts.question = "Question: " + question.instructions + OptionsLine(question);
  if (form == PromptForm::kChat) {
    const std::string_view closing = question.kind == DecisionKind::kPredicate
                                         ? kYesNoLine
                                         : "Answer with one of the options only.";
    parts.question += fmt::format("\n{}", closing);
    parts.ending = std::string(closing) + parts.frame.after;
  } else {
    parts.ending = parts.frame.after;
  }
  return parts;
}

// Finds X in "What is the X ...", "What X ...", "Which X ..." and "The X is ...". X is a word, or
// the words up to one that ends a noun phrase.
std::string CueOf(std::string_view instructions) {
  const std::vector<std::string> words = WordsOf(instructions);
  size_t at = 0;
  if (words.empty() || !IsOneOf(words[at], {"what", "what's", "which"})) return {};
  if (IsOneOf(words[at], {"what's"}) || (words.size() > 1 && IsOneOf(words[1], {"is", "are"}))) {
    at += IsOneOf(words[at], {"what's"}) ? 1 : 2;
    if (at >= words.size() || !IsOneOf(words[at], {"the", "its", "their", "this"})) return {};
  }
  ++at;
  std::string cue;
  for (int count = 0; at < words.size() && count < 3; ++at, ++count) {
    if (IsOneOf(words[at],
                {"of",   "in",        "for",  "is",     "are",  "does", "do",   "did", "best",
                 "that", "expressed", "can",  "was",    "were", "has",  "have", "to",  "from",
                 "by",   "would",     "will", "should", "with", "on",   "the",  "this"})) {
      break;
    }
    cue += (cue.empty() ? "" : " ") + words[at];
  }
  if (!cue.empty()) cue[0] = Upper(cue[0]);
  return cue;
}

Result<std::string> ComposePrompt(const ModelEntry& model, const PromptParts& parts,
                                  const AskedQuestion& asked,
                                  const std::vector<std::string>& answers) {
  const PromptFrame& frame = parts.frame;
  if (!asked.examples.empty() && frame.next.empty()) {
    return Status(StatusCode::kUnsupported,
                  "examples need a chat template that takes several messages; this model's does "
                  "not: use the prompt question or cue",
                  "examples");
  }
  std::string text = frame.before + PlainText(model, WithInstructions(asked.instructions));
  const std::string question = PlainText(model, parts.question);
  const auto append = [&](std::string_view input) {
    text.append(parts.input_before).append(PlainText(model, input)).append(parts.input_after);
    text.append(question).append(frame.after);
  };
  for (const SolvedInput& example : asked.examples) {
    append(example.input);
    text.append(frame.space_before_label ? " " : "")
        .append(PlainText(model, answers[example.option]));
    text.append(frame.next);
  }
  append(asked.input);
  return text;
}

}  // namespace skein
