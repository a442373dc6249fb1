#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/block_pool.h"
#include "kv/prefix_hashes.h"
#include "kv/prefix_index.h"

namespace skein {

// Block pool and prefix cache together: hands out blocks, evicting cached ones when no other is
// free, and lets sequences share what they have in common. What is cached is always closed under
// prefixes: a sequence references its blocks from the first on, and Release gives the last back
// first. Not thread-safe.
class BlockManager {
 public:
  // Without prefix caching nothing is ever found or published. REQUIRES: num_blocks >= 1.
  BlockManager(int32_t num_blocks, bool prefix_caching);

  int32_t num_blocks() const { return pool_.num_blocks(); }
  int32_t num_referenced() const { return pool_.num_referenced(); }
  int32_t num_cached() const { return pool_.num_cached(); }
  int32_t num_free() const { return pool_.num_free(); }
  // Blocks that Allocate can hand out, at the cost of the cache.
  int32_t num_available() const { return pool_.num_free() + pool_.num_cached(); }
  bool prefix_caching() const { return prefix_caching_; }
  int32_t ref_count(BlockId block) const { return pool_.ref_count(block); }

  // A block with one reference, or kNoBlock when all are referenced.
  BlockId Allocate();

  struct Prefix {
    int32_t num_blocks = 0;
    int32_t num_unreferenced = 0;  // of these, those that an attachment takes from num_available
  };
  // The longest cached prefix of `tokens`, at most `max_blocks`, appended to `*blocks` (may be
  // null) but not yet referenced: Ref each before the next Allocate. REQUIRES: `hashes` covers
  // max_blocks.
  Prefix FindPrefix(const PrefixHashes& hashes, std::span<const int32_t> tokens, int32_t max_blocks,
                    std::vector<BlockId>* blocks) const;

  // How many of the first `max_blocks` blocks are there, by hash alone: what FindPrefix finds but
  // for collisions of hashes. O(log max_blocks), since what is cached is closed under prefixes.
  // REQUIRES: as FindPrefix.
  int32_t NumPresent(const PrefixHashes& hashes, int32_t max_blocks) const;

  void Ref(BlockId block) { pool_.Ref(block); }
  void Unref(BlockId block) { pool_.Unref(block); }

  // Makes computed block number `i` of a sequence findable. If that content is there already, the
  // sequence's block is given back and blocks[i] becomes the one that is there (the bits are
  // equal). False if the hash belongs to other content; then the sequence's later blocks cannot be
  // published either. REQUIRES: blocks [0, i) are published; the sequence references blocks[i].
  bool Publish(const PrefixHashes& hashes, std::span<const int32_t> tokens, int32_t i,
               std::span<BlockId> blocks);

  // The hashes that became findable, and those that ceased to be, since ForgetChanges was last
  // called. Valid until the next Allocate or Publish.
  struct Changes {
    std::span<const uint64_t> published;
    std::span<const uint64_t> evicted;
  };
  Changes changes() const { return {published_, evicted_}; }
  void ForgetChanges();

  // Gives a sequence's references back, the last block's first.
  void Release(std::span<const BlockId> blocks);

  // Aborts unless pool and index agree. O(num_blocks).
  void CheckIntegrity() const;

 private:
  BlockPool pool_;
  PrefixIndex index_;
  bool prefix_caching_;
  std::vector<uint64_t> published_;
  std::vector<uint64_t> evicted_;
};

}  // namespace skein
