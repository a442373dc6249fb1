#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/block_pool.h"
#include "kv/hash_slots.h"
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
  bool ContainsHash(uint64_t hash) const { return table_.Find(hash) != kNoBlock; }
  // Indexes `block` under `key`. Returns false and changes nothing if other content has the hash.
  // REQUIRES: Find(key) == kNoBlock, the parent is indexed, the block is not indexed.
  bool Insert(const PrefixKey& key, BlockId block);
  // REQUIRES: the block is indexed and no indexed block has it as parent.
  void Erase(BlockId block);

  bool Contains(BlockId block) const { return entries_[block].indexed; }
  BlockId parent(BlockId block) const { return entries_[block].parent; }
  // REQUIRES: the block is indexed.
  uint64_t hash(BlockId block) const { return entries_[block].hash; }
  const PrefixScope& scope(BlockId block) const { return entries_[block].scope; }
  std::span<const int32_t> tokens(BlockId block) const {  // [kBlockTokens]
    return std::span(tokens_).subspan(size_t{kBlockTokens} * block, kBlockTokens);
  }
  int32_t size() const { return table_.size(); }

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

  std::vector<Entry> entries_;   // [num_blocks]
  std::vector<int32_t> tokens_;  // [num_blocks][kBlockTokens]
  HashSlots table_;              // the block with each hash
};

}  // namespace skein
