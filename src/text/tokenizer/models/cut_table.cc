#include "text/tokenizer/models/cut_table.h"

#include <bit>
#include <cstring>

namespace skein {
namespace {

// The number of bits for each window. One border in sixteen is then wrongly treated as crossed.
constexpr size_t kBitsPerWindow = 16;

size_t BitOf(uint64_t hash, size_t num_words) { return hash >> 20 & (num_words * 64 - 1); }

}  // namespace

uint64_t CutTable::HashWindow(const char* border) {
  uint64_t window = 0;
  std::memcpy(&window, border - kSide, 2 * kSide);
  window *= 0x9E3779B97F4A7C15;
  return (window ^ window >> 32) * 0xD6E8FEB86659FD93;
}

void CutTable::Add(std::string_view token) {
  for (size_t i = 1; i < token.size(); ++i) {
    if (!IsBorder(token[i])) continue;
    if (i >= kSide && token.size() - i >= kSide) {
      window_hashes_.push_back(HashWindow(token.data() + i));
    } else {
      crossed_pairs_.set(PairOf(token[i - 1], token[i]));
    }
  }
}

void CutTable::Finish() {
  windows_.assign(std::bit_ceil(window_hashes_.size() * kBitsPerWindow / 64 + 1), 0);
  for (const uint64_t hash : window_hashes_) {
    const size_t bit = BitOf(hash, windows_.size());
    windows_[bit / 64] |= uint64_t{1} << bit % 64;
  }
  window_hashes_ = {};
}

size_t CutTable::FindCut(std::string_view word, size_t begin) const {
  for (size_t i = begin + 1; i < word.size(); ++i) {
    if (!IsBorder(word[i]) || crossed_pairs_[PairOf(word[i - 1], word[i])]) continue;
    // The bytes before `begin` were cut off, so no token reaches that far.
    if (i - begin < kSide || word.size() - i < kSide) return i;
    const size_t bit = BitOf(HashWindow(word.data() + i), windows_.size());
    if (!(windows_[bit / 64] >> bit % 64 & 1)) return i;
  }
  return word.size();
}

}  // namespace skein
