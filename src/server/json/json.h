#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace skein {

// JSON values of the server. They keep the order of members, because the order in a tool's
// description reaches the prompt. The code uses only the non-throwing half of the library: it
// parses with exceptions off and checks types before typed access.
using Json = nlohmann::ordered_json;

// Parses JSON. Returns nullopt for text that is not JSON or has a costly shape; *why (may be null)
// says what is wrong and where. Values nested deeper than kJsonDepthMax are refused, because values
// are copied and printed by recursion. Objects with too many members are refused: lookup is linear,
// and looking up each member once may take at most kJsonLookupsMax comparisons (about 8,000
// members).
constexpr int kJsonDepthMax = 128;
constexpr int64_t kJsonLookupsMax = int64_t{1} << 25;
std::optional<Json> ParseJson(std::string_view text, std::string* why = nullptr);

// Whether `value` is an array of 1 to `max_count` strings.
bool AreStrings(const Json& value, size_t max_count);
// Whether `value` is a string or AreStrings. Null (not given) is neither.
bool AreTexts(const Json* value, size_t max_count);

// Prints JSON on one line; bytes that are not UTF-8 become U+FFFD.
std::string DumpJson(const Json& value);

}  // namespace skein
