#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace skein {

static_assert(std::endian::native == std::endian::little, "numbers travel as they lie in memory");

using WireBytes = std::vector<std::byte>;

// Appends values to a message: numbers in little-endian order, lists behind their 32-bit length.
class WireWriter {
 public:
  explicit WireWriter(WireBytes* out) : out_(out) {}

  template <typename T>
  void Number(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    Raw(std::as_bytes(std::span(&value, 1)));
  }
  void Flag(bool value) { Number(static_cast<uint8_t>(value)); }
  void Text(std::string_view text) { List(std::span(text)); }
  template <typename T>
  void List(std::span<const T> values) {
    static_assert(std::is_arithmetic_v<T>);
    Number(static_cast<uint32_t>(values.size()));
    Raw(std::as_bytes(values));
  }
  void Raw(std::span<const std::byte> bytes) {
    out_->insert(out_->end(), bytes.begin(), bytes.end());
  }

 private:
  WireBytes* const out_;
};

// Reads the values of a message, in the order in which they were written. After the first value
// that is missing from the bytes, every further value is 0 or empty, and failed() names the field.
// A list's length is checked against the remaining bytes before memory is taken for the list.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  T Number(const char* field) {
    static_assert(std::is_arithmetic_v<T>);
    T value{};
    const std::span<const std::byte> raw = Raw(field, sizeof(T));
    if (!raw.empty()) std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }
  bool Flag(const char* field) {
    const auto value = Number<uint8_t>(field);
    if (value > 1) Fail(field);
    return value == 1;
  }
  std::string Text(const char* field) {
    const std::vector<char> chars = List<char>(field);
    return {chars.begin(), chars.end()};
  }
  template <typename T>
  std::vector<T> List(const char* field) {
    static_assert(std::is_arithmetic_v<T>);
    const size_t count = Count(field, sizeof(T));
    std::vector<T> values(count);
    const std::span<const std::byte> raw = Raw(field, count * sizeof(T));
    if (!raw.empty()) std::memcpy(values.data(), raw.data(), raw.size());
    return values;
  }
  // Reads the length of a list whose items take at least `least_bytes` each.
  size_t Count(const char* field, size_t least_bytes) {
    const auto count = Number<uint32_t>(field);
    if (count > bytes_.size() / least_bytes) Fail(field);
    return failed() ? 0 : count;
  }
  std::span<const std::byte> Raw(const char* field, size_t size) {
    if (failed() || size > bytes_.size()) {
      Fail(field);
      return {};
    }
    const std::span<const std::byte> raw = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return raw;
  }
  std::span<const std::byte> rest() const { return bytes_; }
  void Fail(const char* field) {
    if (field_ == nullptr) field_ = field;
    bytes_ = {};
  }

  bool failed() const { return field_ != nullptr; }
  const char* field() const { return field_; }

 private:
  std::span<const std::byte> bytes_;
  const char* field_ = nullptr;  // the first field that was missing from the bytes
};

}  // namespace skein
