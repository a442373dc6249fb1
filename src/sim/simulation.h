#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "sched/config.h"
#include "sched/policies.h"
#include "sched/record/observer.h"
#include "sim/sim_executor.h"
#include "skein/engine.h"

namespace skein {

// The next request of a load, in order of arrival; nullopt at its end. It is made on demand, so
// that the prompts of a long load need not be in memory at once.
struct SimArrival {
  TimeUs arrival_us = 0;
  Request request;
};
using ArrivalSource = std::function<std::optional<SimArrival>()>;

struct SimOutcome {
  EngineStats stats;
  TimeUs end_us = 0;  // the end of the last request
};

// Runs a load through the engine's core with its real scheduler, on a virtual clock. `executor`
// moves the clock by the time of each step, in which scheduling takes the time of
// SimExecutor::set_round_us. An arrival during a step is
// seen at its end or, with preemption, at its next boundary, as in the engine's loop.
// `on_output(index, output)` gets the answers of request number `index`; `on_refused(index,
// status)` the status of a request that does not fit. Deterministic.
class Simulation {
 public:
  struct Callbacks {
    std::function<void(int64_t index, const RequestOutput& output)> on_output;
    std::function<void(int64_t index, const Status& status)> on_refused;
  };

  // `executor`, `clock` and the observers outlive this object, which moves the clock.
  Simulation(const SchedulerConfig& config, SimExecutor* executor, VirtualClock* clock,
             std::vector<SchedulerObserver*> observers = {},
             const PolicyLists& lists = BuiltInPolicies());

  // With `concurrency` > 0 that many requests run at a time, and arrival times are ignored.
  SimOutcome Run(const ArrivalSource& source, const Callbacks& callbacks, int32_t concurrency = 0);

 private:
  const SchedulerConfig config_;
  SimExecutor* const executor_;
  VirtualClock* const clock_;
  const std::vector<SchedulerObserver*> observers_;
  const PolicyLists lists_;
};

}  // namespace skein
