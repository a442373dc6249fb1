// The keys by which Scheduler's waiting requests are ordered, and when they change.

#include <algorithm>

#include "base/check.h"
#include "sched/depth_first.h"
#include "sched/scheduler.h"

namespace skein {

Urgency Scheduler::UrgencyOf(const Sequence& sequence) {
  const Request& request = sequence.request->request;
  if (config_.order == Order::kFcfs) return {.priority = request.priority};
  if (config_.order != Order::kFair) {
    const int32_t num_cached = NumCachedBlocks(sequence, blocks_) * kBlockTokens;
    return {.priority = request.priority, .rank = CacheRankOf(sequence, num_cached)};
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

// Its place by order, where so many of its tokens are cached.
int64_t Scheduler::CacheRankOf(const Sequence& sequence, int32_t num_cached) const {
  if (config_.order == Order::kLpm) return -num_cached;
  if (config_.order == Order::kDfsWeight) return 0;  // until the next round begins
  return JctRankOf(sequence, num_cached);
}

bool Scheduler::IsWatched(const Sequence& sequence) const {
  if (sequence.state != SequenceState::kWaiting) return false;
  if (FollowsCache()) return true;
  return config_.forests && sequence.oneshot() && sequence.request->shares_prefix;
}

// Follows the changes of the prefix cache, which move who is concerned to its new place.
void Scheduler::Recalibrate() {
  watch_.Follow(blocks_, [this](Sequence* sequence, int32_t num_cached_blocks) {
    if (!FollowsCache()) return;
    Rekey(sequence, CacheRankOf(*sequence, num_cached_blocks * kBlockTokens));
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

// Ranks all who wait for the first time anew, as order dfs-weight does in each round.
void Scheduler::OrderDepthFirst() {
  std::vector<CachedPath> paths;
  std::vector<Sequence*> sequences;
  for (const auto& [id, request] : requests_) {
    Sequence* sequence = request->sequences.front().get();
    if (sequence->state != SequenceState::kWaiting) continue;
    const int32_t num_cached = NumCachedBlocks(*sequence, blocks_);
    paths.push_back({.hashes = sequence->blocks.hashes().blocks().first(num_cached),
                     .arrival = request->arrival,
                     .index = static_cast<int32_t>(sequences.size())});
    sequences.push_back(sequence);
  }
  RankDepthFirst(paths);
  for (const CachedPath& path : paths) RekeyWatched(sequences[path.index], path.rank);
}

// Of a sequence that may be in watch_.
void Scheduler::RekeyWatched(Sequence* sequence, int64_t rank) {
  if (sequence->request->urgency.rank == rank) return;
  const bool watched = sequence->trunk == nullptr && IsWatched(*sequence);
  if (watched) watch_.Erase(sequence);
  Rekey(sequence, rank);
  if (watched) watch_.Insert(sequence, blocks_);
}

// Corrects the cost model by the step that has ended; a new version orders all who wait anew.
void Scheduler::ObserveStep(TimeUs now_us) {
  if (config_.order != Order::kSrjfCalibrated || !cost_.known()) return;
  if (!cost_.Observe(step_work_, static_cast<double>(StepTimeUs(now_us)))) return;
  if (!jct_order_.Adopt(cost_.fit())) return;
  for (const auto& [id, request] : requests_) {
    Sequence* sequence = request->sequences.front().get();
    if (sequence->trunk != nullptr || !IsWatched(*sequence)) continue;
    RekeyWatched(sequence,
                 JctRankOf(*sequence, NumCachedBlocks(*sequence, blocks_) * kBlockTokens));
  }
}

}  // namespace skein
