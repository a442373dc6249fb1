#include "kv/block_pool.h"

#include "base/check.h"

namespace skein {

BlockPool::BlockPool(int32_t num_blocks) {
  SKEIN_CHECK(num_blocks >= 1);
  blocks_.resize(num_blocks);
  for (BlockId block = num_blocks - 1; block >= 0; --block) PushFree(block);
}

const BlockPool::Block& BlockPool::At(BlockId block) const {
  SKEIN_CHECK(block >= 0 && block < num_blocks());
  return blocks_[block];
}

BlockPool::Block& BlockPool::At(BlockId block) {
  SKEIN_CHECK(block >= 0 && block < num_blocks());
  return blocks_[block];
}

BlockId BlockPool::Take() {
  if (free_head_ == kNoBlock) return kNoBlock;
  const BlockId block = free_head_;
  Block& entry = blocks_[block];
  free_head_ = entry.next;
  --num_free_;
  entry = Block{.ref_count = 1};
  return block;
}

BlockId BlockPool::EvictOldest() {
  if (oldest_ == kNoBlock) return kNoBlock;
  const BlockId block = oldest_;
  Unlink(block);
  PushFree(block);
  return block;
}

void BlockPool::Ref(BlockId block) {
  Block& entry = At(block);
  SKEIN_CHECK(entry.ref_count > 0 || entry.kept);
  if (entry.ref_count == 0) Unlink(block);
  ++entry.ref_count;
}

void BlockPool::Unref(BlockId block) {
  Block& entry = At(block);
  SKEIN_CHECK(entry.ref_count > 0);
  if (--entry.ref_count > 0) return;
  if (!entry.kept) {
    PushFree(block);
    return;
  }
  entry.previous = newest_;
  entry.next = kNoBlock;
  (newest_ == kNoBlock ? oldest_ : blocks_[newest_].next) = block;
  newest_ = block;
  ++num_cached_;
}

void BlockPool::Keep(BlockId block) {
  SKEIN_CHECK(At(block).ref_count > 0);
  At(block).kept = true;
}

void BlockPool::Discard(BlockId block) {
  Block& entry = At(block);
  SKEIN_CHECK(entry.kept);
  entry.kept = false;
  if (entry.ref_count > 0) return;
  Unlink(block);
  PushFree(block);
}

void BlockPool::PushFree(BlockId block) {
  blocks_[block] = Block{.next = free_head_};
  free_head_ = block;
  ++num_free_;
}

void BlockPool::Unlink(BlockId block) {
  Block& entry = blocks_[block];
  (entry.previous == kNoBlock ? oldest_ : blocks_[entry.previous].next) = entry.next;
  (entry.next == kNoBlock ? newest_ : blocks_[entry.next].previous) = entry.previous;
  entry.previous = entry.next = kNoBlock;
  --num_cached_;
}

void BlockPool::CheckIntegrity() const {
  std::vector<bool> seen(blocks_.size());
  int32_t free = 0;
  for (BlockId block = free_head_; block != kNoBlock; block = At(block).next) {
    SKEIN_CHECK(!seen[block] && blocks_[block].ref_count == 0 && !blocks_[block].kept);
    seen[block] = true;
    ++free;
  }
  SKEIN_CHECK(free == num_free_);
  int32_t cached = 0;
  BlockId previous = kNoBlock;
  for (BlockId block = oldest_; block != kNoBlock; block = At(block).next) {
    SKEIN_CHECK(!seen[block] && blocks_[block].ref_count == 0 && blocks_[block].kept);
    SKEIN_CHECK(blocks_[block].previous == previous);
    seen[block] = true;
    previous = block;
    ++cached;
  }
  SKEIN_CHECK(cached == num_cached_ && previous == newest_);
  for (BlockId block = 0; block < num_blocks(); ++block) {
    SKEIN_CHECK(seen[block] == (blocks_[block].ref_count == 0));
  }
}

}  // namespace skein
