#pragma once

#include <cstdint>
#include <optional>

#include "sched/config.h"
#include "sched/cost_model.h"
#include "sched/order/client_backlog.h"
#include "sched/order/order_policy.h"

namespace skein {

// The default order. Requests that name a deadline go by deadline, others by the shortest remaining
// job, and every wait is bounded. The ranks of four parts follow each other:
//
//   overdue | in time, by deadline | without a deadline, by due time | late, the latest first
//
// - In time: the request names a deadline (`slo_ttft_ms`) and can still meet it, as under `s-edf`
//   (FlowPrefill, section 5; sched/order/slack_order.h). While requests without a deadline wait, it
//   has a due time like them until kPatience of its slack is used.
// - Without a deadline: the due time is arrival + stretch x predicted remaining time. A stretch of
//   1 / kAging is PrefillOnly's order (section 6; sched/order/jct_order.h). If the client has more
//   than 1 / kAging prompts waiting, their number is the stretch. A client with a thousand requests
//   therefore does not hold up a client with a single request. The reads for one request of the
//   server are a group, and its answer needs all of them. Each read therefore counts the time of
//   the group's first read.
// - Late: the deadline cannot be met any more. In the last kLateShare of the bound below, the
//   bound's end is the deadline, and the request is in time again. If a long request first became
//   overdue, the short ones that arrive while it is served would be late, too.
// - Overdue: the request has waited longer than
//
//     kMaxStretch x (time of all prompts that were there when it arrived) + kMaxWaitUs
//
//   and kMaxStretch x (their tokens) of prompts have been computed since. That time is its wait
//   under first come, first served, at the speed so far. The tokens correct it where prompts begin
//   to wait for decode slots. A request that names a deadline is also not overdue before
//   DeadlineConfig::max_late_us after its deadline: a request that is late in any case must not
//   make others late. Overdue requests go first, by the end of their bound. No load therefore
//   starves a request. They may meet each other there, so that a wait can be somewhat longer than
//   the bound.
//
// A step makes way only for a request in time that needs it (Preemption::NeedsStop). A rank changes
// with the cached share of a prompt, at known times, and with a version of the cost model. Without
// a cost model, the device is assumed to compute JctOrder::kUnknownSpeed tokens per second. Not
// thread-safe.
class AutoOrder final : public OrderPolicy {
 public:
  static constexpr double kMaxStretch = 3;
  static constexpr TimeUs kMaxWaitUs = 2'000'000;
  static constexpr double kAging = 0.05;
  static constexpr double kPatience = 0.5;
  static constexpr double kLateShare = 0.5;

  // `cost` outlives the order. REQUIRES: `config` comes from MakeSchedulerConfig.
  AutoOrder(const SchedulerConfig& config, const CostModel* cost);

  Ranking RankArrival(const OrderView& view, TimeUs now_us) override;
  std::optional<Ranking> Rerank(const OrderView& view, TimeUs now_us) const override;
  bool FollowsCache() const override { return true; }
  bool ByDeadline() const override { return true; }
  int64_t FirstPatientRank() const override;
  bool StopsStepsOnlyInNeed() const override { return true; }
  bool NeedsCosts() const override { return true; }
  bool AdoptCosts(const CostFit& /*fit*/) override { return true; }
  void OnPrompt(const Request& request, const OrderMemo& memo, TimeUs now_us) override;
  void OnEnd(const Request& request, int64_t num_unserved, const OrderMemo& memo) override;

 private:
  // The predicted time of `num_tokens` tokens behind `num_behind` tokens.
  TimeUs TimeOf(int64_t num_tokens, int64_t num_behind) const;
  TimeUs RemainingUs(const OrderView& view) const;
  // When a request without a deadline is due.
  TimeUs DueUs(const OrderView& view, TimeUs remaining_us) const;
  // The time of so many tokens at the speed of the latest prompts, decodes beside them included.
  // The cost model's speed counts like a few prompts before them.
  TimeUs WaitOf(int64_t num_tokens) const;
  // When a request that arrives now is overdue. `num_before`: kMaxStretch times the tokens in line.
  TimeUs OverdueUs(const OrderView& view, int64_t num_before, TimeUs now_us) const;

  const TimeUs max_late_us_;
  const CostModel* const cost_;
  ClientBacklog backlog_;
  uint64_t last_group_ = 0;   // of the latest arrival
  TimeUs group_work_us_ = 0;  // predicted time of the group's first member
  // Sums over the latest prompts: their tokens, and the time during which any prompt waited or ran.
  double served_tokens_ = 0, served_us_ = 0;
  TimeUs serves_since_us_ = 0;  // the last prompt was computed, or the first of a backlog arrived
  int64_t num_free_ = 0;        // waiting requests without a deadline
  int64_t num_served_ = 0;      // tokens of all prompts that were computed
};

}  // namespace skein
