#pragma once

#include <cstdint>
#include <vector>

namespace skein {

// A KV block: kBlockTokens tokens of every layer.
using BlockId = int32_t;
inline constexpr int32_t kBlockTokens = 32;
inline constexpr BlockId kNoBlock = -1;

// The number of blocks that `num_tokens` tokens need.
constexpr int32_t BlocksFor(int64_t num_tokens) {
  return static_cast<int32_t>((num_tokens + kBlockTokens - 1) / kBlockTokens);
}

// The states and reference counts of blocks. Every block is in exactly one state:
//
//            Take                     Unref of the last reference
//   free ------------> referenced -----------------------------------> free
//    ^                  |      ^       (not kept)
//    |   Unref of the   |      |
//    |   last reference |      | Ref
//    |   (kept)         v      |
//    +---------------- cached -+
//        EvictOldest, Discard
//
// Cached blocks are ordered by their last release. If a sequence releases its last block first,
// EvictOldest takes blocks of the least recently used sequence first, and of these the last block
// first. Integers only: the pool knows neither memory nor contents. Not thread-safe. Every call is
// O(1).
class BlockPool {
 public:
  // REQUIRES: num_blocks >= 1.
  explicit BlockPool(int32_t num_blocks);

  int32_t num_blocks() const { return static_cast<int32_t>(blocks_.size()); }
  int32_t num_free() const { return num_free_; }
  int32_t num_cached() const { return num_cached_; }
  int32_t num_referenced() const { return num_blocks() - num_free_ - num_cached_; }
  int32_t ref_count(BlockId block) const { return At(block).ref_count; }
  bool kept(BlockId block) const { return At(block).kept; }

  // Returns a free block with one reference; kNoBlock if no block is free.
  BlockId Take();
  // Frees the cached block that was released longest ago and returns it; kNoBlock if no block is
  // cached.
  BlockId EvictOldest();

  // REQUIRES: the block is referenced or cached.
  void Ref(BlockId block);
  // REQUIRES: the block is referenced.
  void Unref(BlockId block);
  // Lets the last Unref of the block make it cached, not free. REQUIRES: the block is referenced.
  void Keep(BlockId block);
  // Undoes Keep: a cached block becomes free. REQUIRES: the block is kept.
  void Discard(BlockId block);

  // Aborts unless lists, counts and states agree. O(num_blocks).
  void CheckIntegrity() const;

 private:
  struct Block {
    int32_t ref_count = 0;
    bool kept = false;
    BlockId previous = kNoBlock;  // in the cached list
    BlockId next = kNoBlock;      // in the cached or the free list
  };

  const Block& At(BlockId block) const;
  Block& At(BlockId block);
  void PushFree(BlockId block);
  void Unlink(BlockId block);  // from the cached list

  std::vector<Block> blocks_;
  BlockId free_head_ = kNoBlock;
  BlockId oldest_ = kNoBlock;
  BlockId newest_ = kNoBlock;
  int32_t num_free_ = 0;
  int32_t num_cached_ = 0;
};

}  // namespace skein
