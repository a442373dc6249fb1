// The keys by which Scheduler's requests are ordered, and when they change.

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "sched/order/depth_first.h"
#include "sched/scheduler.h"

namespace skein {

Urgency Scheduler::UrgencyOf(Sequence* sequence, TimeUs now_us) {
  RequestRecord* record = sequence->request;
  const Request& request = record->request;
  record->deadline_us = slack_.DeadlineOf(request, now_us);
  int32_t num_cached = 0;
  if (Calibrates() || config_.order == Order::kSrjf) num_cached = NumCachedNow(*sequence);
  record->num_missing = record->prompt_len - num_cached;
  switch (config_.order) {
    case Order::kFcfs:
      return {.priority = request.priority};
    case Order::kFair:
      break;
    case Order::kSrjf:
    case Order::kSrjfCalibrated:
      return {.priority = request.priority, .rank = JctRankOf(*sequence, num_cached)};
    case Order::kLpm:
      return {.priority = request.priority, .rank = -num_cached};
    case Order::kDfsWeight:  // ranked when the next round begins
      return {.priority = request.priority};
    case Order::kEdf:
    case Order::kDeadlineEdf:
    case Order::kSlackEdf:  // the priority is in the deadline
      return {.rank = SlackRankOf(sequence, num_cached, now_us)};
  }
  // What is to be computed, as far as that is known now: the members of a group after its first
  // bring their own tokens only.
  int32_t num_shared = NeedOf(*sequence).num_cached;
  if (request.group.id != 0 && request.group.id == last_group_) {
    num_shared = std::max(num_shared, request.group.parent_prefix_len);
  }
  last_group_ = request.group.id;
  record->unserved = std::max(1, record->prompt_len - num_shared);
  return {.priority = request.priority, .rank = fair_queue_.Enter(request, record->unserved)};
}

int64_t Scheduler::JctRankOf(const Sequence& sequence, int32_t num_cached) const {
  const RequestRecord& request = *sequence.request;
  return jct_order_.RankOf(request.prompt_len, num_cached,
                           request.times.arrival_us - first_arrival_us_);
}

// Also has the rank renewed when it will change.
int64_t Scheduler::SlackRankOf(Sequence* sequence, int32_t num_cached, TimeUs now_us) {
  const StepRest& rest = sequence->request->step_rest;
  const int64_t num_behind = num_cached + rest.num_tokens;
  const int64_t num_missing = std::ssize(sequence->tokens) - num_behind;
  TimeUs remaining_us = rest.left_us;
  if (num_missing > 0) {
    remaining_us += std::llround(cost_.PredictUs(WorkOf(num_missing, num_behind)));
  }
  const SlackOrder::Place place =
      slack_.PlaceOf(sequence->request->deadline_us, remaining_us, now_us);
  slack_.Watch(sequence, place.until_us);
  return place.rank;
}

// Tokens of its prompt that are computed, or that it would take from the cache now.
int32_t Scheduler::NumCachedNow(const Sequence& sequence) const {
  if (IsRunning(sequence.state)) return sequence.num_computed;
  return NumCachedBlocks(sequence, blocks_) * kBlockTokens;
}

int32_t Scheduler::NumMissingNow(const Sequence& sequence) const {
  return std::max(1, static_cast<int32_t>(sequence.tokens.size()) - NumCachedNow(sequence));
}

bool Scheduler::IsWatched(const Sequence& sequence) const {
  if (sequence.state != SequenceState::kWaiting) return false;
  if (Calibrates()) return true;
  return config_.forests && sequence.oneshot() && sequence.request->shares_prefix;
}

// Follows the changes of the prefix cache, which move who is concerned to its new place.
void Scheduler::Recalibrate() {
  watch_.Follow(blocks_, [this](Sequence* sequence, int32_t num_cached_blocks) {
    if (Calibrates()) Reorder(sequence, num_cached_blocks * kBlockTokens, planned_us_);
  });
  blocks_.ForgetChanges();
}

// Moves those whose rank has changed by the clock alone.
void Scheduler::FollowMoments(TimeUs now_us) {
  while (Sequence* sequence = slack_.TakeDue(now_us)) Relocate(sequence, now_us);
}

// While a step runs, what its prompts still need falls with the clock, so their slack stays.
void Scheduler::HoldRanks() {
  for (const StepRow& row : step_.prefills) {
    if (row.trunk == nullptr) slack_.Watch(row.sequence, SlackOrder::kNever);
  }
}

// The step stands still and would run for so long yet, or is dropped (nullopt): slack falls again.
void Scheduler::ReleaseRanks(const Step& step, std::optional<TimeUs> left_us, TimeUs now_us) {
  if (!OrdersByDeadline()) return;
  for (const StepRow& row : step.prefills) {
    if (row.trunk != nullptr || row.sequence->request->forked || HasEnded(row.sequence->state)) {
      continue;
    }
    row.sequence->request->step_rest = left_us ? StepRest{*left_us, row.num_tokens} : StepRest{};
    Relocate(row.sequence, now_us);
  }
}

// Gives the request its rank and what is missing of its prompt, and moves those of its sequences
// that the order holds, running or waiting, to where it has them now. REQUIRES: none is in watch_,
// whose tables are ordered by key.
void Scheduler::SetRank(RequestRecord* request, int64_t rank, int32_t num_missing) {
  if (rank == request->urgency.rank && num_missing == request->num_missing) return;
  moved_.clear();
  for (const auto& sequence : request->sequences) {
    const bool runs = IsRunning(sequence->state);
    // Who is deferred comes back at the end of the round.
    if (HasEnded(sequence->state) || (!runs && !waiting_.Contains(*sequence))) continue;
    moved_.push_back(sequence.get());
    if (runs) {
      running_.erase(std::ranges::find(running_, sequence.get()));
    } else {
      waiting_.Erase(sequence.get());
    }
  }
  request->num_missing = num_missing;
  const int64_t rank_before = std::exchange(request->urgency.rank, rank);
  for (Sequence* sequence : moved_) {
    if (IsRunning(sequence->state)) {
      InsertRunning(sequence);
    } else {
      waiting_.Insert(sequence);
    }
  }
  if (flock_ && rank != rank_before) flock_->Rerank(*request);
}

// Puts the sequence, of whose prompt so much is computed or cached, where the order has it now.
// REQUIRES: it is its request's only one, and not in watch_.
void Scheduler::Reorder(Sequence* sequence, int32_t num_cached, TimeUs now_us) {
  RequestRecord* request = sequence->request;
  const int32_t num_missing = static_cast<int32_t>(sequence->tokens.size()) - num_cached;
  int64_t rank = request->urgency.rank;
  if (config_.order == Order::kSrjfCalibrated) {
    rank = JctRankOf(*sequence, num_cached);
  } else if (config_.order == Order::kLpm) {
    rank = -num_cached;
  } else if (OrdersByDeadline()) {
    rank = SlackRankOf(sequence, num_cached, now_us);
  }
  SetRank(request, rank, num_missing);
}

// Reorder, of one that may be watched.
void Scheduler::Relocate(Sequence* sequence, TimeUs now_us) {
  watch_.Erase(sequence);
  Reorder(sequence, NumCachedNow(*sequence), now_us);
  if (sequence->trunk == nullptr && IsWatched(*sequence)) watch_.Insert(sequence, blocks_);
}

// Ranks all who wait for the first time anew, as order dfs-weight does in each round.
// REQUIRES: nobody is deferred.
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
  for (const CachedPath& path : paths) {
    Sequence* sequence = sequences[path.index];
    if (sequence->request->urgency.rank == path.rank) continue;
    watch_.Erase(sequence);
    SetRank(sequence->request, path.rank, sequence->request->num_missing);
    if (sequence->trunk == nullptr && IsWatched(*sequence)) watch_.Insert(sequence, blocks_);
  }
}

// Corrects the cost model by the step that has ended, its kind's predictions too; a new version
// orders all anew. Steps of decodes alone tell nothing about prompts.
void Scheduler::ObserveStep(TimeUs now_us) {
  if (!cost_.known()) return;
  const StepKind kind = step_.prefills.empty()  ? StepKind::kDecode
                        : step_.decodes.empty() ? StepKind::kPrefill
                                                : StepKind::kMixed;
  cost_.ObserveKind(kind, step_.work, static_cast<double>(step_.RanUs(now_us)));
  if (step_.prefills.empty()) return;
  if (!cost_.Observe(step_.work, static_cast<double>(step_.RanUs(now_us)))) return;
  if (config_.order == Order::kSrjfCalibrated) {
    if (jct_order_.Adopt(cost_.fit())) RenewJctRanks(now_us);
  } else if (config_.order == Order::kSlackEdf) {
    for (const auto& [id, request] : requests_) {
      Sequence* sequence = request->sequences.front().get();
      if (!request->forked && request->num_live > 0) Relocate(sequence, now_us);
    }
  }
}

// Ranks all by a new version of the cost model: who is watched by what is cached now, the others by
// what was when they were ranked last. Who is ranked as a peer that waits for it is so again when
// that peer is next looked at. REQUIRES: nobody is deferred.
void Scheduler::RenewJctRanks(TimeUs now_us) {
  for (const auto& [id, request] : requests_) {
    if (request->num_live == 0) continue;
    Sequence* first = request->sequences.front().get();
    if (first->trunk == nullptr && IsWatched(*first)) {
      Relocate(first, now_us);
      continue;
    }
    SetRank(request.get(), JctRankOf(*first, request->prompt_len - request->num_missing),
            request->num_missing);
  }
}

// Who is watched is ranked by the cache as it is now. REQUIRES: its changes have been followed.
void Scheduler::CheckWatched() const {
  watch_.CheckIntegrity(blocks_);
  if (config_.order != Order::kSrjfCalibrated) return;
  for (const auto& [id, request] : requests_) {
    const Sequence& sequence = *request->sequences.front();
    if (sequence.trunk != nullptr || !IsWatched(sequence)) continue;
    SKEIN_CHECK(request->urgency.rank == JctRankOf(sequence, NumCachedNow(sequence)));
  }
}

// The request's first token is there: how well was the time from its first step to that foretold?
void Scheduler::NotePrediction(const Sequence& sequence, TimeUs now_us) {
  const RequestRecord& request = *sequence.request;
  const auto real_us = static_cast<double>(now_us - request.times.first_scheduled_us);
  if (request.predicted_us == 0 || real_us <= 0) return;
  const double error = std::abs(request.predicted_us / real_us - 1);
  const auto& bounds = EngineStats::kErrorBounds;
  const auto place = std::ranges::lower_bound(bounds, error) - bounds.begin();
  const bool alone = sole_ == &sequence && sole_since_ <= request.first_iteration;
  ErrorHistogram& histogram = alone ? stats_.ttft_error_alone : stats_.ttft_error_shared;
  ++histogram.counts[place];
  histogram.sum += error;
}

}  // namespace skein
