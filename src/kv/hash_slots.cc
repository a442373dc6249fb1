#include "kv/hash_slots.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace skein {

HashSlots::HashSlots(int32_t most) : most_(most) {
  SKEIN_CHECK(most >= 0);
  entries_.resize(std::bit_ceil(2 * static_cast<size_t>(std::max(most, 1))));
}

size_t HashSlots::EntryOf(uint64_t hash) const {
  const size_t mask = entries_.size() - 1;
  size_t at = hash & mask;
  while (entries_[at].number != kNone && entries_[at].hash != hash) at = (at + 1) & mask;
  return at;
}

void HashSlots::Insert(uint64_t hash, int32_t number) {
  SKEIN_CHECK(number >= 0 && size_ < most_);
  Entry& entry = entries_[EntryOf(hash)];
  SKEIN_CHECK(entry.number == kNone);
  entry = {hash, number};
  ++size_;
}

void HashSlots::Erase(uint64_t hash) {
  const size_t mask = entries_.size() - 1;
  size_t hole = EntryOf(hash);
  SKEIN_CHECK(entries_[hole].number != kNone);
  // Later entries of the probe run move back, so that no search stops at the hole before them.
  for (size_t at = (hole + 1) & mask; entries_[at].number != kNone; at = (at + 1) & mask) {
    const size_t home = entries_[at].hash & mask;
    if (((at - home) & mask) >= ((at - hole) & mask)) {
      entries_[hole] = entries_[at];
      hole = at;
    }
  }
  entries_[hole] = {};
  --size_;
}

}  // namespace skein
