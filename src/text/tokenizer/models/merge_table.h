#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "skein/request.h"

namespace skein {

// The merge of two adjacent tokens: rank << 32 | id. The merge with the smaller value is better.
using MergeValue = uint64_t;
inline constexpr MergeValue kNoMerge = ~uint64_t{0};

inline MergeValue MakeMergeValue(uint32_t rank, TokenId id) {
  return uint64_t{rank} << 32 | static_cast<uint32_t>(id);
}
inline TokenId MergedId(MergeValue value) { return static_cast<TokenId>(value & 0xFFFFFFFF); }

// Maps pairs of ids to their merge: a hash table with open addressing and four entries per cache
// line. Most pairs that are looked up do not merge. A filter of about ten bits per pair, small
// enough for the nearer caches, answers nine in ten of these lookups.
class MergeTable {
 public:
  explicit MergeTable(size_t max_pairs = 0)
      : slots_(std::bit_ceil(max_pairs + max_pairs / 2 + 2)),
        filter_(std::bit_ceil(max_pairs / 6 + 1)),
        slot_shift_(64 - std::countr_zero(slots_.size())) {}

  // Sets the value of a pair, also of an existing one. REQUIRES: at most max_pairs different pairs.
  void Set(TokenId left, TokenId right, MergeValue value) {
    const uint64_t key = Key(left, right), hash = Hash(key);
    size_t slot = Home(hash);
    while (slots_[slot].key != kFree && slots_[slot].key != key) slot = Next(slot);
    filter_[FilterWord(hash)] |= FilterBit(hash);
    slots_[slot] = {key, value};
  }
  MergeValue Find(TokenId left, TokenId right) const {
    const uint64_t key = Key(left, right), hash = Hash(key);
    if (!(filter_[FilterWord(hash)] & FilterBit(hash))) return kNoMerge;
    size_t slot = Home(hash);
    while (slots_[slot].key != key) {
      if (slots_[slot].key == kFree) return kNoMerge;
      slot = Next(slot);
    }
    return slots_[slot].value;
  }

 private:
  static constexpr uint64_t kFree = ~uint64_t{0};  // ids are not negative
  struct Slot {
    uint64_t key = kFree;
    MergeValue value = kNoMerge;
  };
  static uint64_t Key(TokenId left, TokenId right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  static uint64_t Hash(uint64_t key) {
    const uint64_t mixed = (key ^ key >> 29) * 0x9E3779B97F4A7C15;
    return (mixed ^ mixed >> 31) * 0xD6E8FEB86659FD93;
  }
  // The high bits of the hash select the home slot, its lower bits the bit of the filter.
  size_t Home(uint64_t hash) const { return hash >> slot_shift_; }
  size_t FilterWord(uint64_t hash) const { return hash >> 14 & (filter_.size() - 1); }
  static uint64_t FilterBit(uint64_t hash) { return uint64_t{1} << (hash >> 8 & 63); }
  size_t Next(size_t slot) const { return (slot + 1) & (slots_.size() - 1); }

  std::vector<Slot> slots_;       // the size is a power of two, at least 2
  std::vector<uint64_t> filter_;  // bits; the number of words is a power of two
  int slot_shift_;
};

}  // namespace skein
