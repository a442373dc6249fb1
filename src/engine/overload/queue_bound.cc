#include "engine/overload/queue_bound.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace skein {
namespace {

int64_t SecondsUntil(TimeUs us) { return std::max<int64_t>(1, (us + 999'999) / 1'000'000); }

double Seconds(TimeUs us) { return 1e-6 * static_cast<double>(us); }

}  // namespace

Status QueueBound::Check(std::span<const Request> requests) const {
  const auto count = static_cast<int32_t>(requests.size());
  const int32_t num_waiting = arriving_.num_requests + queued_.num_requests;
  ClassTokens waiting = arriving_.tokens;
  waiting += queued_.tokens;
  if (count > config_.max_queued_requests - num_waiting) {
    const TimeUs wait_us = estimate_.WaitOf(ExecutionClass::kOneShot, waiting);
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("{} requests are waiting, {} more exceed the limit of {} "
                              "(max_queued_requests)",
                              num_waiting, count, config_.max_queued_requests))
        .RetryAfter(SecondsUntil(wait_us / 2));
  }
  for (const Request& request : requests) {
    const WaitLimits limits = rules_.LimitsOf(request);
    if (!limits.bounded()) continue;
    const TimeUs max_us = limits.MaxWaitUs(estimate_);
    const TimeUs wait_us = estimate_.WaitOf(limits.execution_class, waiting);
    if (wait_us <= max_us) continue;
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("a new request would wait {:.1f} s, longer than {:.1f} s: {} are "
                              "waiting",
                              Seconds(wait_us), Seconds(max_us), num_waiting))
        .RetryAfter(SecondsUntil(wait_us - max_us / 2));
  }
  return Status::Ok();
}

void QueueBound::NoteAccepted(const QueuedWork& work) { arriving_ += work; }

void QueueBound::Publish(const QueuedWork& arrived, const QueuedWork& queued,
                         const WaitEstimate& estimate) {
  arriving_.num_requests -= arrived.num_requests;
  arriving_.tokens -= arrived.tokens;
  queued_ = queued;
  estimate_ = estimate;
}

}  // namespace skein
