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

// The next request of a load, in order of arrival; nullopt at the load's end. The request is made
// on demand, so that the prompts of a long load need not be in memory together.
struct SimArrival {
  TimeUs arrival_us = 0;
  Request request;
};
using ArrivalSource = std::function<std::optional<SimArrival>()>;

struct SimOutcome {
  EngineStats stats;
  TimeUs end_us = 0;  // the time at which the last request ended
};

// Runs a load through the engine's core, with its real scheduler, on a virtual clock. `executor`
// moves the clock by the time of each step, which includes the scheduling time
// (SimExecutor::set_round_us). If a request arrives during a step, it is seen at the step's end or,
// with preemption, at its next boundary, as in the engine's loop. `on_output(index, output)` gets
// the answers of request number `index`. `on_refused(index, status)` gets the status of a request
// that does not fit. Deterministic.
class Simulation {
 public:
  struct Callbacks {
    std::function<void(int64_t index, const RequestOutput& output)> on_output;
    std::function<void(int64_t index, const Status& status)> on_refused;
  };

  // `executor`, `clock` and the observers outlive this object. The simulation moves the clock.
  Simulation(const SchedulerConfig& config, SimExecutor* executor, VirtualClock* clock,
             std::vector<SchedulerObserver*> observers = {},
             const PolicyLists& lists = BuiltInPolicies());

  // If `concurrency` > 0, this number of requests run at the same time, and arrival times are
  // ignored.
  SimOutcome Run(const ArrivalSource& source, const Callbacks& callbacks, int32_t concurrency = 0);

 private:
  const SchedulerConfig config_;
  SimExecutor* const executor_;
  VirtualClock* const clock_;
  const std::vector<SchedulerObserver*> observers_;
  const PolicyLists lists_;
};

}  // namespace skein
