#pragma once

#include <cstdint>
#include <optional>

#include "sched/config.h"
#include "sched/cost_model.h"
#include "sched/order/order_policy.h"

namespace skein {

// Orders by deadline (FlowPrefill, section 5). The request with the highest priority goes first.
// The priority is
//
//   edf    1 / deadline
//   d-edf  sgn(deadline - now) / deadline
//   s-edf  sgn(slack) / deadline,   slack = deadline - now - predicted remaining time
//
// and ties go by arrival. Requests with positive slack thus go first, by deadline. Then follow
// those with slack 0, then those with negative slack, the latest deadline first. Slack falls with
// the clock alone, so its sign changes at a known time. Until then, the rank is constant. A changed
// prediction only moves that time. The ranks of these parts follow each other:
//
//   rank:   overdue, by the end of their bound | slack > 0, by deadline | 0 | < 0, latest first
//
// The bound is our addition: by the formula alone, a request with negative slack may wait for ever
// behind later requests. A request that has had no slack for `max_late_us` is overdue and goes
// before all others.
//
// deadline = arrival + SLO x 2^priority: one step of Request::priority doubles or halves the time
// that a request is given. It thus shifts the deadline; not every request of a better priority goes
// before those of a worse one. Requests without an SLO have `default_slo_us`. Not thread-safe.
class SlackOrder final : public OrderPolicy {
 public:
  static constexpr TimeUs kNever = Ranking::kNever;

  // `cost` outlives the order. REQUIRES: `config` comes from MakeSchedulerConfig.
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
  // which this rank holds.
  Ranking RankOf(TimeUs deadline_us, TimeUs remaining_us, TimeUs now_us) const;

 private:
  // The time from which on the slack is 0 or less.
  TimeUs FlipOf(TimeUs deadline_us, TimeUs remaining_us) const;

  const Order order_;
  const TimeUs max_late_us_;  // kNever: no bound
  const CostModel* const cost_;
};

}  // namespace skein
