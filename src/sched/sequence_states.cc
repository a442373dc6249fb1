#include "sched/sequence_states.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/check.h"

namespace skein {
namespace {

// Whether a snapshot may take a state that only saves work. Running sequences need states, too.
bool HasSpare(const StatePool& pool) { return 8 * pool.num_available() > pool.num_states(); }

}  // namespace

void SequenceStates::StartFrom(StatePool* pool, StateId state) {
  SKEIN_CHECK(own_ == kNoState && start_ == kNoState);
  pool->Start(state);
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

void SequenceStates::WantSnapshot(int32_t num_tokens, bool tentative) {
  if (num_tokens == 0 || std::ranges::count(wanted_, num_tokens, &Wanted::at) > 0) return;
  if (tentative && wanted_[0].at > 0) return;
  wanted_[0] = {num_tokens, tentative};  // replaces the lowest one if all are set
  std::ranges::sort(wanted_, {}, &Wanted::at);
}

// Tentative snapshots near the row's end come first: most prompts differ in their last tokens.
void SequenceStates::BeginRow(StatePool* pool, int32_t begin, int32_t num_tokens) {
  SKEIN_CHECK(row_end_ == 0 && NumSnapshots() == 0);
  row_ = {.from = begin == 0 ? kNoState : start_ != kNoState ? start_ : own_, .to = own_};
  SKEIN_CHECK(begin == 0 || row_.from != kNoState);
  row_begin_ = begin;
  row_end_ = begin + num_tokens;
  const auto is_in_row = [&](const Wanted& wanted) {
    return wanted.at > row_begin_ && wanted.at <= row_end_;
  };
  for (const Wanted& wanted : wanted_) {
    if (!wanted.tentative && is_in_row(wanted)) AddToRow(pool->Take(), wanted.at);
  }
  for (const Wanted& wanted : std::views::reverse(wanted_)) {
    if (wanted.tentative && is_in_row(wanted)) AddToRow(pool->TakeTentative(), wanted.at);
  }
}

void SequenceStates::AddSnapshot(StatePool* pool, int32_t num_tokens) {
  WantSnapshot(num_tokens);
  const bool in_row = num_tokens > row_begin_ && num_tokens <= row_end_;
  if (!in_row || NumSnapshots() == kMaxRowSnapshots || !HasSpare(*pool)) return;
  const auto is_there = [&](const RowState::Snapshot& snapshot) {
    return snapshot.state != kNoState && snapshot.at == num_tokens;
  };
  if (std::ranges::none_of(row_.snapshots, is_there)) AddToRow(pool->Take(), num_tokens);
}

size_t SequenceStates::NumSnapshots() const {
  return kMaxRowSnapshots -
         std::ranges::count(row_.snapshots, kNoState, &RowState::Snapshot::state);
}

// Does nothing if `state` is kNoState.
void SequenceStates::AddToRow(StateId state, int32_t at) {
  if (state == kNoState) return;
  const size_t count = NumSnapshots();
  row_.snapshots[count] = {state, at};
  std::ranges::sort(std::span(row_.snapshots).first(count + 1), {}, &RowState::Snapshot::at);
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

void SequenceStates::KeepEnd(StatePool* pool, BlockId block, NextRow next) {
  if (own_ == kNoState || kept_end_.block == block) return;
  // The samples of a prompt hold the prompt's end already.
  const bool takes = next != NextRow::kNone && start_ == kNoState;
  if (takes && !HasSpare(*pool)) return;
  ReplaceKeptEnd(pool);
  if (pool->Find(block) != kNoState) return;
  if (takes) start_ = std::exchange(own_, pool->Take());
  kept_end_ = {block, start_ != kNoState ? start_ : own_, next == NextRow::kChunk};
  pool->Keep(block, kept_end_.state);
}

void SequenceStates::ReplaceKeptEnd(StatePool* pool) {
  const KeptEnd kept = std::exchange(kept_end_, {});
  if (kept.state == kNoState) return;
  if (kept.of_chunk) {
    pool->MakeTentative(kept.block, kept.state);
  } else {
    pool->DropUnused(kept.block, kept.state);
  }
}

bool SequenceStates::AbandonRow(StatePool* pool) {
  const bool is_lost = row_.from != kNoState && row_.from == row_.to;
  DropSnapshots(pool);
  if (is_lost) pool->Unref(std::exchange(own_, kNoState));
  return !is_lost;
}

void SequenceStates::DropSnapshots(StatePool* pool) {
  for (RowState::Snapshot& snapshot : row_.snapshots) {
    if (snapshot.state != kNoState) pool->Unref(snapshot.state);
  }
  row_ = {};
  row_begin_ = row_end_ = 0;
}

void SequenceStates::DropStart(StatePool* pool) {
  if (start_ != kNoState) pool->Unref(std::exchange(start_, kNoState));
}

void SequenceStates::Release(StatePool* pool) {
  DropSnapshots(pool);
  DropStart(pool);
  if (own_ != kNoState) pool->Unref(std::exchange(own_, kNoState));
  wanted_ = {};
  if (kept_end_.of_chunk) ReplaceKeptEnd(pool);
  kept_end_ = {};
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
