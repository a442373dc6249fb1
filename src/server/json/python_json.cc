#include "server/json/python_json.h"

#include "text/jinja/text.h"

namespace skein {
namespace {

std::string DumpPlainJson(const Json& value, PythonJsonChars chars) {
  if (chars == PythonJsonChars::kAll) return DumpJson(value);
  return value.dump(-1, ' ', true, Json::error_handler_t::replace);
}

void Append(const Json& value, PythonJsonChars chars, std::string* out) {
  if (value.is_object()) {
    *out += '{';
    bool first = true;
    for (const auto& [key, member] : value.items()) {
      if (!first) *out += ", ";
      first = false;
      *out += DumpPlainJson(Json(key), chars);
      *out += ": ";
      Append(member, chars, out);
    }
    *out += '}';
  } else if (value.is_array()) {
    *out += '[';
    for (size_t i = 0; i < value.size(); ++i) {
      if (i > 0) *out += ", ";
      Append(value[i], chars, out);
    }
    *out += ']';
  } else if (value.is_number_float()) {
    *out += jinja::FloatText(value.get<double>());
  } else {
    *out += DumpPlainJson(value, chars);
  }
}

}  // namespace

std::string DumpPythonJson(const Json& value, PythonJsonChars chars) {
  std::string text;
  Append(value, chars, &text);
  return text;
}

}  // namespace skein
