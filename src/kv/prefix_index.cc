#include "kv/prefix_index.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace skein {

PrefixIndex::PrefixIndex(int32_t num_blocks) {
  SKEIN_CHECK(num_blocks >= 1);
  entries_.resize(num_blocks);
  tokens_.resize(size_t{kBlockTokens} * num_blocks);
  slots_.assign(std::bit_ceil(2 * static_cast<size_t>(num_blocks)), kNoBlock);
}

size_t PrefixIndex::SlotOf(uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  while (slots_[slot] != kNoBlock && entries_[slots_[slot]].hash != hash) slot = (slot + 1) & mask;
  return slot;
}

std::span<const int32_t> PrefixIndex::TokensOf(BlockId block) const {
  return std::span(tokens_).subspan(size_t{kBlockTokens} * block, kBlockTokens);
}

BlockId PrefixIndex::Find(const PrefixKey& key) const {
  const BlockId block = slots_[SlotOf(key.hash)];
  if (block == kNoBlock) return kNoBlock;
  const Entry& entry = entries_[block];
  const bool same = entry.parent == key.parent && entry.scope == key.scope &&
                    std::ranges::equal(TokensOf(block), key.tokens);
  return same ? block : kNoBlock;
}

bool PrefixIndex::Insert(const PrefixKey& key, BlockId block) {
  SKEIN_CHECK(key.tokens.size() == kBlockTokens);
  SKEIN_CHECK(!entries_[block].indexed);
  SKEIN_CHECK(key.parent == kNoBlock || entries_[key.parent].indexed);
  const size_t slot = SlotOf(key.hash);
  if (slots_[slot] != kNoBlock) return false;
  slots_[slot] = block;
  entries_[block] =
      Entry{.hash = key.hash, .scope = key.scope, .parent = key.parent, .indexed = true};
  if (key.parent != kNoBlock) ++entries_[key.parent].num_children;
  std::ranges::copy(key.tokens, tokens_.begin() + std::ptrdiff_t{kBlockTokens} * block);
  ++size_;
  return true;
}

void PrefixIndex::Erase(BlockId block) {
  Entry& entry = entries_[block];
  SKEIN_CHECK(entry.indexed && entry.num_children == 0);
  if (entry.parent != kNoBlock) --entries_[entry.parent].num_children;
  const size_t mask = slots_.size() - 1;
  size_t hole = SlotOf(entry.hash);
  SKEIN_CHECK(slots_[hole] == block);
  slots_[hole] = kNoBlock;
  // Later entries of the probe run move back, so that no search stops at the hole before them.
  for (size_t slot = (hole + 1) & mask; slots_[slot] != kNoBlock; slot = (slot + 1) & mask) {
    const size_t home = entries_[slots_[slot]].hash & mask;
    if (((slot - home) & mask) >= ((slot - hole) & mask)) {
      slots_[hole] = slots_[slot];
      slots_[slot] = kNoBlock;
      hole = slot;
    }
  }
  entry = Entry{};
  --size_;
}

void PrefixIndex::CheckIntegrity() const {
  int32_t in_slots = 0;
  for (const BlockId block : slots_) {
    if (block == kNoBlock) continue;
    ++in_slots;
    SKEIN_CHECK(entries_[block].indexed);
  }
  SKEIN_CHECK(in_slots == size_);
  int32_t indexed = 0;
  std::vector<int32_t> num_children(entries_.size());
  for (size_t block = 0; block < entries_.size(); ++block) {
    const Entry& entry = entries_[block];
    if (!entry.indexed) continue;
    ++indexed;
    SKEIN_CHECK(slots_[SlotOf(entry.hash)] == static_cast<BlockId>(block));
    if (entry.parent == kNoBlock) continue;
    SKEIN_CHECK(entries_[entry.parent].indexed);
    ++num_children[entry.parent];
  }
  SKEIN_CHECK(indexed == size_);
  for (size_t block = 0; block < entries_.size(); ++block) {
    SKEIN_CHECK(num_children[block] == entries_[block].num_children);
  }
}

}  // namespace skein
