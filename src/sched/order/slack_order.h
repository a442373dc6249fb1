#pragma once

#include <cstdint>
#include <optional>

#include "sched/config.h"
#include "sched/cost_model.h"
#include "sched/order/order_policy.h"

namespace skein {

// Orders by deadline (FlowPrefill, section 5): the highest priority goes first, which is
//
//   edf    1 / deadline
//   d-edf  sgn(deadline - now) / deadline
//   s-edf  sgn(slack) / deadline,   slack = deadline - now - predicted remaining time
//
// with equal ones by arrival. Requests with slack thus go first, by deadline, then those with slack
// 0, then those without, the latest deadline first. Slack falls with the clock alone, so its sign
// flips at a known time. Until then the rank is constant. A changed prediction only moves that
// time. Ranks put the parts end to end:
//
//   rank:   overdue, by the end of their bound | slack, by deadline | 0 | none, latest first
//
// The bound is ours: by the formula alone, a request without slack may wait for ever behind later
// ones. A request without slack for `max_late_us` goes before all others.
//
// deadline = arrival + SLO x 2^priority: a step of priority doubles or halves the time that a
// request is given. A high priority thus shifts the deadline; it does not go before every deadline
// of a lower one. Requests without an SLO have `default_slo_us`.
// Not thread-safe.
class SlackOrder final : public OrderPolicy {
 public:
  static constexpr TimeUs kNever = Ranking::kNever;

  // `cost` outlives the order. REQUIRES: as MakeSchedulerConfig makes it.
  SlackOrder(const SchedulerConfig& config, const CostModel* cost);

  // The deadline of a request. It does not depend on the order.
  static TimeUs DeadlineOf(const Request& request, TimeUs arrival_us, TimeUs default_slo_us);

  Ranking RankArrival(const OrderView& view, TimeUs now_us) override {
    return *Rerank(view, now_us);
  }
  std::optional<Ranking> Rerank(const OrderView& view, TimeUs now_us) const override;
  bool FollowsCache() const override { return NeedsCosts(); }
  bool ByDeadline() const override { return true; }
  bool NeedsCosts() const override { return order_ == Order::kSlackEdf; }
  bool AdoptCosts(const CostFit& /*fit*/) override { return NeedsCosts(); }

  // The rank at `now_us` of a request with `remaining_us` of predicted work, and the time until
  // which the rank holds.
  Ranking RankOf(TimeUs deadline_us, TimeUs remaining_us, TimeUs now_us) const;

 private:
  // The time from which slack is not above 0.
  TimeUs FlipOf(TimeUs deadline_us, TimeUs remaining_us) const;

  const Order order_;
  const TimeUs max_late_us_;  // kNever: unbounded
  const CostModel* const cost_;
};

}  // namespace skein
