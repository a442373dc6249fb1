#include "text/tokenizer/json/json_fields.h"

#include "base/json_numbers.h"

namespace skein {
namespace {

std::string Name(std::string_view key) { return "'" + std::string(key) + "'"; }

}  // namespace

Result<JsonValue> LoadJson(const std::string& path, simdjson::dom::parser* parser) {
  JsonValue root;
  simdjson::padded_string file;
  simdjson::error_code error = simdjson::padded_string::load(path).get(file);
  if (error != simdjson::SUCCESS) return JsonError(path, simdjson::error_message(error));
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string_view text = file;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  // The parser may read past the end of `text`: the padding of the file lies there.
  error = parser->parse(text.data(), text.size(), /*realloc_if_needed=*/false).get(root);
  if (error == simdjson::NUMBER_ERROR) error = parser->parse(WithReadableNumbers(text)).get(root);
  if (error != simdjson::SUCCESS) return JsonError(path, simdjson::error_message(error));
  return root;
}

Status JsonError(std::string_view where, const std::string& what) {
  return Status(StatusCode::kInvalidArgument, std::string(where) + ": " + what);
}

Status NotSupported(std::string_view where, const std::string& what) {
  return Status(StatusCode::kUnsupported, std::string(where) + ": " + what + " is not supported");
}

bool JsonHas(JsonValue object, std::string_view key) {
  JsonValue value;
  return object.at_key(key).get(value) == simdjson::SUCCESS && !value.is_null();
}

Result<std::string> JsonString(JsonValue object, std::string_view key, std::string_view where) {
  std::string_view value;
  if (object.at_key(key).get(value) != simdjson::SUCCESS) {
    return JsonError(where, Name(key) + " must be a string");
  }
  return std::string(value);
}

Result<bool> JsonBool(JsonValue object, std::string_view key, bool default_value,
                      std::string_view where) {
  JsonValue value;
  if (object.at_key(key).get(value) != simdjson::SUCCESS || value.is_null()) return default_value;
  bool flag = false;
  if (value.get(flag) != simdjson::SUCCESS) {
    return JsonError(where, Name(key) + " must be true or false");
  }
  return flag;
}

Result<int64_t> JsonInt(JsonValue object, std::string_view key, int64_t min, int64_t max,
                        std::string_view where) {
  int64_t value = 0;
  if (object.at_key(key).get(value) != simdjson::SUCCESS || value < min || value > max) {
    return JsonError(where, Name(key) + " must be an integer from " + std::to_string(min) + " to " +
                                std::to_string(max));
  }
  return value;
}

Result<simdjson::dom::array> JsonArray(JsonValue object, std::string_view key,
                                       std::string_view where) {
  simdjson::dom::array value;
  if (object.at_key(key).get(value) != simdjson::SUCCESS) {
    return JsonError(where, Name(key) + " must be an array");
  }
  return value;
}

}  // namespace skein
