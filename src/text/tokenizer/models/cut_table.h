#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

namespace skein {

// Finds borders between characters of a word that no token crosses. Merges do not cross such
// borders either, so the parts can be encoded separately. Only borders before a character beyond
// ASCII are examined: nearly all others are crossed by some token. Immutable once built.
class CutTable {
 public:
  // Add is called with the bytes of every token, then Finish once.
  void Add(std::string_view token);
  void Finish();

  // The first border in (begin, word.size()) that no token crosses, or word.size(). REQUIRES: valid
  // UTF-8 from `begin` on; bytes before `begin` are ignored.
  size_t FindCut(std::string_view word, size_t begin) const;

 private:
  // A crossed border is recorded by the kSide bytes of the token on each side of it. If the token
  // has fewer bytes on one side, only the two bytes next to the border are recorded.
  static constexpr size_t kSide = 3;

  static bool IsBorder(char behind) { return (behind & 0xC0) == 0xC0; }
  static size_t PairOf(char before, char behind) {
    return size_t{static_cast<uint8_t>(before)} << 8 | static_cast<uint8_t>(behind);
  }
  static uint64_t HashWindow(const char* border);

  std::bitset<65536> crossed_pairs_;
  std::vector<uint64_t> window_hashes_;  // used until Finish
  std::vector<uint64_t> windows_;        // a bit for each hash
};

}  // namespace skein
