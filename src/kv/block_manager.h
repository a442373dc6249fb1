#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/block_listener.h"
#include "kv/block_pool.h"
#include "kv/host_tier.h"
#include "kv/prefix_hashes.h"
#include "kv/prefix_index.h"
#include "kv/state_pool.h"

namespace skein {

// Block pool and prefix cache together. It allocates blocks, evicts cached blocks if no block is
// free, and lets sequences share common prefixes. The cache is always closed under prefixes: a
// sequence references its blocks from the first on, and Release returns the last block first.
//
// With a host tier, the contents of an evicted block go on in the memory of the host, and Load
// brings them back into another block. Both happen by copies that the next step makes before
// anything else (TakeHostCopies). The cache is then the union of both tiers, and closed as such:
//
//   0            num_blocks            num_blocks + num_on_host
//   |-- on the device --|-- on the host alone --|-- not cached --|
//
// Not thread-safe.
class BlockManager {
 public:
  // Without prefix caching, no block is ever found or published. With `num_states` above 0, a
  // prefix is found only up to a block with a snapshot of its state. REQUIRES: num_blocks >= 1;
  // with `num_host_blocks` above 0, prefix caching and no states.
  BlockManager(int32_t num_blocks, bool prefix_caching, int32_t num_states = 0,
               int32_t num_host_blocks = 0);

  int32_t num_blocks() const { return pool_.num_blocks(); }
  int32_t num_referenced() const { return pool_.num_referenced(); }
  int32_t num_cached() const { return pool_.num_cached(); }
  int32_t num_free() const { return pool_.num_free(); }
  // The number of blocks that Allocate can give, including cached blocks that it would evict.
  int32_t num_available() const { return pool_.num_free() + pool_.num_cached(); }
  bool prefix_caching() const { return prefix_caching_; }
  int32_t ref_count(BlockId block) const { return pool_.ref_count(block); }

  // From now on, `listener` is told of published and evicted blocks; null: none is.
  void set_listener(BlockListener* listener) { listener_ = listener; }

  StatePool& states() { return states_; }
  const StatePool& states() const { return states_; }
  const HostTier& host() const { return host_; }

  // Returns a block with one reference; kNoBlock if all blocks are referenced.
  BlockId Allocate();

  struct Prefix {
    int32_t num_blocks = 0;
    int32_t num_unreferenced = 0;  // the blocks among them that an attachment takes from
                                   // num_available
    int32_t num_present = 0;       // cached blocks, even if no snapshot follows them
    int32_t num_on_host = 0;       // the blocks behind these that the host holds
  };
  // Finds the longest cached prefix of `tokens`, at most `max_blocks`, and appends its blocks on
  // the device to `*blocks` (may be null). The blocks are not yet referenced: call Ref for each
  // before the next Allocate. REQUIRES: `hashes` covers max_blocks.
  Prefix FindPrefix(const PrefixHashes& hashes, std::span<const int32_t> tokens, int32_t max_blocks,
                    std::vector<BlockId>* blocks) const;

  // The number of the first `max_blocks` blocks that are present in either tier, by their hashes
  // alone. The result is that of FindPrefix, except for collisions of hashes. O(log max_blocks),
  // since the cache is closed under prefixes. REQUIRES: as FindPrefix.
  int32_t NumPresent(const PrefixHashes& hashes, int32_t max_blocks) const;

  void Ref(BlockId block) { pool_.Ref(block); }
  void Unref(BlockId block) { pool_.Unref(block); }

  // Makes the computed block number `i` of a sequence findable. If its content is present already,
  // blocks[i] becomes the present block and the sequence's own block is released (the bits are
  // equal). Returns false if the hash belongs to other content; then the sequence's later blocks
  // cannot be published either. REQUIRES: blocks
  // [0, i) are published; the sequence references blocks[i].
  bool Publish(const PrefixHashes& hashes, std::span<const int32_t> tokens, int32_t i,
               std::span<BlockId> blocks);

  // Makes the host's contents for blocks [first, first + count) of a sequence the newest there, so
  // that the evictions of the next Allocate drop others first. Blocks that it lacks are left out.
  void TouchOnHost(const PrefixHashes& hashes, std::span<const int32_t> tokens, int32_t first,
                   int32_t count);
  // Lets the host's contents for block number `i` of a sequence be copied into blocks[i], and makes
  // that block findable. Returns false if the host has no such contents. REQUIRES: as Publish;
  // blocks[i] was just allocated.
  bool Load(const PrefixHashes& hashes, std::span<const int32_t> tokens, int32_t i,
            std::span<const BlockId> blocks);
  // Moves the copies that were planned since the last call to `*copies`, in order. They must be
  // made before any block is read or written that was allocated, found or published since.
  void TakeHostCopies(std::vector<HostCopy>* copies);
  std::span<const HostCopy> host_copies() const { return host_copies_; }
  // The copies that were ever planned, to the host and from it.
  uint64_t num_saved() const { return num_saved_; }
  uint64_t num_loaded() const { return num_loaded_; }

  // The hashes that became findable, and the hashes that no longer are, since the last call of
  // ForgetChanges. Valid until the next Allocate or Publish.
  struct Changes {
    std::span<const uint64_t> published;
    std::span<const uint64_t> evicted;
  };
  Changes changes() const { return {published_, evicted_}; }
  void ForgetChanges();

  // Consecutive published blocks without a branch in between, all referenced by the same number of
  // sequences.
  struct Run {
    int32_t parent = -1;  // index of the run before this one; -1: there is none
    int32_t num_blocks = 0;
    int32_t num_sequences = 0;
  };
  // The runs, each behind its parent. Runs that more sequences reference come first, then runs with
  // more blocks behind them. O(num_blocks log num_blocks).
  std::vector<Run> Runs() const;

  // Drops a sequence's references, beginning with the last block.
  void Release(std::span<const BlockId> blocks);

  // Aborts unless pool, index and host tier agree. O(num_blocks + number of host blocks).
  void CheckIntegrity() const;

 private:
  void Evict(BlockId block);
  void SaveOnHost(BlockId block);
  HostKey HostKeyOf(BlockId block) const;  // REQUIRES: the block is indexed
  void NoteStored(const PrefixKey& key);
  void NoteRemoved(uint64_t hash);
  void CheckHost() const;

  BlockPool pool_;
  PrefixIndex index_;
  StatePool states_;
  HostTier host_;
  bool prefix_caching_;
  std::vector<HostCopy> host_copies_;  // planned, not yet taken
  uint64_t num_saved_ = 0;
  uint64_t num_loaded_ = 0;
  std::vector<uint64_t> published_;
  std::vector<uint64_t> evicted_;
  BlockListener* listener_ = nullptr;
};

}  // namespace skein
