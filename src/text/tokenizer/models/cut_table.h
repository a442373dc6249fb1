#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

namespace skein {

// Tells borders between characters of a word that no token reaches across: merges never do, either,
// so that the parts can be encoded one by one. Only borders in front of a character beyond ASCII
// are judged: elsewhere nearly all may be crossed. Immutable once built.
class CutTable {
 public:
  // All tokens by their bytes, then Finish.
  void Add(std::string_view token);
  void Finish();

  // The first border in (begin, word.size()) that no token crosses, or word.size(). REQUIRES: valid
  // UTF-8 from `begin` on; what is before `begin` does not matter.
  size_t FindCut(std::string_view word, size_t begin) const;

 private:
  // A token with as many bytes on both sides of a border is known by these bytes, one with fewer
  // by the two next to the border.
  static constexpr size_t kSide = 3;

  static bool IsBorder(char behind) { return (behind & 0xC0) == 0xC0; }
  static size_t PairOf(char before, char behind) {
    return size_t{static_cast<uint8_t>(before)} << 8 | static_cast<uint8_t>(behind);
  }
  static uint64_t HashWindow(const char* border);

  std::bitset<65536> crossed_pairs_;
  std::vector<uint64_t> window_hashes_;  // until Finish
  std::vector<uint64_t> windows_;        // bits by hash; a power of two of words
};

}  // namespace skein
