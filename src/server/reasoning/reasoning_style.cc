#include "server/reasoning/reasoning_style.h"

namespace skein {

ReasoningStyle DetectReasoningStyle(const ChatTemplate& chat_template) {
  const std::string source = chat_template.source();
  const auto has = [&](std::string_view part) { return source.find(part) != source.npos; };
  if (has("<|channel|>") && has("<|message|>")) return ReasoningStyle::kHarmony;
  if (has(kThinkBegin) || has(kThinkEnd)) return ReasoningStyle::kThinkTags;
  return ReasoningStyle::kNone;
}

PromptThoughts ThoughtsAtEnd(std::string_view prompt) {
  const size_t last = prompt.find_last_not_of(" \n\r\t");
  if (last == prompt.npos) return PromptThoughts::kNone;
  prompt = prompt.substr(0, last + 1);
  if (prompt.ends_with(kThinkBegin)) return PromptThoughts::kOpen;
  return prompt.ends_with(kThinkEnd) ? PromptThoughts::kClosed : PromptThoughts::kNone;
}

void CloseThoughts(std::string* prompt) {
  if (ThoughtsAtEnd(*prompt) != PromptThoughts::kOpen) return;
  prompt->resize(prompt->rfind(kThinkBegin) + kThinkBegin.size());
  *prompt += "\n\n</think>\n\n";
}

void OpenFinalChannel(std::string* prompt) {
  if (prompt->ends_with("<|start|>assistant")) *prompt += "<|channel|>final<|message|>";
}

}  // namespace skein
