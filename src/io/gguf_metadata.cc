#include "io/gguf_metadata.h"

#include <utility>

namespace skein {

bool GgufMetadata::Add(std::string_view key, GgufValue value) {
  return values_.emplace(std::string(key), std::move(value)).second;
}

template <typename T>
Result<std::optional<T>> GgufMetadata::Get(std::string_view key, const char* kind) const {
  const auto it = values_.find(key);
  if (it == values_.end()) return std::optional<T>();
  const T* value = std::get_if<T>(&it->second);
  if (value == nullptr) return Error(key, std::string("must be ") + kind);
  return std::optional<T>(*value);
}

Result<std::optional<int64_t>> GgufMetadata::Int(std::string_view key) const {
  return Get<int64_t>(key, "an integer below 2^63");
}

Result<std::optional<double>> GgufMetadata::Double(std::string_view key) const {
  const auto it = values_.find(key);
  if (it != values_.end()) {
    if (const auto* integer = std::get_if<int64_t>(&it->second)) {
      return std::optional<double>(static_cast<double>(*integer));
    }
  }
  return Get<double>(key, "a number");
}

Result<std::optional<bool>> GgufMetadata::Bool(std::string_view key) const {
  return Get<bool>(key, "a boolean");
}

Result<std::optional<std::string_view>> GgufMetadata::String(std::string_view key) const {
  return Get<std::string_view>(key, "a string");
}

Result<std::optional<std::vector<int64_t>>> GgufMetadata::Ints(std::string_view key) const {
  return Get<std::vector<int64_t>>(key, "an array of integers");
}

Result<std::optional<std::vector<double>>> GgufMetadata::Doubles(std::string_view key) const {
  return Get<std::vector<double>>(key, "an array of numbers with a point");
}

Result<std::optional<std::vector<std::string_view>>> GgufMetadata::Strings(
    std::string_view key) const {
  return Get<std::vector<std::string_view>>(key, "an array of strings");
}

Status GgufMetadata::Error(std::string_view key, std::string_view problem) const {
  return Status(StatusCode::kInvalidArgument,
                file_ + ": metadata '" + std::string(key) + "' " + std::string(problem));
}

Status GgufMetadata::Unsupported(std::string_view key, std::string_view problem) const {
  return Status(StatusCode::kUnsupported, Error(key, problem).message());
}

}  // namespace skein
