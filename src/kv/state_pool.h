#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kv/block_pool.h"

namespace skein {

// A slot for the state of one sequence in the linear layers of a model.
using StateId = int32_t;
inline constexpr StateId kNoState = -1;

// The states of running sequences, and snapshots. A snapshot is the state after the last token of a
// cached KV block; other sequences with this prefix start from it. A state has references like a
// block. A snapshot without references stays until another state takes its slot, the least recently
// used snapshot first. A tentative snapshot is one that no prompt is known to need. Tentative ones
// replace each other, so they take few slots from the others. They become normal ones when a
// sequence starts from them. Integers only. Not thread-safe. Every call is O(1) unless it says
// otherwise.
class StatePool {
 public:
  // With `num_states` 0 there are no states: the model has no linear layers.
  StatePool(int32_t num_states, int32_t num_blocks);

  int32_t num_states() const { return pool_ ? pool_->num_blocks() : 0; }
  bool enabled() const { return pool_.has_value(); }
  int32_t num_snapshots() const { return pool_ ? pool_->num_cached() : 0; }
  // The number of states that Take can give, including snapshots that it would replace.
  int32_t num_available() const { return pool_ ? pool_->num_free() + pool_->num_cached() : 0; }
  int32_t ref_count(StateId state) const { return pool_->ref_count(state); }

  // Returns a state with one reference; kNoState if all states are referenced.
  StateId Take();
  // The same for a tentative snapshot. If these hold a quarter of all states, the oldest one
  // without references is replaced. Returns kNoState if there is none, or if less than half of the
  // states are available. O(states).
  StateId TakeTentative();
  void Ref(StateId state) { pool_->Ref(state); }
  void Unref(StateId state) { pool_->Unref(state); }
  // As Ref, for a sequence that starts from the state. If the state is a snapshot, it is no longer
  // tentative.
  void Start(StateId state);

  // Returns the snapshot at the end of a block, or kNoState.
  StateId Find(BlockId block) const { return pool_ ? snapshots_[block] : kNoState; }
  // Records `state` as the snapshot at the end of the block, unless the block has a snapshot.
  // REQUIRES: the state is referenced.
  void Keep(BlockId block, StateId state);
  // Frees the state if it is still the snapshot of this block and no sequence has started from it.
  void DropUnused(BlockId block, StateId state);
  // Makes it a tentative snapshot in the same case. If these then hold more than a quarter of all
  // states, the oldest one without references is freed. O(states).
  void MakeTentative(BlockId block, StateId state);
  // Tells that the block's content is gone.
  void Forget(BlockId block);

  // Aborts unless snapshots and their blocks refer to each other. O(states + blocks).
  void CheckIntegrity() const;

 private:
  struct Entry {
    BlockId block = kNoBlock;  // whose snapshot it is; kNoBlock: none
    bool tentative = false;
    bool used = false;     // a sequence has started from it
    int64_t kept_nth = 0;  // the number of snapshots that were kept before it
  };

  bool TrimTentative(int32_t most);

  std::optional<BlockPool> pool_;   // its blocks are states
  std::vector<StateId> snapshots_;  // [num_blocks]
  std::vector<Entry> entries_;      // [num_states]; that of a free state is stale
  int64_t num_kept_ = 0;
};

}  // namespace skein
