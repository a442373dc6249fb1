#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace skein {

// Unicode normalization form C by the reference's data, which ends with Unicode 9.0. Immutable.
class Nfc {
 public:
  Nfc();

  // REQUIRES: valid UTF-8.
  std::string Normalize(std::string_view text) const;

 private:
  friend class NormalForms;
  void Decompose(uint32_t c, std::vector<uint32_t>* out) const;
  uint8_t CombiningClass(uint32_t c) const;
  uint32_t Compose(uint32_t first, uint32_t second) const;  // 0 if they do not

  std::unordered_map<uint32_t, uint32_t> decompositions_;  // code point -> index of its length
  std::unordered_map<uint32_t, uint8_t> combining_classes_;
  std::unordered_map<uint64_t, uint32_t> compositions_;  // first << 32 | second
};

}  // namespace skein
