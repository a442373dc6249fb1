#include "server/tools/tool_messages.h"

#include <spdlog/fmt/fmt.h>

#include <string>
#include <utility>

namespace skein {
namespace {

std::string InMarks(ToolStyle style, const std::string& text) {
  const ToolMarks marks = MarksOf(style);
  return std::string(marks.begin) + text + std::string(marks.end);
}

bool IsList(ToolStyle style) { return style == ToolStyle::kSmolLm || style == ToolStyle::kMistral; }

// The text that lists the tools and shows the form of a call.
std::string Instructions(const ToolFields& fields, ToolStyle style) {
  Json functions = Json::array();
  for (const Json& tool : fields.tools) functions.push_back(tool["function"]);
  std::string form = R"({"name": "FUNCTION", "arguments": {"PARAMETER": VALUE}})";
  if (IsList(style)) form = "[" + form + "]";
  return fmt::format(
      "You can call these functions, given as JSON:\n<tools>\n{}\n</tools>\nTo call one, answer "
      "with this form alone:\n{}\nIf no function helps, answer the user in words.",
      DumpJson(functions), InMarks(style, form));
}

std::string CallsText(const Json& calls, ToolStyle style) {
  std::string text;
  Json list = Json::array();
  for (const Json& call : calls) {
    if (!call.is_object() || !call.contains("function")) continue;
    const Json& function = call["function"];
    if (!function.is_object() || !function.contains("name")) continue;
    Json object = {{"name", function["name"]}};
    object["arguments"] = function.value("arguments", Json::object());
    if (IsList(style)) {
      list.push_back(std::move(object));
    } else {
      text += (text.empty() ? "" : "\n") + InMarks(style, DumpJson(object));
    }
  }
  return IsList(style) ? InMarks(style, DumpJson(list)) : text;
}

void Append(const std::string& text, Json* message) {
  auto& content = (*message)["content"].get_ref<std::string&>();
  if (!content.empty()) content += "\n\n";
  content += text;
}

void AddInstructions(const std::string& text, ToolStyle style, Json* messages) {
  Json& first = messages->front();
  if (first["role"] == "system") return Append(text, &first);
  if (style != ToolStyle::kJson) {
    Json system = {{"role", "system"}, {"content", text}};
    messages->insert(messages->begin(), std::move(system));
    return;
  }
  // Some model families have no system messages. Then the first message gets the text.
  auto& content = first["content"].get_ref<std::string&>();
  content = text + "\n\n" + content;
}

}  // namespace

void WriteTools(const ToolFields& fields, ToolStyle style, Json* messages) {
  Json written = Json::array();
  bool after_result = false;
  for (Json& message : *messages) {
    if (const auto calls = message.find("tool_calls");
        calls != message.end() && calls->is_array() && !calls->empty()) {
      Append(CallsText(*calls, style), &message);
      message.erase("tool_calls");
    }
    const bool is_result = message["role"] == "tool";
    if (is_result) {
      std::string text =
          "<tool_response>\n" + message["content"].get<std::string>() + "\n</tool_response>";
      if (after_result) {
        Append(text, &written.back());
        continue;
      }
      message = {{"role", "user"}, {"content", std::move(text)}};
    }
    after_result = is_result;
    written.push_back(std::move(message));
  }
  *messages = std::move(written);
  if (fields.active()) AddInstructions(Instructions(fields, style), style, messages);
}

}  // namespace skein
