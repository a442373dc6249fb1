#pragma once

#include <string>
#include <string_view>

#include "text/chat_template.h"

namespace skein {

// The form in which a family of models writes its reasoning before its answer.
enum class ReasoningStyle {
  kNone,       // the whole answer is content
  kThinkTags,  // <think> ... </think> before the content: Qwen3, DeepSeek-R1, SmolLM3, OLMo 3 Think
  kHarmony,    // messages in channels (reasoning/harmony_parser.h): gpt-oss
};

// How a model's reasoning is found in its answers to chats.
struct ReasoningFormat {
  ReasoningStyle style = ReasoningStyle::kNone;
  bool separates = true;  // told apart from the content, unless a request says otherwise
};

// Detects the style by the marks in the template's source.
ReasoningStyle DetectReasoningStyle(const ChatTemplate& chat_template);

inline constexpr std::string_view kThinkBegin = "<think>";
inline constexpr std::string_view kThinkEnd = "</think>";

// Whether a prompt ends inside a thought: the template may open one for the answer, or write an
// empty one so that the model does not think.
enum class PromptThoughts {
  kNone,    // the prompt ends with neither tag: the answer may begin with a thought
  kOpen,    // behind <think>
  kClosed,  // behind </think>
};
PromptThoughts ThoughtsAtEnd(std::string_view prompt);

// Closes a thought that the template leaves open at the end of the prompt.
void CloseThoughts(std::string* prompt);
// Opens the channel of answers behind the end of a prompt in the harmony format, whose messages
// name their channel. Other prompts stay as they are.
void OpenFinalChannel(std::string* prompt);

}  // namespace skein
