#include "apps/gguf/gguf_keys.h"

#include <charconv>
#include <utility>

namespace skein {

Status GgufKeys::RequireDouble(const char* name, const char* member,
                               nlohmann::ordered_json* json) const {
  SKEIN_ASSIGN_OR_RETURN(const auto value, Double(name));
  if (!value) return Error(name, "is missing");
  (*json)[member] = ShortestDecimal(*value);
  return Status::Ok();
}

Status GgufKeys::RequireCount(const char* name, int64_t most, const char* member,
                              nlohmann::ordered_json* json) const {
  SKEIN_RETURN_IF_ERROR(Require(name, member, json));
  const auto value = (*json)[member].get<int64_t>();
  if (value >= 1 && value <= most) return Status::Ok();
  return Error(name,
               "is " + std::to_string(value) + "; 1 to " + std::to_string(most) + " are allowed");
}

Result<std::vector<int64_t>> GgufKeys::IntOrInts(const char* name) const {
  Result<std::optional<std::vector<int64_t>>> list = Ints(name);
  if (list.ok()) return std::move(list).value().value_or(std::vector<int64_t>());
  SKEIN_ASSIGN_OR_RETURN(const auto one, Int(name));
  return std::vector<int64_t>{one.value_or(0)};
}

double ShortestDecimal(double value) {
  char text[64];
  const auto written = std::to_chars(text, text + sizeof(text), static_cast<float>(value));
  double parsed = value;
  std::from_chars(text, written.ptr, parsed);
  return parsed;
}

}  // namespace skein
