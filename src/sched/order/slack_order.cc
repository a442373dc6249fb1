#include "sched/order/slack_order.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace skein {
namespace {

// Where the parts of the ranks begin or end: deadlines lie in (0, 2^60).
constexpr int64_t kOverdue = -(int64_t{1} << 62);
constexpr int64_t kLate = int64_t{1} << 62;
constexpr double kMaxSloUs = 1e15;  // 31 years

}  // namespace

SlackOrder::SlackOrder(const SchedulerConfig& config)
    : order_(config.order),
      default_slo_us_(config.default_slo_us),
      max_late_us_(config.max_late_us > 0 ? config.max_late_us : kNever) {}

TimeUs SlackOrder::DeadlineOf(const Request& request, TimeUs arrival_us) const {
  const auto slo_us = static_cast<double>(request.slo_ttft_us.value_or(default_slo_us_));
  const int32_t shift = std::clamp(request.priority, -kMaxShift, kMaxShift);
  return arrival_us + std::llround(std::clamp(std::ldexp(slo_us, shift), 1.0, kMaxSloUs));
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

SlackOrder::Place SlackOrder::PlaceOf(TimeUs deadline_us, TimeUs remaining_us,
                                      TimeUs now_us) const {
  const TimeUs flip_us = FlipOf(deadline_us, remaining_us);
  if (now_us < flip_us) return {deadline_us, flip_us};
  const TimeUs overdue_us = max_late_us_ == kNever ? kNever : flip_us + max_late_us_;
  if (now_us >= overdue_us) return {kOverdue + overdue_us, kNever};
  if (now_us == flip_us) return {kFirstLateRank, std::min(flip_us + 1, overdue_us)};
  return {kLate - deadline_us, overdue_us};
}

void SlackOrder::Watch(Sequence* sequence, TimeUs until_us) {
  RequestRecord* request = sequence->request;
  if (request->rank_until_us == until_us) return;
  if (request->rank_until_us != kNever) {
    SKEIN_CHECK(moments_.erase({request->rank_until_us, request->arrival}) == 1);
  }
  request->rank_until_us = until_us;
  if (until_us == kNever) return;
  SKEIN_CHECK(moments_.emplace(std::pair(until_us, request->arrival), sequence).second);
}

Sequence* SlackOrder::TakeDue(TimeUs now_us) {
  if (moments_.empty() || moments_.begin()->first.first > now_us) return nullptr;
  Sequence* sequence = moments_.begin()->second;
  Watch(sequence, kNever);
  return sequence;
}

std::optional<TimeUs> SlackOrder::NextMoment() const {
  if (moments_.empty()) return std::nullopt;
  return moments_.begin()->first.first;
}

}  // namespace skein
