#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/chat_template.h"

namespace skein {

// The form in which a family of models writes its calls of tools.
enum class ToolStyle {
  kHermes,   // <tool_call>{"name": ..., "arguments": {...}}</tool_call>, one each: Qwen, Hermes
  kSmolLm,   // <tool_call>[{"name": ..., "arguments": {...}}, ...]</tool_call>
  kLlama3,   // {"name": ..., "parameters": {...}}, which is the whole answer; <|python_tag|> before
  kMistral,  // [TOOL_CALLS][{"name": ..., "arguments": {...}}, ...], or [TOOL_CALLS]name[ARGS]{...}
  kJson,     // {"name": ..., "arguments": {...}}, which is the whole answer
};

// The style of that name: hermes, smollm, llama3_json, mistral or json; nullopt: there is none.
std::optional<ToolStyle> ToolStyleOf(std::string_view name);

// The marks around calls; empty: none.
struct ToolMarks {
  std::string_view begin;
  std::string_view end;
};
ToolMarks MarksOf(ToolStyle style);

// How a model is shown tools and writes calls.
struct ToolFormat {
  ToolStyle style = ToolStyle::kHermes;
  // The template shows the tools, and calls and results of earlier turns. If not, the server writes
  // them into the messages (tools/tool_messages.h).
  bool in_template = false;
};

// Finds the format by rendering a call: a template that shows tools also says how to call them.
// Templates without tools get SmolLM's style if their text is ChatML's, else plain JSON.
ToolFormat DetectToolFormat(const ChatTemplate& chat_template);

}  // namespace skein
