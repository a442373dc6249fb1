#include "io/json_file.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/json_numbers.h"

namespace skein {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

constexpr double kInt64End = 0x1p63;

const char* TypeName(const element& value) {
  switch (value.type()) {
    case element_type::ARRAY:
      return "a list";
    case element_type::OBJECT:
      return "an object";
    case element_type::STRING:
      return "a string";
    case element_type::BOOL:
      return "a boolean";
    case element_type::NULL_VALUE:
      return "null";
    case element_type::DOUBLE:
      return std::abs(value.get_double().value_unsafe()) < kInt64End ? "a fraction" : "too large";
    case element_type::UINT64:
      return "too large";
    default:
      return "an integer";
  }
}

}  // namespace

Status JsonObject::Error(std::string_view key, std::string_view problem) const {
  std::string message = where_ + ": '";
  message.append(key).append("' ").append(problem);
  return Status(StatusCode::kInvalidArgument, std::move(message), std::string(key));
}

bool JsonObject::Contains(std::string_view key) const {
  for (const auto& member : object_) {
    if (member.key == key) return true;
  }
  return false;
}

bool JsonObject::Has(std::string_view key) const {
  for (const auto& member : object_) {
    if (member.key == key && !member.value.is_null()) return true;
  }
  return false;
}

Result<std::optional<element>> JsonObject::Find(std::string_view key) const {
  std::optional<element> found;
  bool seen = false;
  for (const auto& member : object_) {
    if (member.key != key) continue;
    if (seen) return Error(key, "appears twice");
    seen = true;
    if (!member.value.is_null()) found = member.value;
  }
  return found;
}

Result<std::optional<int64_t>> JsonObject::Int(std::string_view key) const {
  SKEIN_ASSIGN_OR_RETURN(const std::optional<element> value, Find(key));
  if (!value) return std::optional<int64_t>();
  int64_t number = 0;
  if (!value->is_int64() || value->get(number) != simdjson::SUCCESS) {
    return Error(key, std::string("must be an integer, is ") + TypeName(*value));
  }
  return std::optional<int64_t>(number);
}

Result<std::optional<double>> JsonObject::Double(std::string_view key) const {
  SKEIN_ASSIGN_OR_RETURN(const std::optional<element> value, Find(key));
  if (!value) return std::optional<double>();
  double number = 0;
  if (value->get(number) != simdjson::SUCCESS) {
    return Error(key, std::string("must be a number, is ") + TypeName(*value));
  }
  return std::optional<double>(number);
}

Result<std::optional<bool>> JsonObject::Bool(std::string_view key) const {
  SKEIN_ASSIGN_OR_RETURN(const std::optional<element> value, Find(key));
  if (!value) return std::optional<bool>();
  bool flag = false;
  if (value->get(flag) != simdjson::SUCCESS) {
    return Error(key, std::string("must be true or false, is ") + TypeName(*value));
  }
  return std::optional<bool>(flag);
}

Result<std::optional<std::string>> JsonObject::String(std::string_view key) const {
  SKEIN_ASSIGN_OR_RETURN(const std::optional<element> value, Find(key));
  if (!value) return std::optional<std::string>();
  std::string_view text;
  if (value->get(text) != simdjson::SUCCESS) {
    return Error(key, std::string("must be a string, is ") + TypeName(*value));
  }
  return std::optional<std::string>(text);
}

Result<std::optional<JsonObject>> JsonObject::Object(std::string_view key) const {
  SKEIN_ASSIGN_OR_RETURN(const std::optional<element> value, Find(key));
  if (!value) return std::optional<JsonObject>();
  simdjson::dom::object object;
  if (value->get(object) != simdjson::SUCCESS) {
    return Error(key, std::string("must be an object, is ") + TypeName(*value));
  }
  return std::optional<JsonObject>(JsonObject(object, where_ + "." + std::string(key)));
}

Result<std::optional<std::vector<std::string>>> JsonObject::Strings(std::string_view key) const {
  SKEIN_ASSIGN_OR_RETURN(const std::optional<element> value, Find(key));
  if (!value) return std::optional<std::vector<std::string>>();
  simdjson::dom::array array;
  if (value->get(array) != simdjson::SUCCESS) {
    return Error(key, std::string("must be a list of strings, is ") + TypeName(*value));
  }
  std::vector<std::string> strings;
  for (const element& item : array) {
    std::string_view text;
    if (item.get(text) != simdjson::SUCCESS) {
      return Error(key, std::string("must be a list of strings, holds ") + TypeName(item));
    }
    strings.emplace_back(text);
  }
  return std::optional<std::vector<std::string>>(std::move(strings));
}

Result<std::optional<std::vector<int64_t>>> JsonObject::Ints(std::string_view key) const {
  SKEIN_ASSIGN_OR_RETURN(const std::optional<element> value, Find(key));
  if (!value) return std::optional<std::vector<int64_t>>();
  std::vector<int64_t> numbers;
  int64_t number = 0;
  if (value->is_int64() && value->get(number) == simdjson::SUCCESS) {
    numbers.push_back(number);
    return std::optional<std::vector<int64_t>>(std::move(numbers));
  }
  simdjson::dom::array array;
  if (value->get(array) != simdjson::SUCCESS) {
    return Error(key, std::string("must be an integer or a list of them, is ") + TypeName(*value));
  }
  for (const element& item : array) {
    if (!item.is_int64() || item.get(number) != simdjson::SUCCESS) {
      return Error(key, std::string("must hold integers only, holds ") + TypeName(item));
    }
    numbers.push_back(number);
  }
  return std::optional<std::vector<int64_t>>(std::move(numbers));
}

Result<std::optional<std::vector<double>>> JsonObject::Doubles(std::string_view key) const {
  SKEIN_ASSIGN_OR_RETURN(const std::optional<element> value, Find(key));
  if (!value) return std::optional<std::vector<double>>();
  simdjson::dom::array array;
  if (value->get(array) != simdjson::SUCCESS) {
    return Error(key, std::string("must be a list of numbers, is ") + TypeName(*value));
  }
  std::vector<double> numbers;
  for (const element& item : array) {
    double number = 0;
    if (item.get(number) != simdjson::SUCCESS) {
      return Error(key, std::string("must be a list of numbers, holds ") + TypeName(item));
    }
    numbers.push_back(number);
  }
  return std::optional<std::vector<double>>(std::move(numbers));
}

Result<JsonFile> JsonFile::Parse(std::string_view text, std::string name) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  JsonFile file;
  file.parser_ = std::make_unique<simdjson::dom::parser>();
  simdjson::dom::element root;
  simdjson::error_code error = file.parser_->parse(text.data(), text.size()).get(root);
  if (error == simdjson::NUMBER_ERROR) {
    error = file.parser_->parse(WithReadableNumbers(text)).get(root);
  }
  if (error != simdjson::SUCCESS) {
    return Status(StatusCode::kInvalidArgument,
                  name + " is not valid JSON: " + simdjson::error_message(error));
  }
  simdjson::dom::object object;
  if (root.get(object) != simdjson::SUCCESS) {
    return Status(StatusCode::kInvalidArgument,
                  name + " must hold a JSON object, holds " + TypeName(root));
  }
  file.root_.emplace(object, std::move(name));
  return file;
}

Result<JsonFile> JsonFile::Load(const std::string& path, size_t max_bytes) {
  SKEIN_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, max_bytes));
  return Parse(text, path);
}

Result<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  std::error_code error;
  const bool exists = std::filesystem::exists(path, error);
  if (!exists) return Status(StatusCode::kNotFound, "no file " + path);
  if (!std::filesystem::is_regular_file(path, error)) {
    return Status(StatusCode::kInvalidArgument, path + " is not a regular file");
  }
  std::FILE* stream = std::fopen(path.c_str(), "rb");
  if (stream == nullptr) {
    return Status(StatusCode::kNotFound, "cannot open " + path + ": " + std::strerror(errno));
  }
  std::string text;
  char chunk[1 << 16];
  size_t count = 0;
  while (text.size() <= max_bytes && (count = std::fread(chunk, 1, sizeof(chunk), stream)) > 0) {
    text.append(chunk, count);
  }
  const bool failed = std::ferror(stream) != 0;
  std::fclose(stream);
  if (failed) return Status(StatusCode::kInvalidArgument, "cannot read " + path);
  if (text.size() > max_bytes) {
    return Status(StatusCode::kInvalidArgument,
                  path + " is longer than " + std::to_string(max_bytes) + " bytes");
  }
  return text;
}

}  // namespace skein
