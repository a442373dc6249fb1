// The keys by which Scheduler's waiting requests are ordered, and when they change.

#include <algorithm>

#include "base/check.h"
#include "sched/scheduler.h"

namespace skein {

Urgency Scheduler::UrgencyOf(const Sequence& sequence) {
  const Request& request = sequence.request->request;
  if (config_.order == Order::kFcfs) return {.priority = request.priority};
  if (config_.order != Order::kFair) {
    const int32_t num_cached = NumCachedBlocks(sequence, blocks_) * kBlockTokens;
    return {.priority = request.priority, .rank = JctRankOf(sequence, num_cached)};
  }
  // What is to be computed, as far as that is known now: the members of a group after its first
  // bring their own tokens only.
  int32_t num_shared = NeedOf(sequence).num_cached;
  if (request.group.id != 0 && request.group.id == last_group_) {
    num_shared = std::max(num_shared, request.group.parent_prefix_len);
  }
  last_group_ = request.group.id;
  const int64_t cost = std::max(1, sequence.request->prompt_len - num_shared);
  return {.priority = request.priority, .rank = fair_queue_.Enter(request, cost)};
}

int64_t Scheduler::JctRankOf(const Sequence& sequence, int32_t num_cached) const {
  const RequestRecord& request = *sequence.request;
  return jct_order_.RankOf(request.prompt_len, num_cached,
                           request.times.arrival_us - first_arrival_us_);
}

bool Scheduler::IsWatched(const Sequence& sequence) const {
  if (sequence.state != SequenceState::kWaiting) return false;
  if (config_.order == Order::kSrjfCalibrated) return true;
  return config_.forests && sequence.oneshot() && sequence.request->shares_prefix;
}

// Follows the changes of the prefix cache, which move who is concerned to its new place.
void Scheduler::Recalibrate() {
  watch_.Follow(blocks_, [this](Sequence* sequence, int32_t num_cached_blocks) {
    if (config_.order != Order::kSrjfCalibrated) return;
    Rekey(sequence, JctRankOf(*sequence, num_cached_blocks * kBlockTokens));
  });
  blocks_.ForgetChanges();
}

// REQUIRES: the sequence is not in watch_.
void Scheduler::Rekey(Sequence* sequence, int64_t rank) {
  // Who is deferred comes back at the end of the round.
  const bool waits = waiting_.Contains(*sequence);
  if (waits) waiting_.Erase(sequence);
  sequence->request->urgency.rank = rank;
  if (waits) waiting_.Insert(sequence);
}

// Corrects the cost model by the step that has ended; a new version orders all who wait anew.
void Scheduler::ObserveStep(TimeUs now_us) {
  if (config_.order != Order::kSrjfCalibrated || !cost_.known()) return;
  if (!cost_.Observe(step_work_, static_cast<double>(StepTimeUs(now_us)))) return;
  if (!jct_order_.Adopt(cost_.fit())) return;
  for (const auto& [id, request] : requests_) {
    Sequence* sequence = request->sequences.front().get();
    if (sequence->trunk != nullptr || !IsWatched(*sequence)) continue;
    watch_.Erase(sequence);
    Rekey(sequence, JctRankOf(*sequence, NumCachedBlocks(*sequence, blocks_) * kBlockTokens));
    watch_.Insert(sequence, blocks_);
  }
}

}  // namespace skein
