#pragma once

#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <span>

#include "engine/overload/wait_estimate.h"
#include "sched/config.h"
#include "sched/policies.h"
#include "skein/config.h"
#include "skein/request.h"

namespace skein {

// The limits of one request's wait, as times from its arrival:
//
//   arrival        bound        start                 end
//      |-------------|------------|--------------------|
//      accepted if the     ended unless   the client has probably
//      estimate is less    begun by then  given up
//
// The start leaves time for the run: work that is begun later is done for nobody. It may lie before
// the bound: then an estimate must be less than the start, with a margin. `least_start_us` keeps a
// long expected run from leaving no time at all.
struct WaitLimits {
  static constexpr TimeUs kNever = std::numeric_limits<TimeUs>::max();

  ExecutionClass execution_class = ExecutionClass::kDecode;
  int64_t size = 0;  // as of WaitEstimate
  int64_t prompt_len = 0;
  TimeUs bound_us = kNever;
  TimeUs end_us = kNever;
  TimeUs least_start_us = kNever;
  // The deadline of the first token, if late requests are refused.
  std::optional<TimeUs> slo_ttft_us;
  // Whether the order serves requests by deadline: the wait behind all others is then not that of a
  // request with a deadline.
  bool by_deadline = false;

  bool bounded() const { return bound_us != kNever || slo_ttft_us.has_value(); }
  // When the request is ended unless it has begun.
  TimeUs StartUs(const WaitEstimate& estimate) const;
  // The longest estimated wait with which the request is accepted.
  TimeUs MaxWaitUs(const WaitEstimate& estimate) const;

 private:
  TimeUs BegunUs(const WaitEstimate& estimate) const;
  TimeUs SloStartUs(const WaitEstimate& estimate) const;
};

// Gives each request its limits. Thread-safe.
class WaitRules {
 public:
  // The configurations outlive this object.
  WaitRules(const EngineConfig& config, const SchedulerConfig& scheduler_config)
      : config_(config),
        scheduler_config_(scheduler_config),
        by_deadline_(OrdersByDeadline(scheduler_config)) {}

  // A client that names no timeout, but asks for a run that takes longer than to its end, is taken
  // to wait for it. This is decided by the estimate at the request's arrival.
  WaitLimits LimitsOf(const Request& request, const WaitEstimate& estimate) const {
    return LimitsOf(request, std::ssize(request.prompt), estimate);
  }
  // The limits of the request with another prompt, of `prompt_len` tokens.
  WaitLimits LimitsOf(const Request& request, int64_t prompt_len,
                      const WaitEstimate& estimate) const;

 private:
  const EngineConfig& config_;
  const SchedulerConfig& scheduler_config_;
  const bool by_deadline_;
};

// The prompts' tokens by the requests' classes.
ClassTokens TokensOf(const SchedulerConfig& config, std::span<const Request> requests);

}  // namespace skein
