#include "model/config/config_fields.h"

namespace skein {

Status Unsupported(const JsonObject& json, std::string_view key, const std::string& problem,
                   std::string_view param) {
  return Status(StatusCode::kUnsupported, json.where() + ": '" + std::string(key) + "' " + problem,
                std::string(param.empty() ? key : param));
}

Result<std::optional<int32_t>> ReadSize(const JsonObject& json, const char* key, int64_t max) {
  SKEIN_ASSIGN_OR_RETURN(const std::optional<int64_t> value, json.Int(key));
  if (!value) return std::optional<int32_t>();
  if (*value < 1 || *value > max) {
    return json.Error(
        key, "is " + std::to_string(*value) + "; must be in [1, " + std::to_string(max) + "]");
  }
  return std::optional<int32_t>(static_cast<int32_t>(*value));
}

Status RequireSize(const JsonObject& json, const char* key, int64_t max, int32_t* out) {
  SKEIN_ASSIGN_OR_RETURN(const std::optional<int32_t> value, ReadSize(json, key, max));
  if (!value) return json.Error(key, "is missing");
  *out = *value;
  return Status::Ok();
}

Result<bool> ReadFlag(const JsonObject& json, const char* key, bool absent) {
  SKEIN_ASSIGN_OR_RETURN(const std::optional<bool> value, json.Bool(key));
  return value.value_or(absent);
}

}  // namespace skein
