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

// nullopt: not JSON, or of a shape that would cost too much, and *why (which may be null) says what
// is wrong and where. Refused are values nested deeper than kJsonDepthMax, because values are
// copied and printed by recursion, and objects of so many members that looking each up, which is
// linear, would take kJsonLookupsMax comparisons: about 8,000 members in one object.
constexpr int kJsonDepthMax = 128;
constexpr int64_t kJsonLookupsMax = int64_t{1} << 25;
std::optional<Json> ParseJson(std::string_view text, std::string* why = nullptr);

// One line; bytes that are not UTF-8 become U+FFFD.
std::string DumpJson(const Json& value);

}  // namespace skein
