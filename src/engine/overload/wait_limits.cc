#include "engine/overload/wait_limits.h"

#include <algorithm>
#include <cmath>

#include "sched/arrival.h"

namespace skein {
namespace {

// Runs differ, and become slower while others join.
constexpr double kRunMargin = 1.5;
// So do waits: a request that was accepted should be begun, although it may wait for longer than
// was expected.
constexpr double kWaitMargin = 1.25;

}  // namespace

// A deadline that could not be met even by an idle engine leaves half of it for the wait. The
// engine then accepts the request while nothing waits.
TimeUs WaitLimits::SloStartUs(const WaitEstimate& estimate) const {
  if (!slo_ttft_us) return kNever;
  return *slo_ttft_us - std::min(estimate.PromptUs(prompt_len), *slo_ttft_us / 2);
}

TimeUs WaitLimits::BegunUs(const WaitEstimate& estimate) const {
  const auto run_us = static_cast<double>(estimate.RunOf(execution_class, size));
  return std::max<TimeUs>(end_us - std::llround(kRunMargin * run_us), least_start_us);
}

TimeUs WaitLimits::StartUs(const WaitEstimate& estimate) const {
  const TimeUs start_us = bound_us == kNever ? kNever : BegunUs(estimate);
  return std::min(start_us, SloStartUs(estimate));
}

TimeUs WaitLimits::MaxWaitUs(const WaitEstimate& estimate) const {
  if (bound_us == kNever) return by_deadline ? kNever : SloStartUs(estimate);
  const auto begun_us = static_cast<double>(BegunUs(estimate));
  const TimeUs wait_us = std::min<TimeUs>(bound_us, std::llround(begun_us / kWaitMargin));
  return by_deadline ? wait_us : std::min(wait_us, SloStartUs(estimate));
}

WaitLimits WaitRules::LimitsOf(const Request& request, int64_t prompt_len,
                               const WaitEstimate& estimate) const {
  WaitLimits limits = {.execution_class = ClassOf(scheduler_config_, request, prompt_len),
                       .size = SizeOf(scheduler_config_, request, prompt_len),
                       .prompt_len = prompt_len,
                       .by_deadline = by_deadline_};
  const TimeUs bound_us = MaxWaitUs(request, config_.max_wait_us);
  if (bound_us > 0) {
    limits.bound_us = bound_us;
    limits.end_us = 2 * bound_us;
    const bool patient =
        !request.timeout_us && estimate.RunOf(limits.execution_class, limits.size) > limits.end_us;
    limits.least_start_us = patient ? bound_us + bound_us / 4 : bound_us / 4;
  }
  if (config_.refuses_late) limits.slo_ttft_us = request.slo_ttft_us;
  return limits;
}

ClassTokens TokensOf(const SchedulerConfig& config, std::span<const Request> requests) {
  ClassTokens tokens;
  for (const Request& request : requests) {
    const ExecutionClass of_class = ClassOf(config, request);
    tokens.Of(of_class) += std::ssize(request.prompt);
    if (of_class == ExecutionClass::kDecode) tokens.budget += BudgetOf(config, request);
  }
  return tokens;
}

}  // namespace skein
