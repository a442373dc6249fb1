#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace skein {

// Unicode normalization form C with the data of the reference, which is that of Unicode 9.0.
// Immutable.
class Nfc {
 public:
  Nfc();

  // The beginning of the first character at or after `pos` that may change, or that may change the
  // text before it; text.size() if there is none. The text before it is normalized. REQUIRES: valid
  // UTF-8.
  size_t FindUnstable(std::string_view text, size_t pos) const;
  // REQUIRES: valid UTF-8.
  std::string Normalize(std::string_view text) const;

 private:
  friend class NormalForms;
  void FindUnstableCodePoints();
  bool IsStable(uint32_t c) const { return !(unstable_[c >> 6] >> (c & 63) & 1); }
  // Appends the normalized text. Does not search for stable parts.
  void NormalizeSpan(std::string_view text, std::string* out) const;
  void Decompose(uint32_t c, std::vector<uint32_t>* out) const;
  uint8_t CombiningClass(uint32_t c) const;
  uint32_t Compose(uint32_t first, uint32_t second) const;  // 0 if the two do not compose

  std::vector<uint64_t> unstable_;                         // a bit for each code point
  std::unordered_map<uint32_t, uint32_t> decompositions_;  // code point -> index of its length
  std::unordered_map<uint32_t, uint8_t> combining_classes_;
  std::unordered_map<uint64_t, uint32_t> compositions_;  // first << 32 | second
};

}  // namespace skein
