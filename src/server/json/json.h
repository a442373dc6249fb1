#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace skein {

// JSON in and out of the server. It preserves order, because the order of members in a tool's
// description reaches the prompt. The code uses only the non-throwing half of the library: parsing
// with exceptions off, typed access after a type check.
using Json = nlohmann::ordered_json;

// Parses JSON. Returns nullopt for text that is no JSON or of a costly shape; *why (may be null)
// says what is wrong and where. Values nested deeper than kJsonDepthMax are refused, because values
// are copied and printed by recursion. An object is refused if looking up each of its members,
// which is linear, would take more than kJsonLookupsMax comparisons: about 8,000 members.
constexpr int kJsonDepthMax = 128;
constexpr int64_t kJsonLookupsMax = int64_t{1} << 25;
std::optional<Json> ParseJson(std::string_view text, std::string* why = nullptr);

// Prints one line; bytes that are not UTF-8 become U+FFFD.
std::string DumpJson(const Json& value);

}  // namespace skein
