#include "kv/state_pool.h"

#include <algorithm>

#include "base/check.h"

namespace skein {
namespace {

// Tentative snapshots hold at most one state in this many.
constexpr int32_t kTentativeShare = 4;

}  // namespace

StatePool::StatePool(int32_t num_states, int32_t num_blocks) {
  if (num_states == 0) return;
  pool_.emplace(num_states);
  snapshots_.assign(num_blocks, kNoState);
  entries_.resize(num_states);
}

StateId StatePool::Take() {
  if (pool_->num_free() == 0) {
    const StateId evicted = pool_->EvictOldest();
    if (evicted == kNoState) return kNoState;
    snapshots_[entries_[evicted].block] = kNoState;
  }
  const StateId state = pool_->Take();
  entries_[state] = {};
  return state;
}

// Frees the oldest tentative snapshots without references while more than `most` states are
// tentative. Returns false if too many are referenced.
bool StatePool::TrimTentative(int32_t most) {
  for (;;) {
    int32_t count = 0;
    StateId oldest = kNoState;
    for (StateId state = 0; state < num_states(); ++state) {
      const bool referenced = pool_->ref_count(state) > 0;
      if (!entries_[state].tentative || !(referenced || pool_->kept(state))) continue;
      ++count;
      const bool older = oldest == kNoState || entries_[state].kept_nth < entries_[oldest].kept_nth;
      if (!referenced && older) oldest = state;
    }
    if (count <= most) return true;
    if (oldest == kNoState) return false;
    Forget(entries_[oldest].block);
  }
}

StateId StatePool::TakeTentative() {
  if (2 * num_available() < num_states()) return kNoState;
  if (!TrimTentative(num_states() / kTentativeShare - 1)) return kNoState;
  const StateId state = Take();
  entries_[state].tentative = true;
  return state;
}

void StatePool::MakeTentative(BlockId block, StateId state) {
  if (snapshots_[block] != state || entries_[state].used) return;
  entries_[state].tentative = true;
  TrimTentative(num_states() / kTentativeShare);
}

void StatePool::Start(StateId state) {
  Ref(state);
  entries_[state].tentative = false;
  entries_[state].used = true;
}

void StatePool::Keep(BlockId block, StateId state) {
  if (snapshots_[block] != kNoState || entries_[state].block != kNoBlock) return;
  pool_->Keep(state);
  snapshots_[block] = state;
  entries_[state].block = block;
  entries_[state].used = false;
  entries_[state].kept_nth = num_kept_++;
}

void StatePool::DropUnused(BlockId block, StateId state) {
  if (snapshots_[block] == state && !entries_[state].used) Forget(block);
}

void StatePool::Forget(BlockId block) {
  const StateId state = Find(block);
  if (state == kNoState) return;
  snapshots_[block] = kNoState;
  entries_[state].block = kNoBlock;
  pool_->Discard(state);
}

void StatePool::CheckIntegrity() const {
  if (!pool_) return;
  pool_->CheckIntegrity();
  int32_t num_snapshots = 0;
  for (BlockId block = 0; block < std::ssize(snapshots_); ++block) {
    if (snapshots_[block] == kNoState) continue;
    ++num_snapshots;
    SKEIN_CHECK(entries_[snapshots_[block]].block == block);
  }
  int32_t num_kept = 0;
  for (StateId state = 0; state < num_states(); ++state) {
    if (!pool_->kept(state)) continue;
    ++num_kept;
    SKEIN_CHECK(entries_[state].block != kNoBlock);
  }
  SKEIN_CHECK(num_kept == num_snapshots);
}

}  // namespace skein
