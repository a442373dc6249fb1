#include "kv/block_manager.h"

#include "base/check.h"

namespace skein {
namespace {

PrefixKey KeyOf(const PrefixHashes& hashes, std::span<const int32_t> tokens, int32_t i,
                BlockId parent) {
  return {.hash = hashes[i],
          .parent = parent,
          .scope = hashes.scope(),
          .tokens = tokens.subspan(size_t{kBlockTokens} * i, kBlockTokens)};
}

}  // namespace

BlockManager::BlockManager(int32_t num_blocks, bool prefix_caching, int32_t num_states)
    : pool_(num_blocks),
      index_(num_blocks),
      states_(num_states, num_blocks),
      prefix_caching_(prefix_caching) {
  if (!prefix_caching) return;
  published_.reserve(num_blocks);
  evicted_.reserve(num_blocks);
}

void BlockManager::ForgetChanges() {
  published_.clear();
  evicted_.clear();
}

BlockId BlockManager::Allocate() {
  if (pool_.num_free() == 0) {
    const BlockId evicted = pool_.EvictOldest();
    if (evicted == kNoBlock) return kNoBlock;
    evicted_.push_back(index_.hash(evicted));
    index_.Erase(evicted);
    states_.Forget(evicted);
  }
  return pool_.Take();
}

BlockManager::Prefix BlockManager::FindPrefix(const PrefixHashes& hashes,
                                              std::span<const int32_t> tokens, int32_t max_blocks,
                                              std::vector<BlockId>* blocks) const {
  Prefix prefix;
  if (!prefix_caching_) return prefix;
  SKEIN_CHECK(hashes.num_blocks() >= max_blocks);
  Prefix usable;  // up to the last block that a sequence may start behind
  BlockId parent = kNoBlock;
  for (int32_t i = 0; i < max_blocks; ++i) {
    const BlockId block = index_.Find(KeyOf(hashes, tokens, i, parent));
    if (block == kNoBlock) break;
    if (blocks != nullptr) blocks->push_back(block);
    ++prefix.num_blocks;
    if (pool_.ref_count(block) == 0) ++prefix.num_unreferenced;
    parent = block;
    if (!states_.enabled() || states_.Find(block) != kNoState) usable = prefix;
  }
  if (blocks != nullptr) blocks->resize(blocks->size() - prefix.num_blocks + usable.num_blocks);
  usable.num_present = prefix.num_blocks;
  return usable;
}

int32_t BlockManager::NumPresent(const PrefixHashes& hashes, int32_t max_blocks) const {
  if (!prefix_caching_) return 0;
  SKEIN_CHECK(hashes.num_blocks() >= max_blocks);
  int32_t present = 0;
  int32_t missing = max_blocks + 1;  // the last of these many blocks is not present
  while (present + 1 < missing) {
    const int32_t middle = present + (missing - present) / 2;
    (index_.ContainsHash(hashes[middle - 1]) ? present : missing) = middle;
  }
  return present;
}

bool BlockManager::Publish(const PrefixHashes& hashes, std::span<const int32_t> tokens, int32_t i,
                           std::span<BlockId> blocks) {
  SKEIN_CHECK(prefix_caching_);
  const PrefixKey key = KeyOf(hashes, tokens, i, i == 0 ? kNoBlock : blocks[i - 1]);
  const BlockId present = index_.Find(key);
  if (present == kNoBlock) {
    if (!index_.Insert(key, blocks[i])) return false;
    pool_.Keep(blocks[i]);
    published_.push_back(key.hash);
  } else if (present != blocks[i]) {
    pool_.Ref(present);
    pool_.Unref(blocks[i]);
    blocks[i] = present;
  }
  return true;
}

void BlockManager::Release(std::span<const BlockId> blocks) {
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) pool_.Unref(*block);
}

void BlockManager::CheckIntegrity() const {
  pool_.CheckIntegrity();
  index_.CheckIntegrity();
  states_.CheckIntegrity();
  for (BlockId block = 0; block < num_blocks(); ++block) {
    SKEIN_CHECK(pool_.kept(block) == index_.Contains(block));
    SKEIN_CHECK(states_.Find(block) == kNoState || index_.Contains(block));
    if (!index_.Contains(block) || index_.parent(block) == kNoBlock) continue;
    // A sequence that references a block references its parent, too.
    SKEIN_CHECK(pool_.ref_count(index_.parent(block)) >= pool_.ref_count(block));
  }
}

}  // namespace skein
