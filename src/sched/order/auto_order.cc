#include "sched/order/auto_order.h"

#include <algorithm>
#include <cmath>

#include "sched/order/jct_order.h"

namespace skein {
namespace {

// The parts of the ranks begin at these bounds. Times lie in (0, 2^60).
constexpr int64_t kOverduePart = -(int64_t{1} << 62);
constexpr int64_t kDuePart = int64_t{1} << 60;
constexpr int64_t kLatePart = int64_t{1} << 62;
constexpr double kLongestUs = 1e15;  // about 31 years
constexpr double kSpeedWindowUs = 10e6;
// At the start, the speed is that of this many prompts of middle length.
constexpr double kPriorPrompts = 8;
constexpr int64_t kMiddleTokens = 1024;
constexpr TimeUs kLeastRecheckUs = 100'000;  // of a bound whose tokens are not computed yet

TimeUs Bounded(double us) { return std::llround(std::min(us, kLongestUs)); }
TimeUs Share(double share, TimeUs us) { return std::llround(share * static_cast<double>(us)); }

}  // namespace

AutoOrder::AutoOrder(const SchedulerConfig& config, const CostModel* cost)
    : max_late_us_(config.deadlines.max_late_us > 0 ? config.deadlines.max_late_us
                                                    : Bounded(kLongestUs)),
      cost_(cost) {}

int64_t AutoOrder::FirstPatientRank() const { return kDuePart; }

TimeUs AutoOrder::TimeOf(int64_t num_tokens, int64_t num_behind) const {
  if (num_tokens <= 0) return 0;
  if (!cost_->known())
    return Bounded(1e6 * static_cast<double>(num_tokens) / JctOrder::kUnknownSpeed);
  return Bounded(cost_->PredictUs(WorkOf(num_tokens, num_behind)));
}

TimeUs AutoOrder::RemainingUs(const OrderView& view) const {
  return view.step_rest.left_us + TimeOf(view.num_missing(), view.num_behind());
}

TimeUs AutoOrder::WaitOf(int64_t num_tokens) const {
  const double tokens = kPriorPrompts * kMiddleTokens + served_tokens_;
  const double us = kPriorPrompts * static_cast<double>(TimeOf(kMiddleTokens, 0)) + served_us_;
  return Bounded(static_cast<double>(num_tokens) * us / tokens);
}

TimeUs AutoOrder::OverdueUs(const OrderView& view, int64_t num_before, TimeUs now_us) const {
  const TimeUs bound_us = now_us + WaitOf(num_before) + kMaxWaitUs;
  return view.request.slo_ttft_us ? std::max(bound_us, view.deadline_us + max_late_us_) : bound_us;
}

Ranking AutoOrder::RankArrival(const OrderView& view, TimeUs now_us) {
  const int64_t num_missing = std::max<int64_t>(1, view.num_tokens - view.num_cached);
  if (backlog_.empty()) serves_since_us_ = now_us;
  const int64_t num_before = std::llround(kMaxStretch * static_cast<double>(backlog_.num_tokens()));
  const TimeUs overdue_us = OverdueUs(view, num_before, now_us);
  const auto num_of_client = static_cast<double>(backlog_.Enter(view.request, num_missing));
  num_free_ += !view.request.slo_ttft_us;
  OrderView own = view;
  own.memo = {.num_tokens = num_missing,
              .stretch = std::max(1 / kAging, num_of_client),
              .overdue_us = overdue_us,
              .overdue_tokens = num_served_ + num_before};
  const uint64_t group = view.request.group.id;
  if (group != 0 && group == last_group_) {
    own.memo.work_us = group_work_us_;
  } else {
    last_group_ = group;
    group_work_us_ = RemainingUs(own);
  }
  Ranking ranking = *Rerank(own, now_us);
  ranking.memo = own.memo;
  return ranking;
}

std::optional<Ranking> AutoOrder::Rerank(const OrderView& view, TimeUs now_us) const {
  TimeUs overdue_us = view.memo.overdue_us;
  const int64_t num_left = view.memo.overdue_tokens - num_served_;
  if (now_us >= overdue_us) {
    if (num_left <= 0) return Ranking{.rank = kOverduePart + overdue_us};
    overdue_us = now_us + std::max(kLeastRecheckUs, WaitOf(num_left));
  }
  const TimeUs remaining_us = RemainingUs(view);
  if (!view.request.slo_ttft_us) {
    return Ranking{.rank = kDuePart + DueUs(view, remaining_us), .until_us = overdue_us};
  }
  const TimeUs late_us = view.deadline_us - remaining_us;
  if (now_us < late_us) {
    const TimeUs presses_us = view.arrival_us + Share(kPatience, late_us - view.arrival_us);
    if (now_us < presses_us && num_free_ > 0) {
      return Ranking{.rank = kDuePart + DueUs(view, remaining_us),
                     .until_us = std::min(presses_us, overdue_us)};
    }
    return Ranking{.rank = view.deadline_us, .until_us = std::min(late_us, overdue_us)};
  }
  const TimeUs returns_us = overdue_us - Share(kLateShare, overdue_us - view.arrival_us);
  if (now_us >= returns_us && num_left <= 0) {
    return Ranking{.rank = overdue_us, .until_us = overdue_us};
  }
  return Ranking{.rank = kLatePart - view.deadline_us,
                 .until_us = now_us < returns_us ? returns_us : overdue_us};
}

TimeUs AutoOrder::DueUs(const OrderView& view, TimeUs remaining_us) const {
  const TimeUs work_us = view.memo.work_us > 0 ? view.memo.work_us : remaining_us;
  const double wait_us = view.memo.stretch * static_cast<double>(work_us);
  return view.arrival_us + Bounded(std::ldexp(wait_us, ShiftOf(view.request.priority)));
}

void AutoOrder::OnPrompt(const Request& request, const OrderMemo& memo, TimeUs now_us) {
  num_free_ -= !request.slo_ttft_us;
  backlog_.Leave(request, memo.num_tokens);
  num_served_ += memo.num_tokens;
  served_tokens_ += static_cast<double>(memo.num_tokens);
  served_us_ += static_cast<double>(now_us - serves_since_us_);
  serves_since_us_ = now_us;
  if (served_us_ < kSpeedWindowUs) return;
  served_tokens_ /= 2;
  served_us_ /= 2;
}

void AutoOrder::OnEnd(const Request& request, int64_t /*num_unserved*/, const OrderMemo& memo) {
  if (memo.num_tokens > 0) {
    num_free_ -= !request.slo_ttft_us;
    backlog_.Leave(request, memo.num_tokens);
  }
}

}  // namespace skein
