#include "server/compat/compat_body.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "server/json/field_reader.h"

namespace skein {

Status InvalidField(const std::string& param, const std::string& allowed) {
  return {StatusCode::kInvalidArgument, fmt::format("{} must be {}", param, allowed), param};
}

Result<std::string> TextOfContent(const Json& content, const std::string& param) {
  if (content.is_null()) return std::string();
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) return InvalidField(param, "a string or an array of text parts");
  std::string text;
  for (const Json& part : content) {
    if (!part.is_object()) return InvalidField(param, "a string or an array of text parts");
    FieldReader reader(part);
    const std::string type = reader.String("type").value_or("");
    const auto piece = reader.String("text");
    if ((type != "text" && type != "input_text" && type != "output_text") || !piece) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("{} has a part of type {}: only text is supported", param,
                                type.empty() ? "none" : type),
                    param);
    }
    if (!text.empty()) text += "\n";
    text += *piece;
  }
  return text;
}

void MoveMember(const char* from, const char* to, Json* body) {
  const auto found = body->find(from);
  if (found == body->end()) return;
  Json value = std::move(*found);
  body->erase(from);
  if (!value.is_null() && !body->contains(to)) (*body)[to] = std::move(value);
}

void SetThinking(bool thinks, Json* body) {
  Json& kwargs = (*body)["chat_template_kwargs"];
  if (kwargs.is_null()) kwargs = Json::object();
  if (kwargs.is_object()) kwargs.emplace("enable_thinking", thinks);
}

std::string StringMember(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Json FunctionTool(const Json& name, const Json& description, const Json& schema) {
  Json function;
  function["name"] = name;
  if (!description.is_null()) function["description"] = description;
  if (!schema.is_null()) function["parameters"] = schema;
  Json tool;
  tool["type"] = "function";
  tool["function"] = std::move(function);
  return tool;
}

Json FunctionCall(const std::string& id, const Json& name, const Json& arguments) {
  Json call;
  call["id"] = id;
  call["type"] = "function";
  call["function"]["name"] = name;
  call["function"]["arguments"] =
      arguments.is_string() ? arguments
                            : Json(DumpJson(arguments.is_null() ? Json::object() : arguments));
  return call;
}

Json ArgumentsObject(const std::string& text) {
  auto value = ParseJson(text);
  return value && value->is_object() ? *std::move(value) : Json::object();
}

}  // namespace skein
