#include "server/decision_prompt.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/check.h"

namespace skein {
namespace {

constexpr size_t kLettersMax = 26;
constexpr char kYesNoLine[] = "Answer with yes or no only.";
// Stands for a message when the template is rendered: begins and ends as messages do, and is found
// again in what comes out.
constexpr char kProbe[] = "Text:\nskein\n\nQuestion: skein\nAnswer with yes or no only.";
constexpr char kAnswerProbe[] = "skein";

std::string WithInstructions(std::string_view instructions) {
  return instructions.empty() ? std::string() : std::string(instructions) + "\n\n";
}

// Closes a block of thoughts that the template leaves open at the end.
void EndThinking(std::string* text) {
  constexpr std::string_view kOpen = "<think>";
  const size_t end = text->find_last_not_of(" \n");
  if (end == std::string::npos || !std::string_view(*text).substr(0, end + 1).ends_with(kOpen)) {
    return;
  }
  text->resize(end + 1);
  *text += "\n\n</think>\n\n";
}

// The template's text of a user's probe, with an answer or open for one.
Result<std::string> Render(const ModelEntry& model, bool answered) {
  const auto message = [](const char* role, const char* content) {
    Json json;
    json["role"] = role;
    json["content"] = content;
    return json;
  };
  Json variables = model.chat_template_kwargs;
  variables["messages"] = Json::array({message("user", kProbe)});
  if (answered) variables["messages"].push_back(message("assistant", kAnswerProbe));
  variables["add_generation_prompt"] = !answered;
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
  // Levels that are all called as their labels are not named again.
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

std::string PromptFrame::Wrap(std::string_view head, std::string_view question) const {
  std::string text;
  text.reserve(before.size() + head.size() + question.size() + after.size());
  text.append(before).append(head).append(question).append(after);
  return text;
}

Result<PromptFrame> MakePromptFrame(const ModelEntry& model) {
  if (model.chat_template == nullptr) {
    return PromptFrame{"", "\nAnswer:", /*add_special_tokens=*/true, /*space_before_label=*/true};
  }
  SKEIN_ASSIGN_OR_RETURN(const std::string text, Render(model, /*answered=*/false));
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
  frame.space_before_label = model.traits.space_before_answer;
  EndThinking(&frame.after);
  return frame;
}

bool WritesSpaceBeforeAnswer(const ModelEntry& model) {
  if (model.chat_template == nullptr) return false;
  Result<std::string> open = Render(model, /*answered=*/false);
  Result<std::string> answered = Render(model, /*answered=*/true);
  return open.ok() && answered.ok() && answered->starts_with(*open + " " + kAnswerProbe);
}

}  // namespace skein
