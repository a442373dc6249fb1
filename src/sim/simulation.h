#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/clock.h"
#include "base/result.h"
#include "sched/config.h"
#include "sim/sim_executor.h"
#include "skein/engine.h"

namespace skein {

// The next request of a load, in order of arrival; nullopt at its end. Made when it is asked for,
// so that the prompts of a long load need not be in memory at once.
struct SimArrival {
  TimeUs arrival_us = 0;
  Request request;
};
using ArrivalSource = std::function<std::optional<SimArrival>()>;

struct SimOutcome {
  EngineStats stats;
  TimeUs end_us = 0;  // when the last request ended
};

// Runs a load through the engine's core with its real scheduler, on a virtual clock: steps take as
// long as `executor` moves it, scheduling takes no time. What arrives during a step is seen at its
// end or, with a sharing that preempts, at its next boundary, as in the engine's loop.
// `on_output(index, output)` gets the answers of request number `index`, on the clock;
// `on_refused(index, status)` those that do not fit. Deterministic.
class Simulation {
 public:
  struct Callbacks {
    std::function<void(int64_t index, const RequestOutput& output)> on_output;
    std::function<void(int64_t index, const Status& status)> on_refused;
  };

  // `executor` and `clock`, which it moves, outlive this.
  Simulation(const SchedulerConfig& config, SimExecutor* executor, VirtualClock* clock);

  // With `concurrency` > 0 arrival times do not count: so many requests run at a time.
  SimOutcome Run(const ArrivalSource& source, const Callbacks& callbacks, int32_t concurrency = 0);

 private:
  const SchedulerConfig config_;
  SimExecutor* const executor_;
  VirtualClock* const clock_;
};

}  // namespace skein
