#include "sched/sequence_states.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace skein {

void SequenceStates::StartFrom(StatePool* pool, StateId state) {
  SKEIN_CHECK(own_ == kNoState && start_ == kNoState);
  pool->Ref(state);
  start_ = state;
}

bool SequenceStates::TakeOwn(StatePool* pool) {
  if (own_ == kNoState) own_ = pool->Take();
  return own_ != kNoState;
}

bool SequenceStates::ForkFrom(StatePool* pool, SequenceStates* parent) {
  SKEIN_CHECK(own_ == kNoState && start_ == kNoState && parent->own_ != kNoState);
  own_ = pool->Take();
  if (own_ == kNoState) return false;
  if (parent->start_ == kNoState) {
    const StateId moved = pool->Take();
    if (moved == kNoState) {
      pool->Unref(std::exchange(own_, kNoState));
      return false;
    }
    parent->start_ = std::exchange(parent->own_, moved);
  }
  pool->Ref(parent->start_);
  start_ = parent->start_;
  return true;
}

void SequenceStates::WantSnapshot(int32_t num_tokens) {
  if (num_tokens == 0 || std::ranges::count(wanted_, num_tokens) > 0) return;
  wanted_[0] = num_tokens;  // replaces the lower one if both are set
  std::ranges::sort(wanted_);
}

void SequenceStates::BeginRow(StatePool* pool, int32_t begin, int32_t num_tokens) {
  row_ = {.from = begin == 0 ? kNoState : start_ != kNoState ? start_ : own_, .to = own_};
  SKEIN_CHECK(begin == 0 || row_.from != kNoState);
  size_t count = 0;
  for (const int32_t at : wanted_) {
    if (at <= begin || at > begin + num_tokens) continue;
    const StateId state = pool->Take();
    if (state == kNoState) return;
    row_.snapshots[count++] = {state, at};
  }
}

void SequenceStates::FinishRow(StatePool* pool, std::span<const BlockId> blocks) {
  for (const RowState::Snapshot& snapshot : row_.snapshots) {
    if (snapshot.state == kNoState) continue;
    const int32_t num_blocks = snapshot.at / kBlockTokens;
    if (num_blocks <= std::ssize(blocks)) pool->Keep(blocks[num_blocks - 1], snapshot.state);
  }
  DropSnapshots(pool);
  DropStart(pool);
}

bool SequenceStates::AbandonRow(StatePool* pool) {
  const bool is_lost = row_.from != kNoState && row_.from == row_.to;
  DropSnapshots(pool);
  return !is_lost;
}

void SequenceStates::DropSnapshots(StatePool* pool) {
  for (RowState::Snapshot& snapshot : row_.snapshots) {
    if (snapshot.state != kNoState) pool->Unref(snapshot.state);
  }
  row_ = {};
}

void SequenceStates::DropStart(StatePool* pool) {
  if (start_ != kNoState) pool->Unref(std::exchange(start_, kNoState));
}

void SequenceStates::Release(StatePool* pool) {
  DropSnapshots(pool);
  DropStart(pool);
  if (own_ != kNoState) pool->Unref(std::exchange(own_, kNoState));
  wanted_ = {};
}

void SequenceStates::CountReferences(std::span<int32_t> counts) const {
  for (const StateId state : {own_, start_}) {
    if (state != kNoState) ++counts[state];
  }
  for (const RowState::Snapshot& snapshot : row_.snapshots) {
    if (snapshot.state != kNoState) ++counts[snapshot.state];
  }
}

}  // namespace skein
