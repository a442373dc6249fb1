#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/json/json.h"
#include "skein/request.h"
#include "skein/status.h"

namespace skein {

// Reads the members of a JSON object by name and type. Keeps the first error: it names the field,
// the allowed values and the actual value. Later reads go on, so that a caller checks status() only
// once. Members that are absent or null count as not given; members that are not read are ignored.
class FieldReader {
 public:
  // `object` must be an object and outlive the reader.
  explicit FieldReader(const Json& object) : object_(object) {}

  const Json* Find(const std::string& name) const;  // null: not given
  bool Has(const std::string& name) const { return Find(name) != nullptr; }

  std::optional<bool> Bool(const std::string& name);
  std::optional<int64_t> Int(const std::string& name, int64_t min, int64_t max);
  std::optional<double> Number(const std::string& name, double min, double max);
  // Reads a number as Number does, and refuses the value `above`, too.
  std::optional<double> NumberAbove(const std::string& name, double above, double max);
  std::optional<std::string> String(const std::string& name);
  // Reads a string or an array of strings.
  std::vector<std::string> Strings(const std::string& name, size_t max_count);
  // Reads an array of ids in [0, vocab_size).
  std::vector<TokenId> TokenIds(const std::string& name, int32_t vocab_size);
  const Json* Object(const std::string& name);  // null: not given, or no object

  // Records an error, unless there is an earlier one.
  void Refuse(const std::string& name, const std::string& message,
              StatusCode code = StatusCode::kInvalidArgument);
  // Records "`name` must be `allowed`, got `value`".
  void RefuseValue(const std::string& name, const std::string& allowed, const Json& value);
  const Status& status() const { return status_; }
  const Json& object() const { return object_; }

 private:
  const Json& object_;
  Status status_;
};

// Reads an integer, or a real number without a fraction, that fits 64 bits.
std::optional<int64_t> JsonInt(const Json& value);

// Whether a value consists of token ids. The value may be a text, token ids or a list of these.
inline bool IsTokenIds(const Json& value) {
  return value.is_array() && !value.empty() && value[0].is_number();
}

}  // namespace skein
