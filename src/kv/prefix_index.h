#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/block_pool.h"
#include "kv/prefix_hashes.h"

namespace skein {

// The key of one full block of a sequence.
struct PrefixKey {
  uint64_t hash = 0;          // covers all tokens up to the block's end
  BlockId parent = kNoBlock;  // the block before this one; kNoBlock for the first
  PrefixScope scope;
  std::span<const int32_t> tokens;  // [kBlockTokens], the tokens of this block
};

// Maps prefixes to blocks. A hit is confirmed by the identity of the parent block, the scope and
// the block's own tokens. So equal hashes of different contents never share a block. A block is
// indexed only while its parent is: the caller erases children first. Allocates nothing after
// construction. Not thread-safe. Every call is O(1) expected.
class PrefixIndex {
 public:
  // REQUIRES: num_blocks >= 1.
  explicit PrefixIndex(int32_t num_blocks);

  // Returns the block with this content, or kNoBlock.
  BlockId Find(const PrefixKey& key) const;
  // Whether any block has this hash.
  bool ContainsHash(uint64_t hash) const { return slots_[SlotOf(hash)] != kNoBlock; }
  // Indexes `block` under `key`. Returns false and changes nothing if other content has the hash.
  // REQUIRES: Find(key) == kNoBlock, the parent is indexed, the block is not indexed.
  bool Insert(const PrefixKey& key, BlockId block);
  // REQUIRES: the block is indexed and no indexed block has it as parent.
  void Erase(BlockId block);

  bool Contains(BlockId block) const { return entries_[block].indexed; }
  BlockId parent(BlockId block) const { return entries_[block].parent; }
  // REQUIRES: the block is indexed.
  uint64_t hash(BlockId block) const { return entries_[block].hash; }
  int32_t size() const { return size_; }

  // Aborts unless table and entries agree and the index is closed under prefixes. O(num_blocks).
  void CheckIntegrity() const;

 private:
  struct Entry {
    uint64_t hash = 0;
    PrefixScope scope;
    BlockId parent = kNoBlock;
    int32_t num_children = 0;
    bool indexed = false;
  };

  // The slot that holds `hash`, or the free slot for `hash`.
  size_t SlotOf(uint64_t hash) const;
  std::span<const int32_t> TokensOf(BlockId block) const;

  std::vector<Entry> entries_;   // [num_blocks]
  std::vector<int32_t> tokens_;  // [num_blocks][kBlockTokens]
  // Open addressing with linear probing; the size is a power of two, at most half full.
  std::vector<BlockId> slots_;
  int32_t size_ = 0;
};

}  // namespace skein
