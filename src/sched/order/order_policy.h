#pragma once

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
  int64_t num_tokens = 0;  // to be computed in all
  int32_t num_cached = 0;  // of these, computed or in the prefix cache
  StepRest step_rest;      // of the suspended step that computes its prompt
  OrderMemo memo;          // as RankArrival returned it

  // Tokens that are computed, cached or in the suspended step, and the others.
  int64_t num_behind() const { return num_cached + step_rest.num_tokens; }
  int64_t num_missing() const { return num_tokens - num_behind(); }
};

// The rank of a request: the smaller goes first, ties by arrival.
struct Ranking {
  static constexpr TimeUs kNever = std::numeric_limits<TimeUs>::max();

  int64_t rank = 0;
  TimeUs until_us = kNever;  // from then on Rerank may return another rank
  int64_t num_charged = 0;   // tokens that the policy has charged to a client; OnEnd returns them
  OrderMemo memo;            // of RankArrival
};

// The order of waiting requests of one priority. The scheduler asks for a rank when a request
// arrives. It asks again when the prefix cache, the clock or the cost model changes an input of the
// rank. It orders the queues by these ranks. A policy is named in one list (sched/policies.cc).
// Deterministic. Not thread-safe.
class OrderPolicy {
 public:
  // By deadline: ranks from this one on belong to requests that will miss theirs.
  static constexpr int64_t kFirstLateRank = int64_t{1} << 61;
  static constexpr int32_t kMaxShift = 16;  // by deadline: the largest priority that counts

  virtual ~OrderPolicy() = default;

  // The rank of a request that arrives now. `view.num_cached` is 0 unless LooksAtCache.
  virtual Ranking RankArrival(const OrderView& view, TimeUs now_us) = 0;
  // The rank of a request as things are now; nullopt: it keeps the rank that it has.
  virtual std::optional<Ranking> Rerank(const OrderView& /*view*/, TimeUs /*now_us*/) const {
    return std::nullopt;
  }

  // The cached share of a prompt counts when the request arrives.
  virtual bool LooksAtCache() const { return FollowsCache(); }
  // Rerank depends on the cached share of a prompt at any time.
  virtual bool FollowsCache() const { return false; }
  // Ranks stand for deadlines: a priority shifts the deadline and is no rank of its own. Ranks
  // follow the progress of prompts, and urgent requests go before started prompts.
  virtual bool ByDeadline() const { return false; }
  // By deadline: no step makes way for requests with ranks from this one on.
  virtual int64_t FirstPatientRank() const { return kFirstLateRank; }
  // Ranks depend on the cost model, so that a profile pays.
  virtual bool NeedsCosts() const { return false; }

  // The cost model has a new version. Returns true if ranks made before are void.
  virtual bool AdoptCosts(const CostFit& /*fit*/) { return false; }

  // Orders that rank all waiting requests anew in every round. `paths`: the cached blocks of each;
  // RankRound sets their ranks.
  virtual bool RanksEachRound() const { return false; }
  virtual void RankRound(std::span<CachedPath> /*paths*/) const {}

  // A request of this rank has been admitted, with `num_tokens` to be computed.
  virtual void OnAdmit(int64_t /*rank*/, int64_t /*num_tokens*/) {}
  // The prompt of a request has been computed.
  virtual void OnPrompt(const Request& /*request*/, const OrderMemo& /*memo*/, TimeUs /*now_us*/) {}
  // A request has ended; `num_unserved` of the tokens charged for it were not computed. `memo`:
  // empty once OnPrompt has been called.
  virtual void OnEnd(const Request& /*request*/, int64_t /*num_unserved*/,
                     const OrderMemo& /*memo*/) {}
};

}  // namespace skein
