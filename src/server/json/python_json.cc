#include "server/json/python_json.h"

#include "text/jinja/text.h"

namespace skein {
namespace {

void Append(const Json& value, std::string* out) {
  if (value.is_object()) {
    *out += '{';
    bool first = true;
    for (const auto& [key, member] : value.items()) {
      if (!first) *out += ", ";
      first = false;
      *out += DumpJson(Json(key));
      *out += ": ";
      Append(member, out);
    }
    *out += '}';
  } else if (value.is_array()) {
    *out += '[';
    for (size_t i = 0; i < value.size(); ++i) {
      if (i > 0) *out += ", ";
      Append(value[i], out);
    }
    *out += ']';
  } else if (value.is_number_float()) {
    *out += jinja::FloatText(value.get<double>());
  } else {
    *out += DumpJson(value);
  }
}

}  // namespace

std::string DumpPythonJson(const Json& value) {
  std::string text;
  Append(value, &text);
  return text;
}

}  // namespace skein
