#include "sched/order/slack_order.h"

#include <algorithm>
#include <cmath>

namespace skein {
namespace {

// The parts of the ranks begin at these bounds. Deadlines lie in (0, 2^60).
constexpr int64_t kOverdue = -(int64_t{1} << 62);
constexpr int64_t kLate = int64_t{1} << 62;
constexpr double kMaxSloUs = 1e15;  // about 31 years

}  // namespace

SlackOrder::SlackOrder(const SchedulerConfig& config, const CostModel* cost)
    : order_(config.policies.order),
      max_late_us_(config.deadlines.max_late_us > 0 ? config.deadlines.max_late_us : kNever),
      cost_(cost) {}

TimeUs SlackOrder::DeadlineOf(const Request& request, TimeUs arrival_us, TimeUs default_slo_us) {
  const auto slo_us = static_cast<double>(request.slo_ttft_us.value_or(default_slo_us));
  return arrival_us +
         std::llround(std::clamp(std::ldexp(slo_us, ShiftOf(request.priority)), 1.0, kMaxSloUs));
}

TimeUs SlackOrder::FlipOf(TimeUs deadline_us, TimeUs remaining_us) const {
  switch (order_) {
    case Order::kDeadlineEdf:
      return deadline_us;
    case Order::kSlackEdf:
      return deadline_us - remaining_us;
    default:
      return kNever;
  }
}

Ranking SlackOrder::RankOf(TimeUs deadline_us, TimeUs remaining_us, TimeUs now_us) const {
  const TimeUs flip_us = FlipOf(deadline_us, remaining_us);
  if (now_us < flip_us) return {deadline_us, flip_us};
  const TimeUs overdue_us = max_late_us_ == kNever ? kNever : flip_us + max_late_us_;
  if (now_us >= overdue_us) return {kOverdue + overdue_us, kNever};
  if (now_us == flip_us) return {kFirstLateRank, std::min(flip_us + 1, overdue_us)};
  return {kLate - deadline_us, overdue_us};
}

std::optional<Ranking> SlackOrder::Rerank(const OrderView& view, TimeUs now_us) const {
  TimeUs remaining_us = view.step_rest.left_us;
  if (view.num_missing() > 0) {
    remaining_us += std::llround(cost_->PredictUs(WorkOf(view.num_missing(), view.num_behind())));
  }
  return RankOf(view.deadline_us, remaining_us, now_us);
}

}  // namespace skein
