#include "server/tools/tool_style.h"

#include "server/json/json.h"

namespace skein {
namespace {

// Names that occur in no template.
constexpr char kTool[] = "skein_probe_tool";
constexpr char kArgument[] = "skein_probe_argument";

Json ProbeTools() {
  Json function;
  function["name"] = kTool;
  function["description"] = "A probe.";
  function["parameters"]["type"] = "object";
  function["parameters"]["properties"][kArgument]["type"] = "string";
  Json tools = Json::array();
  tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  return tools;
}

Json ProbeMessages(bool with_call) {
  Json messages = Json::array();
  messages.push_back({{"role", "user"}, {"content", "Hello"}});
  if (!with_call) return messages;
  Json call;
  call["id"] = "abcdefghi";  // Mistral's templates need nine characters
  call["type"] = "function";
  call["function"] = {{"name", kTool}, {"arguments", {{kArgument, "value"}}}};
  Json assistant = {{"role", "assistant"}, {"content", ""}};
  assistant["tool_calls"].push_back(std::move(call));
  messages.push_back(std::move(assistant));
  Json result = {{"role", "tool"}, {"name", kTool}, {"content", "value"}};
  result["tool_call_id"] = "abcdefghi";
  messages.push_back(std::move(result));
  return messages;
}

// Renders the template; empty if it refuses the messages.
std::string Rendered(const ChatTemplate& chat_template, bool with_call) {
  Json variables;
  variables["messages"] = ProbeMessages(with_call);
  variables["tools"] = ProbeTools();
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = true;
  auto text = chat_template.Render(variables);
  return text.ok() ? std::move(text).value() : std::string();
}

size_t Count(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

ToolStyle StyleOf(std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
  if (has("<|channel|>")) return ToolStyle::kHarmony;
  if (has("[TOOL_CALLS]") || has("[AVAILABLE_TOOLS]")) return ToolStyle::kMistral;
  if (has("<tool_call>[")) return ToolStyle::kSmolLm;
  if (has("<tool_call>")) return ToolStyle::kHermes;
  if (has("<|python_tag|>") || has("\"parameters\": dictionary") || has("<|eom_id|>") ||
      has("<|start_header_id|>")) {
    return ToolStyle::kLlama3;
  }
  return ToolStyle::kJson;
}

}  // namespace

std::optional<ToolStyle> ToolStyleOf(std::string_view name) {
  if (name == "hermes") return ToolStyle::kHermes;
  if (name == "smollm") return ToolStyle::kSmolLm;
  if (name == "llama3_json") return ToolStyle::kLlama3;
  if (name == "mistral") return ToolStyle::kMistral;
  if (name == "json") return ToolStyle::kJson;
  return std::nullopt;
}

ToolMarks MarksOf(ToolStyle style) {
  switch (style) {
    case ToolStyle::kHermes:
    case ToolStyle::kSmolLm:
      return {"<tool_call>", "</tool_call>"};
    case ToolStyle::kMistral:
      return {"[TOOL_CALLS]", ""};
    case ToolStyle::kLlama3:
      return {"<|python_tag|>", ""};
    case ToolStyle::kHarmony:
      return {"<|channel|>", ""};
    case ToolStyle::kJson:
      return {"", ""};
  }
  return {};
}

ToolFormat DetectToolFormat(const ChatTemplate& chat_template) {
  const std::string with_call = Rendered(chat_template, true);
  const std::string without = Rendered(chat_template, false);
  const bool shows_tools = without.find(kArgument) != without.npos;
  // A rendered call repeats the names of the tool and of its argument.
  const bool shows_calls = Count(with_call, kArgument) > Count(without, kArgument);
  if (shows_tools && shows_calls) return {StyleOf(with_call), true};
  if (shows_tools) return {StyleOf(without), true};
  const bool is_chatml = without.find("<|im_start|>") != without.npos;
  return {is_chatml ? ToolStyle::kSmolLm : ToolStyle::kJson, false};
}

}  // namespace skein
