#include "server/json/python_json.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

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

void AppendSorted(const Json& value, std::string* out) {
  if (value.is_object()) {
    std::vector<std::pair<std::string_view, const Json*>> members;
    for (auto it = value.begin(); it != value.end(); ++it) members.emplace_back(it.key(), &*it);
    std::ranges::sort(members, {}, &std::pair<std::string_view, const Json*>::first);
    *out += '{';
    bool first = true;
    for (const auto& [key, member] : members) {
      if (!first) *out += ',';
      first = false;
      *out += DumpJson(Json(key));
      *out += ':';
      AppendSorted(*member, out);
    }
    *out += '}';
  } else if (value.is_array()) {
    *out += '[';
    for (size_t i = 0; i < value.size(); ++i) {
      if (i > 0) *out += ',';
      AppendSorted(value[i], out);
    }
    *out += ']';
  } else {
    Append(value, PythonJsonChars::kAll, out);
  }
}

}  // namespace

std::string DumpPythonJson(const Json& value, PythonJsonChars chars) {
  std::string text;
  Append(value, chars, &text);
  return text;
}

std::string DumpSortedJson(const Json& value) {
  std::string text;
  AppendSorted(value, &text);
  return text;
}

}  // namespace skein
