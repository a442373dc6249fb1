#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "kv/block_manager.h"
#include "sched/plan.h"

namespace skein {

// The states of one sequence in a model with linear layers (kv/state_pool.h). Its own state follows
// its last computed token. Its first row starts from another one: a snapshot, or the state of the
// sequence that it was forked from, which it holds until the row is computed. The rows of its
// prompt leave snapshots at the positions that other prompts are expected to share. Not
// thread-safe.
class SequenceStates {
 public:
  // The first row starts from `state`, on which this takes a reference. REQUIRES: nothing is held.
  void StartFrom(StatePool* pool, StateId state);
  // Takes a state of its own, unless it has one. False when none is available.
  bool TakeOwn(StatePool* pool);
  // Shares the parent's state as the start of both: each has an own state from here on. False when
  // too few are available; the parent's state is then as it was, in the same place or another.
  // REQUIRES: nothing is held; the parent has computed a row and none since.
  bool ForkFrom(StatePool* pool, SequenceStates* parent);

  // Snapshots are wanted after `num_tokens` tokens, a multiple of the block; 0: none. At most two.
  void WantSnapshot(int32_t num_tokens);
  // The states of the row of tokens [begin, begin + num_tokens). Takes the slots of its snapshots,
  // as far as some are available.
  void BeginRow(StatePool* pool, int32_t begin, int32_t num_tokens);
  const RowState& row() const { return row_; }
  StateId own() const { return own_; }  // kNoState: there is none
  // The row is computed. Its snapshots are kept if `blocks`, those that are published, reach there.
  void FinishRow(StatePool* pool, std::span<const BlockId> blocks);
  // The row is given up. False if its start is lost, since it is in the same place as its end.
  bool AbandonRow(StatePool* pool);

  void Release(StatePool* pool);
  // Adds 1 to counts[s] for every reference to state s.
  void CountReferences(std::span<int32_t> counts) const;

 private:
  void DropSnapshots(StatePool* pool);
  void DropStart(StatePool* pool);

  StateId own_ = kNoState;
  StateId start_ = kNoState;
  std::array<int32_t, 2> wanted_ = {};  // ascending; 0: none
  RowState row_;
};

}  // namespace skein
