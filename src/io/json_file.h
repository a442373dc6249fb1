#pragma once

#include <simdjson.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace skein {

// One object of a JSON document, with typed access. Errors name the member. A member that is absent
// or null reads as nullopt. A member of another type, or one that appears twice, fails with
// kInvalidArgument. Valid while its JsonFile lives.
class JsonObject {
 public:
  JsonObject(simdjson::dom::object object, std::string where)
      : object_(object), where_(std::move(where)) {}

  // Whether the member is present and not null.
  bool Has(std::string_view key) const;
  bool Contains(std::string_view key) const;  // whether it is present, null or not

  Result<std::optional<int64_t>> Int(std::string_view key) const;
  Result<std::optional<double>> Double(std::string_view key) const;  // accepts integers, too
  Result<std::optional<bool>> Bool(std::string_view key) const;
  Result<std::optional<std::string>> String(std::string_view key) const;
  Result<std::optional<JsonObject>> Object(std::string_view key) const;
  Result<std::optional<std::vector<std::string>>> Strings(std::string_view key) const;
  // Reads an integer or a list of integers; Doubles does the same for numbers.
  Result<std::optional<std::vector<int64_t>>> Ints(std::string_view key) const;
  Result<std::optional<std::vector<double>>> Doubles(std::string_view key) const;

  bool empty() const { return object_.size() == 0; }
  const simdjson::dom::object& members() const { return object_; }
  // The name of the document in messages, with the path to this object.
  const std::string& where() const { return where_; }
  // Returns kInvalidArgument about a member: "<where>: '<key>' <problem>".
  Status Error(std::string_view key, std::string_view problem) const;

 private:
  Result<std::optional<simdjson::dom::element>> Find(std::string_view key) const;

  simdjson::dom::object object_;
  std::string where_;
};

// A parsed JSON file whose root is an object. Integers beyond 64 bits are read as doubles.
class JsonFile {
 public:
  static constexpr size_t kMaxBytes = size_t{64} << 20;

  // Fails with kNotFound if there is no such file, and with kInvalidArgument if it is longer than
  // `max_bytes` or not valid JSON.
  static Result<JsonFile> Load(const std::string& path, size_t max_bytes = kMaxBytes);
  // Messages call the document `name`.
  static Result<JsonFile> Parse(std::string_view text, std::string name);

  const JsonObject& root() const { return *root_; }

 private:
  JsonFile() = default;

  std::unique_ptr<simdjson::dom::parser> parser_;  // owns the memory behind root_
  std::optional<JsonObject> root_;
};

// Returns the bytes of a regular file. Fails with kNotFound if the file cannot be opened, and with
// kInvalidArgument if it is longer than `max_bytes`.
Result<std::string> ReadFile(const std::string& path, size_t max_bytes);

}  // namespace skein
