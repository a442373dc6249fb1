#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sched/context.h"
#include "sched/order/rank_timers.h"
#include "sched/prefix/prefix_watch.h"
#include "sched/step.h"

namespace skein {

// Keeps the keys of all requests equal to the ranks of the order policy, and the queues in their
// order. It asks for a rank again when the cached share of a prompt, the time, a prompt's progress
// or the cost model has changed. Owns the watch on cached prefixes. Not thread-safe.
class Ranks {
 public:
  explicit Ranks(const SchedulerContext& context);

  // A round begins: changes between rounds are ranked as of this time.
  void BeginRound(TimeUs now_us);
  // Moves requests whose rank changes by the clock alone.
  void FollowClock(TimeUs now_us);
  // Follows the changes of the prefix cache. Does nothing if ranks do not depend on them.
  void FollowCacheInRound();

  // Gives a request that arrives its deadline and its rank.
  void RankArrival(Sequence* sequence, TimeUs now_us);
  void EnterWaiting(Sequence* sequence);
  void LeaveWaiting(Sequence* sequence);

  // By deadline: a prompt has progressed, or was given up. REQUIRES: it is not watched.
  void NoteProgress(Sequence* sequence, int32_t num_cached, TimeUs now_us);
  void NotePreempted(Sequence* sequence);
  // Ranks again a sequence that may be watched, and watches it if it is to be.
  void Relocate(Sequence* sequence, TimeUs now_us);
  void RelocateInRound(Sequence* sequence) { Relocate(sequence, round_us_); }
  // A peer waits for the leader's row: the leader is as urgent as the peer.
  void Inherit(Sequence* leader, const Sequence& peer);
  // The cost model has a new version.
  void AdoptCosts(TimeUs now_us);

  // While a step runs, the remaining time of its prompts falls with the clock, so their ranks stay.
  void Hold(const Step& step);
  // The step stands still with `left_us` of predicted time left, or is dropped (nullopt).
  void Release(const Step& step, std::optional<TimeUs> left_us, TimeUs now_us);
  void ReleaseInRound(const Step& step) { Release(step, std::nullopt, round_us_); }
  // The rank of the request does not change by the clock any more.
  void Forget(Sequence* sequence) { timers_.Clear(sequence); }

  // Tokens of its prompt that are computed, or that it would take from the cache now.
  int32_t NumCachedNow(const Sequence& sequence) const;
  // Tokens of a prompt that runs or waits, at least one.
  int32_t NumMissingNow(const Sequence& sequence) const;
  // The prefix watch, for the shared prefixes of sequences.
  PrefixWatch& watch() { return watch_; }
  std::optional<TimeUs> NextTime() const { return timers_.Next(); }

  void CheckIntegrity() const;

 private:
  OrderView ViewOf(const Sequence& sequence, int32_t num_cached) const;
  bool IsWatched(const Sequence& sequence) const;
  void FollowCache(TimeUs now_us);
  void RankAll();
  void SetRank(RequestRecord* request, int64_t rank, int32_t num_missing);
  void Reorder(Sequence* sequence, int32_t num_cached, TimeUs now_us);

  const SchedulerConfig& config_;
  BlockManager* const blocks_;
  const CostModel* const cost_;
  RequestTable* const table_;
  OrderPolicy* const order_;
  DecodeSetPolicy* const decode_set_;
  const bool calibrates_;         // ranks or predicted costs depend on the cache
  PrefixWatch watch_;             // sequences that wait for the first time and share no prefix
  RankTimers timers_;             // of requests whose prompts are not computed
  TimeUs round_us_ = 0;           // when the last round began
  std::vector<Sequence*> moved_;  // of SetRank; keeps its memory
};

}  // namespace skein
