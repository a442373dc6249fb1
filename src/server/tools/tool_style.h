#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/chat_template.h"

namespace skein {

// The form in which a family of models writes its tool calls.
enum class ToolStyle {
  kHermes,   // <tool_call>{"name": ..., "arguments": {...}}</tool_call>, one each: Qwen, Hermes
  kSmolLm,   // <tool_call>[{"name": ..., "arguments": {...}}, ...]</tool_call>
  kLlama3,   // {"name": ..., "parameters": {...}}, which is the whole answer; <|python_tag|> before
  kMistral,  // [TOOL_CALLS][{"name": ..., "arguments": {...}}, ...], or [TOOL_CALLS]name[ARGS]{...}
  kHarmony,  // <|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}: gpt-oss
  kJson,     // {"name": ..., "arguments": {...}}, which is the whole answer
};

// The style of this name: hermes, smollm, llama3_json, mistral or json; nullopt if there is none.
std::optional<ToolStyle> ToolStyleOf(std::string_view name);

// The marks around calls; an empty mark is not written.
struct ToolMarks {
  std::string_view begin;
  std::string_view end;
};
ToolMarks MarksOf(ToolStyle style);

// How tools are shown to a model and how it writes calls.
struct ToolFormat {
  ToolStyle style = ToolStyle::kHermes;
  // Whether the template shows tools, and the calls and results of earlier turns. If not, the
  // server writes them into the messages (tools/tool_messages.h).
  bool in_template = false;
};

// Detects the format by rendering a call: a template that shows tools also says how to call them.
// For templates that do not show tools, it is SmolLM's style if the rendered text is ChatML,
// otherwise plain JSON.
ToolFormat DetectToolFormat(const ChatTemplate& chat_template);

}  // namespace skein
