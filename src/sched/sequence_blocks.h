#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kv/block_manager.h"
#include "sched/plan.h"
#include "sched/sequence_states.h"

namespace skein {

// The KV blocks of one sequence:
//
//   0          num_published          BlocksFor(tokens computed)      size
//   |-- in the prefix cache --|-- computed, own --|-- allocated, not computed --|
//
// A partly computed block belongs to this sequence alone, unless it is the source of a pending
// copy. So a row never writes a block that another row reads. In a model with linear layers, this
// class also holds the sequence's states; there, a cached prefix ends at a block with a snapshot.
// Not thread-safe.
class SequenceBlocks {
 public:
  explicit SequenceBlocks(PrefixScope scope) : hashes_(scope) {}

  std::span<const BlockId> table() const { return blocks_; }
  const PrefixHashes& hashes() const { return hashes_; }

  // Reserves memory, so that growing to up to `num_tokens` tokens allocates nothing.
  void Reserve(int64_t num_tokens);
  // Hashes the full blocks that are not hashed yet: when a request arrives, and later as blocks
  // fill.
  void Hash(std::span<const TokenId> tokens) { hashes_.Extend(tokens); }

  // The result that Attach would have: the longest cached prefix of at most `max_cached` tokens,
  // and the number of available blocks that Attach would take. Attach may load fewer blocks from
  // the host: as many as it allocates, without those whose slots it needs for evicted blocks.
  // REQUIRES: Hash(tokens) was called; max_cached is below the number of tokens.
  struct Need {
    int32_t num_cached = 0;  // cached tokens
    int32_t num_blocks = 0;
  };
  Need NeedOf(const BlockManager& manager, std::span<const TokenId> tokens,
              int32_t max_cached) const;
  // The number of blocks that a sequence holds after Attach, including shared ones. With
  // `or_fewer`, as many as fit are enough. Only the first `num_evicting` may evict other blocks
  // from the cache.
  struct Hold {
    int32_t num_blocks = 0;
    bool or_fewer = false;
    int32_t num_evicting = std::numeric_limits<int32_t>::max();

    // The number of blocks to allocate, if `num_shared` blocks are there already and
    // `num_available` may be taken. A result above `num_available` means that there are too few.
    int32_t NumMissing(const BlockManager& manager, int32_t num_shared,
                       int32_t num_available) const;
  };
  // Attaches the longest cached prefix, then allocates the other blocks of `hold`. The first of
  // these get the contents that the host has for them. Returns the number of cached tokens. Returns
  // -1, and changes nothing, if fewer than `num_reserved` blocks would remain available. REQUIRES:
  // as NeedOf; the sequence has no blocks.
  int32_t Attach(BlockManager* manager, std::span<const TokenId> tokens, int32_t max_cached,
                 const Hold& hold, int32_t num_reserved);
  // Shares the full blocks of the parent's first `prefix_len` tokens and allocates the other blocks
  // of `hold`. If the prefix ends inside a block, the caller copies that block into the first
  // allocated one (a row's fork). Returns false, and changes nothing, as Attach returns -1.
  // REQUIRES: the sequence has no blocks.
  bool AttachTo(BlockManager* manager, const SequenceBlocks& parent, int32_t prefix_len,
                const Hold& hold, int32_t num_reserved);

  // After AttachTo: takes the parent's blocks of those tokens again, which were since found to be
  // in the cache under other ids. REQUIRES: no step that is to go on reads these blocks.
  void Follow(BlockManager* manager, const SequenceBlocks& parent, int32_t prefix_len);

  // Adds a block if `num_tokens` do not fit. False when none is available.
  bool Grow(BlockManager* manager, int64_t num_tokens);

  // Publishes the full blocks among those that hold the first `num_computed` tokens.
  void Publish(BlockManager* manager, std::span<const TokenId> tokens, int64_t num_computed);

  // Takes over the parent's first `num_computed` tokens. Full blocks are shared; a partial last
  // block must be copied (see pending_copy). Returns false, and changes nothing, if no block is
  // available. REQUIRES: the sequence has no blocks; the parent's full blocks are published.
  bool ForkFrom(BlockManager* manager, SequenceBlocks& parent, int64_t num_computed);
  bool has_pending_copy() const { return copy_.from != kNoBlock; }
  // The copy that must be made before this sequence is computed further. Its source stays
  // referenced until FinishCopy or Release.
  const BlockCopy& pending_copy() const { return copy_; }
  void FinishCopy(BlockManager* manager);

  // Prepares the states of the next row, if the model has states. `keeps_state`: the state after
  // the row is needed. Returns false if no state is available for it.
  bool BeginRow(BlockManager* manager, int32_t begin, int32_t num_tokens, bool keeps_state);
  const RowState& row_state() const { return states_.row(); }
  // The row is computed and its blocks are published; it is not planned after all; or it is given
  // up (SequenceStates).
  void FinishRow(BlockManager* manager);
  void CancelRow(BlockManager* manager);
  bool AbandonRow(BlockManager* manager);
  // Makes the state after the `num_computed` tokens a snapshot if they end with a published block
  // (SequenceStates::KeepEnd).
  void KeepEnd(BlockManager* manager, int32_t num_computed, SequenceStates::NextRow next);
  // As the functions of SequenceStates. They do nothing in a model without states.
  bool TakeState(BlockManager* manager);
  void WantSnapshot(int32_t num_tokens) { states_.WantSnapshot(num_tokens); }
  void AddSnapshot(BlockManager* manager, int32_t num_tokens);
  // Asks for snapshots of a prompt of which `num_cached` tokens are attached. `shared_len`: the
  // tokens that other prompts are known to begin with; 0: none are known. REQUIRES: the blocks are
  // attached.
  void WantSnapshots(int32_t num_tokens, int32_t num_cached, int32_t shared_len);

  // Gives all blocks and states back. The hashes stay.
  void Release(BlockManager* manager);

  // Adds 1 to counts[b] for every reference to block b.
  void CountReferences(std::span<int32_t> counts) const;
  void CountStates(std::span<int32_t> counts) const { states_.CountReferences(counts); }

 private:
  PrefixHashes hashes_;
  std::vector<BlockId> blocks_;
  int32_t num_published_ = 0;
  bool publishable_ = true;  // false after a hash collision
  BlockCopy copy_ = {kNoBlock, kNoBlock};
  SequenceStates states_;
};

}  // namespace skein
