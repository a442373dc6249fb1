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
  Status status = CheckNumber(static_cast<int32_t>(requests.size()));
  for (const Request& request : requests) {
    if (!status.ok()) break;
    const WaitLimits limits = rules_.LimitsOf(request, estimate_);
    if (!Accepts(request, limits, now_us)) status = Refuse(request, limits, now_us);
  }
  if (!status.ok()) ++num_refused_;
  return status;
}

// A request of one class waits for the same time with any prompt. Only its limit differs.
//   - It falls with the run's size, up to the size at which the client is taken to wait for the
//     run; from there on it is the bound. So none is longer than that of the least or of the
//     greatest size, which the shortest and the longest prompt have.
//   - The limit of a deadline falls with the prompt's length.
// A prompt that leaves room for one token only makes a OneShot request of any other.
Status QueueBound::CheckWithoutPrompt(const Request& request, int64_t max_prompt_len,
                                      TimeUs now_us) {
  constexpr int64_t kShortest = 1;
  const int64_t longest = std::clamp<int64_t>(max_model_len_ - (request.generates() ? 1 : 0),
                                              kShortest, std::max(max_prompt_len, kShortest));
  Status status = CheckNumber(1);
  if (status.ok()) {
    WaitLimits widest;
    TimeUs widest_us = -1;
    for (const int64_t prompt_len : {kShortest, std::max(longest - 1, kShortest), longest}) {
      WaitLimits limits = rules_.LimitsOf(request, prompt_len, estimate_);
      limits.prompt_len = kShortest;
      if (Accepts(request, limits, now_us)) return Status::Ok();
      if (limits.MaxWaitUs(estimate_) <= widest_us) continue;
      widest = limits;
      widest_us = limits.MaxWaitUs(estimate_);
    }
    status = Refuse(request, widest, now_us);
  }
  ++num_refused_without_prompt_;
  return status;
}

Status QueueBound::CheckNumber(int32_t count) const {
  const QueuedWork waiting = Waiting();
  if (count <= config_.max_queued_requests - waiting.num_requests) return Status::Ok();
  return Status(StatusCode::kResourceExhausted,
                fmt::format("{} requests are waiting, {} more exceed the limit of {} "
                            "(max_queued_requests)",
                            waiting.num_requests, count, config_.max_queued_requests))
      .RetryAfter(SecondsUntil(WaitUs(ExecutionClass::kOneShot) / 2));
}

TimeUs QueueBound::WaitUs(ExecutionClass of_class) const {
  return estimate_.WaitOf(of_class, Waiting().tokens);
}

TimeUs QueueBound::MaxWaitUs(const Request& request, const WaitLimits& limits,
                             TimeUs now_us) const {
  const TimeUs max_us = limits.MaxWaitUs(estimate_);
  const bool shares_limit =
      !request.timeout_us && now_us < common_.until_us && request.priority >= common_.priority;
  return shares_limit ? std::min(max_us, common_.max_us) : max_us;
}

bool QueueBound::Accepts(const Request& request, const WaitLimits& limits, TimeUs now_us) const {
  return !limits.bounded() || WaitUs(limits.execution_class) <= MaxWaitUs(request, limits, now_us);
}

Status QueueBound::Refuse(const Request& request, const WaitLimits& limits, TimeUs now_us) {
  const TimeUs wait_us = WaitUs(limits.execution_class);
  const TimeUs max_us = MaxWaitUs(request, limits, now_us);
  const TimeUs own_us = limits.MaxWaitUs(estimate_);
  const bool for_its_run = !request.timeout_us && own_us < limits.bound_us && !limits.slo_ttft_us;
  // Slots alone do not keep it waiting: then a shorter queue of prompts would not help.
  const bool for_prompts = std::min(wait_us, WaitUs(ExecutionClass::kOneShot)) > own_us;
  const bool holds = now_us < common_.until_us;
  if (for_its_run && for_prompts && (!holds || request.priority <= common_.priority)) {
    common_ = {own_us, now_us + kCommonUs, request.priority};
  }
  return Status(StatusCode::kResourceExhausted,
                fmt::format("a new request would wait {:.1f} s, longer than {:.1f} s: {} are "
                            "waiting",
                            Seconds(wait_us), Seconds(max_us), Waiting().num_requests))
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
