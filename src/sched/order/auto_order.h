#pragma once

#include <cstdint>
#include <optional>

#include "sched/config.h"
#include "sched/cost_model.h"
#include "sched/order/client_backlog.h"
#include "sched/order/order_policy.h"

namespace skein {

// The default order: deadlines where requests name them, shortest remaining job first where they do
// not, and a bound on every wait. Four parts, end to end:
//
//   overdue | in time, by deadline | without a deadline, by due time | late, the latest first
//
// - In time: the request names a deadline (`slo_ttft_ms`) and can still meet it, as under `s-edf`
//   (FlowPrefill, section 5; sched/order/slack_order.h).
// - Without a deadline: the due time is arrival + stretch x predicted remaining time. A stretch of
//   1 / kAging is PrefillOnly's order (section 6; sched/order/jct_order.h). If the client has more
//   prompts waiting than that, their number is the stretch. A client with a thousand requests
//   therefore does not hold up one with a single request. The reads of one request of the server
//   are a group, and their answer needs all of them: they count the time of the group's first.
// - Late: the deadline cannot be met any more.
// - Overdue: the request has waited longer than
//
//     kMaxStretch x (time of all prompts that were there when it arrived) + kMaxWaitUs
//
//   That time is its wait under first come, first served. Overdue requests go first, by the end of
//   their bound. No load therefore starves a request. They may meet each other there, so that a
//   wait can be somewhat longer than the bound.
//
// No step makes way for a request without a deadline. A rank changes with the cached share of a
// prompt, at known times, and with a version of the cost model. Without a cost model, the device
// counts as one of JctOrder::kUnknownSpeed tokens per second. Not thread-safe.
class AutoOrder final : public OrderPolicy {
 public:
  static constexpr double kMaxStretch = 3;
  static constexpr TimeUs kMaxWaitUs = 2'000'000;
  static constexpr double kAging = 0.05;

  // `cost` outlives the order.
  explicit AutoOrder(const CostModel* cost) : cost_(cost) {}

  Ranking RankArrival(const OrderView& view, TimeUs now_us) override;
  std::optional<Ranking> Rerank(const OrderView& view, TimeUs now_us) const override;
  bool FollowsCache() const override { return true; }
  bool ByDeadline() const override { return true; }
  int64_t FirstPatientRank() const override;
  bool NeedsCosts() const override { return true; }
  bool AdoptCosts(const CostFit& /*fit*/) override { return true; }
  void OnPrompt(const Request& request, const OrderMemo& memo, TimeUs now_us) override;
  void OnEnd(const Request& request, int64_t num_unserved, const OrderMemo& memo) override;

 private:
  // The predicted time of `num_tokens` behind `num_behind`.
  TimeUs TimeOf(int64_t num_tokens, int64_t num_behind) const;
  TimeUs RemainingUs(const OrderView& view) const;
  // The time of the backlog at the speed of the latest prompts, decodes beside them included. The
  // cost model's speed counts like a few prompts before them.
  TimeUs TimeOfBacklog() const;

  const CostModel* const cost_;
  ClientBacklog backlog_;
  uint64_t last_group_ = 0;   // of the latest arrival
  TimeUs group_work_us_ = 0;  // predicted time of its first member
  // The latest prompts: their tokens, and the time for which any prompt was there.
  double served_tokens_ = 0, served_us_ = 0;
  TimeUs serves_since_us_ = 0;  // the last prompt was computed, or the first of a backlog arrived
};

}  // namespace skein
