#include "kv/block_manager.h"

#include <algorithm>
#include <numeric>
#include <optional>

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

HostKey HostKeyAt(const PrefixHashes& hashes, std::span<const int32_t> tokens, int32_t i) {
  return {.hash = hashes[i],
          .parent = i == 0 ? std::nullopt : std::optional(hashes[i - 1]),
          .scope = hashes.scope(),
          .tokens = tokens.subspan(size_t{kBlockTokens} * i, kBlockTokens)};
}

}  // namespace

BlockManager::BlockManager(int32_t num_blocks, bool prefix_caching, int32_t num_states,
                           int32_t num_host_blocks)
    : pool_(num_blocks),
      index_(num_blocks),
      states_(num_states, num_blocks),
      host_(num_host_blocks),
      prefix_caching_(prefix_caching) {
  SKEIN_CHECK(num_host_blocks == 0 || (prefix_caching && num_states == 0));
  if (!prefix_caching) return;
  published_.reserve(num_blocks);
  evicted_.reserve(num_blocks);
  if (host_.enabled()) host_copies_.reserve(size_t{2} * num_blocks);
}

void BlockManager::ForgetChanges() {
  published_.clear();
  evicted_.clear();
}

BlockId BlockManager::Allocate() {
  if (pool_.num_free() == 0) {
    const BlockId evicted = pool_.EvictOldest();
    if (evicted == kNoBlock) return kNoBlock;
    Evict(evicted);
  }
  return pool_.Take();
}

void BlockManager::Evict(BlockId block) {
  if (host_.enabled()) {
    SaveOnHost(block);
  } else {
    NoteRemoved(index_.hash(block));
  }
  index_.Erase(block);
  states_.Forget(block);
}

void BlockManager::SaveOnHost(BlockId block) {
  const HostTier::Saved saved = host_.Save(HostKeyOf(block));
  if (saved.is_new) {
    host_copies_.push_back({.block = block, .slot = saved.slot, .to_host = true});
    ++num_saved_;
  }
  if (saved.dropped && !index_.ContainsHash(*saved.dropped)) NoteRemoved(*saved.dropped);
}

HostKey BlockManager::HostKeyOf(BlockId block) const {
  const BlockId parent = index_.parent(block);
  return {.hash = index_.hash(block),
          .parent = parent == kNoBlock ? std::nullopt : std::optional(index_.hash(parent)),
          .scope = index_.scope(block),
          .tokens = index_.tokens(block)};
}

void BlockManager::NoteStored(const PrefixKey& key) {
  published_.push_back(key.hash);
  if (listener_ == nullptr) return;
  const bool is_first = key.parent == kNoBlock;
  listener_->OnStored(key, is_first ? std::nullopt : std::optional(index_.hash(key.parent)));
}

void BlockManager::NoteRemoved(uint64_t hash) {
  evicted_.push_back(hash);
  if (listener_ != nullptr) listener_->OnRemoved(hash);
}

BlockManager::Prefix BlockManager::FindPrefix(const PrefixHashes& hashes,
                                              std::span<const int32_t> tokens, int32_t max_blocks,
                                              std::vector<BlockId>* blocks) const {
  Prefix prefix;
  if (!prefix_caching_) return prefix;
  SKEIN_CHECK(hashes.num_blocks() >= max_blocks);
  Prefix usable;  // up to the last block behind which a sequence may start
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
  if (!host_.enabled()) return usable;
  int32_t end = prefix.num_blocks;
  while (end < max_blocks && host_.Find(HostKeyAt(hashes, tokens, end)) != kNoSlot) ++end;
  usable.num_on_host = end - prefix.num_blocks;
  return usable;
}

int32_t BlockManager::NumPresent(const PrefixHashes& hashes, int32_t max_blocks) const {
  if (!prefix_caching_) return 0;
  SKEIN_CHECK(hashes.num_blocks() >= max_blocks);
  int32_t present = 0;
  int32_t missing = max_blocks + 1;  // the last of this many blocks is not present
  while (present + 1 < missing) {
    const int32_t middle = present + (missing - present) / 2;
    const uint64_t hash = hashes[middle - 1];
    (index_.ContainsHash(hash) || host_.ContainsHash(hash) ? present : missing) = middle;
  }
  return present;
}

bool BlockManager::Publish(const PrefixHashes& hashes, std::span<const int32_t> tokens, int32_t i,
                           std::span<BlockId> blocks) {
  SKEIN_CHECK(prefix_caching_);
  const PrefixKey key = KeyOf(hashes, tokens, i, i == 0 ? kNoBlock : blocks[i - 1]);
  const BlockId present = index_.Find(key);
  if (present == kNoBlock) {
    const HostSlot slot = host_.Find(HostKeyAt(hashes, tokens, i));
    if (slot == kNoSlot && host_.ContainsHash(key.hash)) return false;
    if (!index_.Insert(key, blocks[i])) return false;
    pool_.Keep(blocks[i]);
    if (slot == kNoSlot) {
      NoteStored(key);
    } else {
      host_.Demote(slot);
    }
  } else if (present != blocks[i]) {
    pool_.Ref(present);
    pool_.Unref(blocks[i]);
    blocks[i] = present;
  }
  return true;
}

// The last block first: a block is newer than the blocks behind it.
void BlockManager::TouchOnHost(const PrefixHashes& hashes, std::span<const int32_t> tokens,
                               int32_t first, int32_t count) {
  for (int32_t i = first + count; i-- > first;) {
    const HostSlot slot = host_.Find(HostKeyAt(hashes, tokens, i));
    if (slot != kNoSlot) host_.Touch(slot);
  }
}

// The slot is given away next: its contents are in two places.
bool BlockManager::Load(const PrefixHashes& hashes, std::span<const int32_t> tokens, int32_t i,
                        std::span<const BlockId> blocks) {
  const HostSlot slot = host_.Find(HostKeyAt(hashes, tokens, i));
  if (slot == kNoSlot) return false;
  const PrefixKey key = KeyOf(hashes, tokens, i, i == 0 ? kNoBlock : blocks[i - 1]);
  SKEIN_CHECK(index_.Insert(key, blocks[i]));
  pool_.Keep(blocks[i]);
  host_.Demote(slot);
  host_copies_.push_back({.block = blocks[i], .slot = slot, .to_host = false});
  ++num_loaded_;
  return true;
}

void BlockManager::TakeHostCopies(std::vector<HostCopy>* copies) {
  copies->assign(host_copies_.begin(), host_copies_.end());
  host_copies_.clear();
}

std::vector<BlockManager::Run> BlockManager::Runs() const {
  const auto count = static_cast<size_t>(num_blocks());
  std::vector<int32_t> num_children(count), run_of(count, -1);
  for (BlockId block = 0; block < num_blocks(); ++block) {
    if (index_.Contains(block) && index_.parent(block) != kNoBlock) {
      ++num_children[index_.parent(block)];
    }
  }
  std::vector<Run> runs;
  std::vector<int32_t> sizes;  // [runs]: blocks of the run and of all runs behind it
  std::vector<BlockId> path;
  for (BlockId first = 0; first < num_blocks(); ++first) {
    for (BlockId at = first; at != kNoBlock && index_.Contains(at) && run_of[at] < 0;
         at = index_.parent(at)) {
      path.push_back(at);
    }
    for (; !path.empty(); path.pop_back()) {
      const BlockId block = path.back(), parent = index_.parent(block);
      const bool goes_on =
          parent != kNoBlock && num_children[parent] == 1 && ref_count(parent) == ref_count(block);
      if (!goes_on) runs.push_back({parent == kNoBlock ? -1 : run_of[parent], 0, ref_count(block)});
      run_of[block] = goes_on ? run_of[parent] : static_cast<int32_t>(runs.size()) - 1;
      ++runs[run_of[block]].num_blocks;
    }
  }
  for (const Run& run : runs) sizes.push_back(run.num_blocks);
  for (size_t i = runs.size(); i-- > 0;) {
    if (runs[i].parent >= 0) sizes[runs[i].parent] += sizes[i];
  }
  // A parent has at least as many references as its children, and more blocks behind it. So the
  // sort puts each run behind its parent.
  std::vector<int32_t> order(runs.size()), place(runs.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int32_t a, int32_t b) {
    if (runs[a].num_sequences != runs[b].num_sequences) {
      return runs[a].num_sequences > runs[b].num_sequences;
    }
    return sizes[a] > sizes[b];
  });
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<int32_t>(i);
  std::vector<Run> sorted;
  for (const int32_t i : order) {
    sorted.push_back(runs[i]);
    if (runs[i].parent >= 0) sorted.back().parent = place[runs[i].parent];
  }
  return sorted;
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
  if (host_.enabled()) CheckHost();
}

void BlockManager::CheckHost() const {
  host_.CheckIntegrity();
  for (HostSlot slot = 0; slot < host_.size(); ++slot) {
    const std::optional<uint64_t> parent = host_.KeyOf(slot).parent;
    SKEIN_CHECK(!parent || index_.ContainsHash(*parent) || host_.ContainsHash(*parent));
  }
  for (BlockId block = 0; block < num_blocks(); ++block) {
    if (!index_.Contains(block) || !host_.ContainsHash(index_.hash(block))) continue;
    SKEIN_CHECK(host_.Find(HostKeyOf(block)) != kNoSlot);
  }
}

}  // namespace skein
