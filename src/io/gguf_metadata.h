#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace skein {

// One value of a GGUF file. Integers of every width are int64_t, or uint64_t if int64_t is too
// small. Both float widths are double. Strings point into the mapped file. All elements of an array
// have the same kind; booleans in an array are integers.
using GgufValue =
    std::variant<int64_t, uint64_t, double, bool, std::string_view, std::vector<int64_t>,
                 std::vector<double>, std::vector<std::string_view>>;

// The metadata of a GGUF file, with typed access. Errors name the key. An absent key reads as
// nullopt; a value of another kind fails with kInvalidArgument. Strings are valid while the file is
// mapped, and may contain any bytes.
class GgufMetadata {
 public:
  explicit GgufMetadata(std::string file) : file_(std::move(file)) {}

  // Returns false if the key exists already.
  bool Add(std::string_view key, GgufValue value);
  bool Has(std::string_view key) const { return values_.contains(key); }
  size_t size() const { return values_.size(); }

  Result<std::optional<int64_t>> Int(std::string_view key) const;
  Result<std::optional<double>> Double(std::string_view key) const;  // accepts integers, too
  Result<std::optional<bool>> Bool(std::string_view key) const;
  Result<std::optional<std::string_view>> String(std::string_view key) const;
  Result<std::optional<std::vector<int64_t>>> Ints(std::string_view key) const;
  Result<std::optional<std::vector<double>>> Doubles(std::string_view key) const;
  Result<std::optional<std::vector<std::string_view>>> Strings(std::string_view key) const;

  // Returns an error with the message "<file>: metadata '<key>' <problem>".
  Status Error(std::string_view key, std::string_view problem) const;
  Status Unsupported(std::string_view key, std::string_view problem) const;

 private:
  template <typename T>
  Result<std::optional<T>> Get(std::string_view key, const char* kind) const;

  std::string file_;  // the file's name in messages
  std::map<std::string, GgufValue, std::less<>> values_;
};

}  // namespace skein
