#include "kv/prefix_index.h"

#include <algorithm>

#include "base/check.h"

namespace skein {

PrefixIndex::PrefixIndex(int32_t num_blocks) : table_(num_blocks) {
  SKEIN_CHECK(num_blocks >= 1);
  entries_.resize(num_blocks);
  tokens_.resize(size_t{kBlockTokens} * num_blocks);
}

BlockId PrefixIndex::Find(const PrefixKey& key) const {
  const BlockId block = table_.Find(key.hash);
  if (block == kNoBlock) return kNoBlock;
  const Entry& entry = entries_[block];
  const bool same = entry.parent == key.parent && entry.scope == key.scope &&
                    std::ranges::equal(tokens(block), key.tokens);
  return same ? block : kNoBlock;
}

bool PrefixIndex::Insert(const PrefixKey& key, BlockId block) {
  SKEIN_CHECK(key.tokens.size() == kBlockTokens);
  SKEIN_CHECK(!entries_[block].indexed);
  SKEIN_CHECK(key.parent == kNoBlock || entries_[key.parent].indexed);
  if (ContainsHash(key.hash)) return false;
  table_.Insert(key.hash, block);
  entries_[block] =
      Entry{.hash = key.hash, .scope = key.scope, .parent = key.parent, .indexed = true};
  if (key.parent != kNoBlock) ++entries_[key.parent].num_children;
  std::ranges::copy(key.tokens, tokens_.begin() + std::ptrdiff_t{kBlockTokens} * block);
  return true;
}

void PrefixIndex::Erase(BlockId block) {
  Entry& entry = entries_[block];
  SKEIN_CHECK(entry.indexed && entry.num_children == 0);
  if (entry.parent != kNoBlock) --entries_[entry.parent].num_children;
  SKEIN_CHECK(table_.Find(entry.hash) == block);
  table_.Erase(entry.hash);
  entry = Entry{};
}

void PrefixIndex::CheckIntegrity() const {
  int32_t indexed = 0;
  std::vector<int32_t> num_children(entries_.size());
  for (size_t block = 0; block < entries_.size(); ++block) {
    const Entry& entry = entries_[block];
    if (!entry.indexed) continue;
    ++indexed;
    SKEIN_CHECK(table_.Find(entry.hash) == static_cast<BlockId>(block));
    if (entry.parent == kNoBlock) continue;
    SKEIN_CHECK(entries_[entry.parent].indexed);
    ++num_children[entry.parent];
  }
  SKEIN_CHECK(indexed == size());
  for (size_t block = 0; block < entries_.size(); ++block) {
    SKEIN_CHECK(num_children[block] == entries_[block].num_children);
  }
}

}  // namespace skein
