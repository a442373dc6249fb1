#include "server/json/field_reader.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <limits>

namespace skein {
namespace {

constexpr size_t kShownBytesMax = 80;  // most bytes of a wrong value that a message shows

std::string Shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  std::string text = DumpJson(value);
  if (text.size() > kShownBytesMax) {
    text.resize(kShownBytesMax);
    text += "...";
  }
  return text;
}

std::string Range(char open, double min, double max) {
  return fmt::format("a number in {}{}, {}]", open, min, max);
}

std::string IntRange(int64_t min, int64_t max) {
  if (max == std::numeric_limits<int64_t>::max()) {
    return min == std::numeric_limits<int64_t>::min()
               ? "an integer of 64 bits"
               : fmt::format("an integer of at least {}", min);
  }
  return fmt::format("an integer in [{}, {}]", min, max);
}

}  // namespace

std::optional<int64_t> JsonInt(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    constexpr double kExactMax = 9007199254740992.0;  // 2^53
    if (std::abs(number) <= kExactMax && number == std::trunc(number)) {
      return static_cast<int64_t>(number);
    }
  }
  return std::nullopt;
}

const Json* FieldReader::Find(const std::string& name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void FieldReader::Refuse(const std::string& name, const std::string& message, StatusCode code) {
  if (status_.ok()) status_ = Status(code, message, name);
}

void FieldReader::RefuseValue(const std::string& name, const std::string& allowed,
                              const Json& value) {
  Refuse(name, fmt::format("{} must be {}, got {}", name, allowed, Shown(value)));
}

std::optional<bool> FieldReader::Bool(const std::string& name) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  RefuseValue(name, "true or false", *value);
  return std::nullopt;
}

std::optional<int64_t> FieldReader::Int(const std::string& name, int64_t min, int64_t max) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  const auto number = JsonInt(*value);
  if (number && *number >= min && *number <= max) return number;
  RefuseValue(name, IntRange(min, max), *value);
  return std::nullopt;
}

std::optional<double> FieldReader::Number(const std::string& name, double min, double max) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number() && value->get<double>() >= min && value->get<double>() <= max) {
    return value->get<double>();
  }
  RefuseValue(name, Range('[', min, max), *value);
  return std::nullopt;
}

std::optional<double> FieldReader::NumberAbove(const std::string& name, double above, double max) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number() && value->get<double>() > above && value->get<double>() <= max) {
    return value->get<double>();
  }
  RefuseValue(name, Range('(', above, max), *value);
  return std::nullopt;
}

std::optional<std::string> FieldReader::String(const std::string& name) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  RefuseValue(name, "a string", *value);
  return std::nullopt;
}

std::vector<std::string> FieldReader::Strings(const std::string& name, size_t max_count) {
  const Json* value = Find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return {value->get<std::string>()};
  std::vector<std::string> strings;
  bool fits = value->is_array() && value->size() <= max_count;
  if (fits) {
    for (const Json& item : *value) {
      if (!item.is_string()) {
        fits = false;
        break;
      }
      strings.push_back(item.get<std::string>());
    }
  }
  if (fits) return strings;
  RefuseValue(name, fmt::format("a string or an array of at most {} strings", max_count), *value);
  return {};
}

std::vector<TokenId> FieldReader::TokenIds(const std::string& name, int32_t vocab_size) {
  const Json* value = Find(name);
  if (value == nullptr) return {};
  const std::string allowed = fmt::format("an array of token ids in [0, {}]", vocab_size - 1);
  if (!value->is_array()) {
    RefuseValue(name, allowed, *value);
    return {};
  }
  std::vector<TokenId> ids;
  ids.reserve(value->size());
  for (const Json& item : *value) {
    const auto id = JsonInt(item);
    if (!id || *id < 0 || *id >= vocab_size) {
      RefuseValue(name, allowed, item);
      return {};
    }
    ids.push_back(static_cast<TokenId>(*id));
  }
  return ids;
}

const Json* FieldReader::Object(const std::string& name) {
  const Json* value = Find(name);
  if (value == nullptr || value->is_object()) return value;
  RefuseValue(name, "an object", *value);
  return nullptr;
}

}  // namespace skein
