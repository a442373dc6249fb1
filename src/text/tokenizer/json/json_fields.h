#pragma once

#include <simdjson.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace skein {

// Readers of the members of a tokenizer's JSON objects. If a member is absent or null, its default
// is used if it has one. A member of the wrong type gives kInvalidArgument. `where` names the
// object in messages.

// The object of a tokenizer.json that holds its model.
inline constexpr std::string_view kModelObject = "tokenizer.json: model";

using JsonValue = simdjson::dom::element;

// The root of the JSON file `path`. It is valid while `parser` lives and until the parser reads
// another text. Integers of more than 64 bits are read as doubles.
Result<JsonValue> LoadJson(const std::string& path, simdjson::dom::parser* parser);

Status JsonError(std::string_view where, const std::string& what);
// kUnsupported with a message that names `what`.
Status NotSupported(std::string_view where, const std::string& what);

// Whether the object has the member and it is not null.
bool JsonHas(JsonValue object, std::string_view key);
Result<std::string> JsonString(JsonValue object, std::string_view key, std::string_view where);
Result<bool> JsonBool(JsonValue object, std::string_view key, bool default_value,
                      std::string_view where);
Result<int64_t> JsonInt(JsonValue object, std::string_view key, int64_t min, int64_t max,
                        std::string_view where);
Result<simdjson::dom::array> JsonArray(JsonValue object, std::string_view key,
                                       std::string_view where);
// Calls `read` for each element of the array `key`, until one call fails.
template <typename Read>
Status JsonForEach(JsonValue object, std::string_view key, std::string_view where, Read read) {
  SKEIN_ASSIGN_OR_RETURN(const simdjson::dom::array items, JsonArray(object, key, where));
  for (const JsonValue item : items) SKEIN_RETURN_IF_ERROR(read(item));
  return Status::Ok();
}

}  // namespace skein
