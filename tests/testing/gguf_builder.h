#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace skein::testing {

// Builds the bytes of a GGUF file, entry by entry. Nothing is checked: tests write lies with it.
class GgufBuilder {
 public:
  static constexpr uint32_t kU32 = 4, kF32 = 6, kBool = 7, kString = 8, kArray = 9, kU64 = 10;

  template <typename T>
  static std::string Bytes(T value) {
    std::string bytes(sizeof(T), '\0');
    std::memcpy(bytes.data(), &value, sizeof(T));
    return bytes;
  }
  static std::string String(const std::string& text) { return Bytes(uint64_t{text.size()}) + text; }

  GgufBuilder& Entry(const std::string& key, uint32_t kind, const std::string& value) {
    metadata_ += String(key) + Bytes(kind) + value;
    ++num_metadata;
    return *this;
  }
  GgufBuilder& Int(const std::string& key, uint32_t value) {
    return Entry(key, kU32, Bytes(value));
  }
  GgufBuilder& Float(const std::string& key, float value) { return Entry(key, kF32, Bytes(value)); }
  GgufBuilder& Bool(const std::string& key, bool value) {
    return Entry(key, kBool, Bytes(uint8_t{value}));
  }
  GgufBuilder& Text(const std::string& key, const std::string& value) {
    return Entry(key, kString, String(value));
  }
  GgufBuilder& Texts(const std::string& key, const std::vector<std::string>& values) {
    std::string bytes = Bytes(kString) + Bytes(uint64_t{values.size()});
    for (const std::string& value : values) bytes += String(value);
    return Entry(key, kArray, bytes);
  }
  GgufBuilder& Ints(const std::string& key, const std::vector<uint32_t>& values) {
    std::string bytes = Bytes(kU32) + Bytes(uint64_t{values.size()});
    for (const uint32_t value : values) bytes += Bytes(value);
    return Entry(key, kArray, bytes);
  }

  // `dims`: the contiguous dimension first. The data follows what earlier tensors have.
  GgufBuilder& Tensor(const std::string& name, const std::vector<uint64_t>& dims, uint32_t type,
                      const std::string& data) {
    Directory(name, dims, type, data_.size());
    data_ += data;
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  // An entry of the directory alone.
  GgufBuilder& Directory(const std::string& name, const std::vector<uint64_t>& dims, uint32_t type,
                         uint64_t offset) {
    tensors_ += String(name) + Bytes(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) tensors_ += Bytes(dim);
    tensors_ += Bytes(type) + Bytes(offset);
    ++num_tensors;
    return *this;
  }

  std::string Build() const {
    std::string file =
        "GGUF" + Bytes(version) + Bytes(num_tensors) + Bytes(num_metadata) + metadata_ + tensors_;
    file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data_;
  }

  uint32_t version = 3;
  uint64_t num_tensors = 0, num_metadata = 0;
  uint64_t alignment = 32;

 private:
  std::string metadata_, tensors_, data_;
};

}  // namespace skein::testing
