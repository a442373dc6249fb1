#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "sched/order/depth_first.h"
#include "sched/sequence.h"
#include "skein/config.h"
#include "skein/request.h"

namespace skein {

// The facts of a request that an order policy sees.
struct OrderView {
  const Request& request;  // without its prompt
  TimeUs arrival_us = 0;
  TimeUs deadline_us = 0;
  int32_t prompt_len = 0;
  int64_t num_tokens = 0;  // tokens to be computed, including cached ones
  int32_t num_cached = 0;  // of num_tokens, computed or in the prefix cache
  StepRest step_rest;      // of the suspended step that computes its prompt
  OrderMemo memo;          // as set by RankArrival

  // Tokens that are computed, cached or in the suspended step; and the missing tokens.
  int64_t num_behind() const { return num_cached + step_rest.num_tokens; }
  int64_t num_missing() const { return num_tokens - num_behind(); }
};

// The rank of a request: the smaller rank goes first; ties go by arrival.
struct Ranking {
  static constexpr TimeUs kNever = std::numeric_limits<TimeUs>::max();

  int64_t rank = 0;
  TimeUs until_us = kNever;  // from this time on, Rerank may return another rank
  int64_t num_charged = 0;   // tokens that the policy has charged to a client; OnEnd returns them
  OrderMemo memo;            // set by RankArrival
};

// The order of waiting requests of one priority. The scheduler asks for a rank when a request
// arrives. It asks again when the prefix cache, the clock or the cost model changes an input of the
// rank. It sorts the queues by these ranks. Each policy has an entry in one list
// (sched/policies.cc). Deterministic. Not thread-safe.
class OrderPolicy {
 public:
  // In orders by deadline, ranks from this one on belong to requests that will miss their deadline.
  static constexpr int64_t kFirstLateRank = int64_t{1} << 61;
  static constexpr int32_t kMaxShift = 16;  // by deadline: larger priorities count as this one

  static constexpr int32_t ShiftOf(int32_t priority) {
    return std::clamp(priority, -kMaxShift, kMaxShift);
  }

  virtual ~OrderPolicy() = default;

  // The rank of a request that arrives now. `view.num_cached` is 0 unless LooksAtCache.
  virtual Ranking RankArrival(const OrderView& view, TimeUs now_us) = 0;
  // The present rank of a request; nullopt: it keeps its last rank.
  virtual std::optional<Ranking> Rerank(const OrderView& /*view*/, TimeUs /*now_us*/) const {
    return std::nullopt;
  }

  // Whether ranks depend on the cached share of a prompt at the request's arrival.
  virtual bool LooksAtCache() const { return FollowsCache(); }
  // Whether Rerank depends on the cached share of a prompt at any time.
  virtual bool FollowsCache() const { return false; }
  // Whether no request takes the rest of a step that an earlier arrival waits to enter.
  virtual bool InLine() const { return false; }
  // Whether ranks are deadlines. A priority then shifts the deadline and is no rank of its own.
  // Ranks follow the progress of prompts, and urgent requests go before started prompts.
  virtual bool ByDeadline() const { return false; }
  // In orders by deadline, no step makes way for requests with ranks from this one on.
  virtual int64_t FirstPatientRank() const { return kFirstLateRank; }
  // Whether a step makes way only for a request that would otherwise miss its deadline. Ranks below
  // FirstPatientRank are then deadlines, or negative for requests that need no stop.
  virtual bool StopsStepsOnlyInNeed() const { return false; }
  // Whether ranks depend on the cost model, so that a profile run improves them.
  virtual bool NeedsCosts() const { return false; }

  // Adopts a new version of the cost model. Returns true if earlier ranks are void.
  virtual bool AdoptCosts(const CostFit& /*fit*/) { return false; }

  // Whether all waiting requests are ranked again in every round, by RankRound. `paths`: the cached
  // blocks of each request; RankRound sets their ranks.
  virtual bool RanksEachRound() const { return false; }
  virtual void RankRound(std::span<CachedPath> /*paths*/) const {}

  // A request of this rank has been admitted, with `num_tokens` to be computed.
  virtual void OnAdmit(int64_t /*rank*/, int64_t /*num_tokens*/) {}
  // The prompt of a request has been computed.
  virtual void OnPrompt(const Request& /*request*/, const OrderMemo& /*memo*/, TimeUs /*now_us*/) {}
  // A request has ended; `num_unserved` of the tokens charged for it were not computed. `memo` is
  // empty if OnPrompt was called before.
  virtual void OnEnd(const Request& /*request*/, int64_t /*num_unserved*/,
                     const OrderMemo& /*memo*/) {}
};

}  // namespace skein
