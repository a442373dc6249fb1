#include "kv/state_pool.h"

#include <algorithm>

#include "base/check.h"

namespace skein {

StatePool::StatePool(int32_t num_states, int32_t num_blocks) {
  if (num_states == 0) return;
  pool_.emplace(num_states);
  snapshots_.assign(num_blocks, kNoState);
  blocks_.assign(num_states, kNoBlock);
}

StateId StatePool::Take() {
  if (pool_->num_free() == 0) {
    const StateId evicted = pool_->EvictOldest();
    if (evicted == kNoBlock) return kNoState;
    if (blocks_[evicted] != kNoBlock) Forget(blocks_[evicted]);
  }
  return pool_->Take();
}

void StatePool::Keep(BlockId block, StateId state) {
  if (snapshots_[block] != kNoState || blocks_[state] != kNoBlock) return;
  pool_->Keep(state);
  snapshots_[block] = state;
  blocks_[state] = block;
}

// The slot stays kept until it is evicted, but no other sequence finds it.
void StatePool::Forget(BlockId block) {
  if (!pool_ || snapshots_[block] == kNoState) return;
  blocks_[snapshots_[block]] = kNoBlock;
  snapshots_[block] = kNoState;
}

void StatePool::CheckIntegrity() const {
  if (!pool_) return;
  pool_->CheckIntegrity();
  const auto num_snapshots =
      std::ranges::count_if(snapshots_, [](StateId state) { return state != kNoState; });
  SKEIN_CHECK(num_snapshots ==
              std::ranges::count_if(blocks_, [](BlockId block) { return block != kNoBlock; }));
  for (BlockId block = 0; block < std::ssize(snapshots_); ++block) {
    if (snapshots_[block] == kNoState) continue;
    SKEIN_CHECK(blocks_[snapshots_[block]] == block && pool_->kept(snapshots_[block]));
  }
}

}  // namespace skein
