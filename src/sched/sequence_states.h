#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "kv/block_manager.h"
#include "sched/plan.h"

namespace skein {

// The states of one sequence in a model with linear layers (kv/state_pool.h). The sequence's own
// state is the state after its last computed token. Its first row starts from another state: a
// snapshot, or the state of the sequence that it was forked from. This start is held until the row
// is computed. The rows of its prompt leave snapshots at the positions that other prompts are
// expected to share. A row that ends with a block leaves its end as a snapshot, too: the next row
// writes to another state, so nothing is copied. Not thread-safe.
class SequenceStates {
 public:
  // The row behind a row that ends with a block.
  enum class NextRow { kChunk, kDecode, kNone };

  // Lets the first row start from `state`, and takes a reference to it. REQUIRES: nothing is held.
  void StartFrom(StatePool* pool, StateId state);
  // Takes a state for the sequence's own, unless it has one. Returns false if none is available.
  bool TakeOwn(StatePool* pool);
  // Makes the parent's state the start of both sequences: each has its own state from here on.
  // Returns false if too few states are available; the parent's state then keeps its value, but may
  // have moved. REQUIRES: nothing is held; the parent has computed a row and has not begun another.
  bool ForkFrom(StatePool* pool, SequenceStates* parent);

  // Asks for a snapshot after `num_tokens` tokens, a multiple of the block; 0: none. At most
  // kMaxRowSnapshots are taken; tentative ones last.
  void WantSnapshot(int32_t num_tokens, bool tentative = false);
  // Prepares the states of the row of tokens [begin, begin + num_tokens). Takes states for its
  // snapshots, as far as some are available. REQUIRES: no row has begun.
  void BeginRow(StatePool* pool, int32_t begin, int32_t num_tokens);
  // As WantSnapshot, also within the row that has begun and is not yet planned.
  void AddSnapshot(StatePool* pool, int32_t num_tokens);
  const RowState& row() const { return row_; }
  StateId own() const { return own_; }  // kNoState: there is none
  // The row is computed. Its snapshots are kept as far as `blocks`, the published blocks, reach.
  void FinishRow(StatePool* pool, std::span<const BlockId> blocks);
  // Makes the state after the last computed token the snapshot of `block`, which ends there. It
  // replaces the previous one that a decode made here; the previous one of a chunk becomes
  // tentative. If another row follows, that takes a state, and needs more than an eighth of them to
  // be available. REQUIRES: the last row is computed and no other has begun.
  void KeepEnd(StatePool* pool, BlockId block, NextRow next);
  // The row that has begun is not planned after all.
  void CancelRow(StatePool* pool) { DropSnapshots(pool); }
  // The row is given up. Returns false if the row's start is lost, because the row writes its end
  // to the same state.
  bool AbandonRow(StatePool* pool);

  void Release(StatePool* pool);
  // Adds 1 to counts[s] for every reference to state s.
  void CountReferences(std::span<int32_t> counts) const;

 private:
  struct Wanted {
    int32_t at = 0;  // 0: none
    bool tentative = false;
  };
  // The latest snapshot that KeepEnd made. It is not referenced.
  struct KeptEnd {
    BlockId block = kNoBlock;
    StateId state = kNoState;
    bool of_chunk = false;
  };

  void ReplaceKeptEnd(StatePool* pool);
  size_t NumSnapshots() const;
  void AddToRow(StateId state, int32_t at);
  void DropSnapshots(StatePool* pool);
  void DropStart(StatePool* pool);

  StateId own_ = kNoState;
  StateId start_ = kNoState;
  std::array<Wanted, kMaxRowSnapshots> wanted_ = {};  // ascending
  int32_t row_begin_ = 0;                             // of the row that has begun
  int32_t row_end_ = 0;                               // 0: none has
  KeptEnd kept_end_;
  RowState row_;
};

}  // namespace skein
