#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace skein {

// JSON in and out of the server. Order-preserving, because the order of members in a tool's
// description reaches the prompt. Only the non-throwing half of the library is used: parsing with
// exceptions off, typed access after a type check.
using Json = nlohmann::ordered_json;

// nullopt: not JSON.
inline std::optional<Json> ParseJson(std::string_view text) {
  Json value = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return std::nullopt;
  return value;
}

// One line; bytes that are not UTF-8 become U+FFFD.
inline std::string DumpJson(const Json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace skein
