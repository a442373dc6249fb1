#include "engine/overload/queue_bound.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace skein {
namespace {

int64_t SecondsUntil(TimeUs us) { return std::max<int64_t>(1, (us + 999'999) / 1'000'000); }

double Seconds(TimeUs us) { return 1e-6 * static_cast<double>(us); }

}  // namespace

QueuedWork QueueBound::Waiting() const {
  QueuedWork waiting = arriving_;
  waiting += queued_;
  return waiting;
}

Status QueueBound::Check(std::span<const Request> requests, TimeUs now_us) {
  const auto count = static_cast<int32_t>(requests.size());
  const QueuedWork waiting = Waiting();
  if (count > config_.max_queued_requests - waiting.num_requests) {
    const TimeUs wait_us = estimate_.WaitOf(ExecutionClass::kOneShot, waiting.tokens);
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("{} requests are waiting, {} more exceed the limit of {} "
                              "(max_queued_requests)",
                              waiting.num_requests, count, config_.max_queued_requests))
        .RetryAfter(SecondsUntil(wait_us / 2));
  }
  for (const Request& request : requests) SKEIN_RETURN_IF_ERROR(CheckWait(request, now_us));
  return Status::Ok();
}

Status QueueBound::CheckWait(const Request& request, TimeUs now_us) {
  const WaitLimits limits = rules_.LimitsOf(request, estimate_);
  if (!limits.bounded()) return Status::Ok();
  const QueuedWork waiting = Waiting();
  const TimeUs wait_us = estimate_.WaitOf(limits.execution_class, waiting.tokens);
  TimeUs max_us = limits.MaxWaitUs(estimate_);
  if (!request.timeout_us) {
    const bool for_its_run = max_us < limits.bound_us && !limits.slo_ttft_us;
    // Slots alone do not keep it waiting: then a shorter queue of prompts would not help.
    const TimeUs prompts_us = estimate_.WaitOf(ExecutionClass::kOneShot, waiting.tokens);
    const bool holds = now_us < common_.until_us;
    if (for_its_run && std::min(wait_us, prompts_us) > max_us &&
        (!holds || request.priority <= common_.priority)) {
      common_ = {max_us, now_us + kCommonUs, request.priority};
    } else if (holds && request.priority >= common_.priority) {
      max_us = std::min(max_us, common_.max_us);
    }
  }
  if (wait_us <= max_us) return Status::Ok();
  return Status(StatusCode::kResourceExhausted,
                fmt::format("a new request would wait {:.1f} s, longer than {:.1f} s: {} are "
                            "waiting",
                            Seconds(wait_us), Seconds(max_us), waiting.num_requests))
      .RetryAfter(SecondsUntil(wait_us - max_us / 2));
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
