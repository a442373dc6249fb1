#include "server/decisions/decision_input.h"

#include <spdlog/fmt/fmt.h>

#include "server/json/field_reader.h"

namespace skein {
namespace {

Status Wrong(const std::string& field, const std::string& message,
             StatusCode code = StatusCode::kInvalidArgument) {
  return Status(code, fmt::format("{} {}", field, message), field);
}

Result<std::string> PartText(const Json& part, const std::string& field) {
  const Json* type = part.is_object() ? FieldReader(part).Find("type") : nullptr;
  if (type == nullptr || !type->is_string()) {
    return Wrong(field, "must be an object with a type, such as {\"type\": \"input_text\", ...}");
  }
  const auto& name = type->get_ref<const std::string&>();
  if (name == "input_json") {
    const Json* data = FieldReader(part).Find("data");
    if (data == nullptr || !data->is_structured()) {
      return Wrong(field + ".data", "must be an object or an array");
    }
    return DumpJson(*data);
  }
  if (name != "input_text" && name != "text") {
    return Wrong(field,
                 fmt::format("has the type {}: only input_text and input_json are supported, "
                             "images are not",
                             DumpJson(*type)),
                 StatusCode::kUnsupported);
  }
  const Json* text = FieldReader(part).Find("text");
  if (text == nullptr || !text->is_string()) return Wrong(field + ".text", "must be a string");
  return text->get<std::string>();
}

}  // namespace

Result<std::string> DecisionText(const Json& value, const std::string& field) {
  std::string text;
  if (value.is_string()) {
    text = value.get<std::string>();
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      SKEIN_ASSIGN_OR_RETURN(const std::string part,
                             PartText(value[i], fmt::format("{}[{}]", field, i)));
      if (i > 0) text += "\n";
      text += part;
    }
  } else {
    return Wrong(field, "must be a string or an array of input_text parts");
  }
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return Wrong(field, "must not be empty");
  }
  return text;
}

Result<std::string> DecisionInput(const Json* value, const std::string& field) {
  if (value == nullptr || !(value->is_string() || value->is_array())) {
    return Wrong(field, "must be a string or an array of user messages");
  }
  if (value->is_string()) return DecisionText(*value, field);
  if (value->empty()) return Wrong(field, "must have at least one message");
  std::string text;
  for (size_t i = 0; i < value->size(); ++i) {
    const std::string place = fmt::format("{}[{}]", field, i);
    const Json& message = (*value)[i];
    if (!message.is_object()) return Wrong(place, "must be a message, an object");
    const Json* role = FieldReader(message).Find("role");
    if (role == nullptr || *role != "user") return Wrong(place + ".role", "must be \"user\"");
    const Json* content = FieldReader(message).Find("content");
    if (content == nullptr) return Wrong(place + ".content", "must be given");
    SKEIN_ASSIGN_OR_RETURN(const std::string piece, DecisionText(*content, place + ".content"));
    if (i > 0) text += "\n\n";
    text += piece;
  }
  return text;
}

}  // namespace skein
