#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sched/context.h"
#include "sched/order/rank_timers.h"
#include "sched/prefix/prefix_watch.h"
#include "sched/step.h"

namespace skein {

// Keeps the keys of all requests equal to the ranks of the order policy, and the queues sorted by
// these keys. It asks for a rank again when the cached share of a prompt, the time, a prompt's
// progress or the cost model has changed. Owns the watch on cached prefixes. Not thread-safe.
//
// If waiting is bounded, a request that has been there for half of its bound presses: it then goes
// before all requests of its priority that do not press, in every order. Without this rule, an
// order that prefers others would keep accepted requests waiting beyond the bound. Under an order
// by deadline, the end of the bound is the deadline of a request that names none. A request that
// names its deadline never presses there: the order serves it late if it is late. A priority shifts
// the bound as it shifts deadlines.
class Ranks {
 public:
  explicit Ranks(const SchedulerContext& context);

  // Sets the bound on the wait of requests without a timeout (MaxWaitUs).
  void set_max_wait_us(TimeUs us) { max_wait_us_ = us; }

  // Begins a round: changes since the last round are ranked as of this time.
  void BeginRound(TimeUs now_us);
  // Ranks again the requests whose rank changes by the clock alone.
  void FollowClock(TimeUs now_us);
  // Follows the changes of the prefix cache. Does nothing if ranks do not depend on them.
  void FollowCacheInRound();

  // Gives an arriving request its deadline and its rank.
  void RankArrival(Sequence* sequence, TimeUs now_us);
  void EnterWaiting(Sequence* sequence);
  void LeaveWaiting(Sequence* sequence);

  // In orders by deadline: a prompt has progressed, or was given up. REQUIRES: the prompt is not
  // watched.
  void NoteProgress(Sequence* sequence, int32_t num_cached, TimeUs now_us);
  void NotePreempted(Sequence* sequence);
  // `num_computed` tokens of the shared prefix that the sequence will continue are computed.
  void FollowPrefix(Sequence* member, int32_t num_computed, TimeUs now_us);
  // Ranks again a sequence that may be watched, and watches it if it is to be.
  void Relocate(Sequence* sequence, TimeUs now_us);
  void RelocateInRound(Sequence* sequence) { Relocate(sequence, round_us_); }
  // Makes the leader as urgent as its peer, which waits for the leader's row.
  void Inherit(Sequence* leader, const Sequence& peer);
  // Adopts the cost model's new version.
  void AdoptCosts(TimeUs now_us);

  // While a step runs, the remaining time of its prompts falls with the clock. So their ranks stay.
  void Hold(const Step& step);
  // The step is suspended with `left_us` of predicted time left, or is dropped (nullopt).
  void Release(const Step& step, std::optional<TimeUs> left_us, TimeUs now_us);
  void ReleaseInRound(const Step& step) { Release(step, std::nullopt, round_us_); }
  // The rank of the request no longer changes by the clock.
  void Forget(Sequence* sequence) { timers_.Clear(sequence); }

  // Tokens of the sequence's prompt that are computed, or that it would take from the cache now.
  int32_t NumCachedNow(const Sequence& sequence) const;
  // Missing tokens of a prompt that runs or waits, at least one.
  int32_t NumMissingNow(const Sequence& sequence) const;
  // The watch on cached prefixes. It also finds sequences that may share a prefix.
  PrefixWatch& watch() { return watch_; }
  std::optional<TimeUs> NextTime() const { return timers_.Next(); }

  void CheckIntegrity() const;

 private:
  OrderView ViewOf(const Sequence& sequence, int32_t num_cached) const;
  bool IsWatched(const Sequence& sequence) const;
  void FollowCache(TimeUs now_us);
  void SetWaitBound(RequestRecord* request) const;
  // Changes the rank of a request that presses, or notes when it will.
  void Press(RequestRecord* request, TimeUs now_us, Ranking* ranking) const;
  void RankAll(TimeUs now_us);
  void SetRank(RequestRecord* request, int64_t rank, int32_t num_missing);
  void Reorder(Sequence* sequence, int32_t num_cached, TimeUs now_us);

  const SchedulerConfig& config_;
  BlockManager* const blocks_;
  const CostModel* const cost_;
  RequestTable* const table_;
  OrderPolicy* const order_;
  DecodeSetPolicy* const decode_set_;
  const bool calibrates_;  // ranks or predicted costs depend on the cache
  PrefixWatch watch_;      // sequences that wait for the first time and share no prefix
  RankTimers timers_;      // for requests whose prompts are not computed yet
  TimeUs max_wait_us_ = 0;
  TimeUs round_us_ = 0;           // when the last round began
  std::vector<Sequence*> moved_;  // scratch of SetRank; keeps its memory
};

}  // namespace skein
