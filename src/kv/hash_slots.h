#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace skein {

// Maps different hashes to numbers. Open addressing with linear probing; the table has a power of
// two of entries and is at most half full. Allocates nothing after construction. Not thread-safe.
// Every call is O(1) expected.
class HashSlots {
 public:
  static constexpr int32_t kNone = -1;

  // For at most `most` hashes at a time. REQUIRES: most >= 0.
  explicit HashSlots(int32_t most);

  // The number that the hash has; kNone if it has none.
  int32_t Find(uint64_t hash) const { return entries_[EntryOf(hash)].number; }
  // REQUIRES: number >= 0; the hash has no number; fewer than `most` hashes have one.
  void Insert(uint64_t hash, int32_t number);
  // REQUIRES: the hash has a number.
  void Erase(uint64_t hash);

  int32_t size() const { return size_; }

 private:
  struct Entry {
    uint64_t hash = 0;
    int32_t number = kNone;  // kNone: the entry is free
  };

  // The entry that holds `hash`, or the free entry for `hash`.
  size_t EntryOf(uint64_t hash) const;

  std::vector<Entry> entries_;
  int32_t most_;
  int32_t size_ = 0;
};

}  // namespace skein
