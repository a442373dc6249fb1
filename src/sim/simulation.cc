#include "sim/simulation.h"

#include <algorithm>
#include <atomic>
#include <span>
#include <utility>
#include <vector>

#include "engine/engine_core.h"

namespace skein {

Simulation::Simulation(const SchedulerConfig& config, SimExecutor* executor, VirtualClock* clock,
                       std::vector<SchedulerObserver*> observers, const PolicyLists& lists)
    : config_(config),
      executor_(executor),
      clock_(clock),
      observers_(std::move(observers)),
      lists_(lists) {
  executor->set_granularity(Preempts(config.policies.sharing) ? config.policies.granularity
                                                              : Granularity::kNone);
}

SimOutcome Simulation::Run(const ArrivalSource& source, const Callbacks& callbacks,
                           int32_t concurrency) {
  EngineCore core(
      config_, executor_, clock_, observers_, [](RequestId) {}, lists_);
  SimOutcome outcome;
  RequestId next_id = 0;
  int64_t num_running = 0;
  const OutputCallback on_output = [&](const RequestOutput& output) {
    if (output.finish) --num_running;
    callbacks.on_output(static_cast<int64_t>(output.request), output);
  };
  std::optional<SimArrival> next = source();
  const auto is_due = [&] {
    return concurrency > 0 ? num_running < concurrency : next->arrival_us <= clock_->NowUs();
  };
  const auto take_due = [&] {
    while (next && is_due()) {
      const RequestId id = next_id++;
      const Status status = Scheduler::CheckFits(config_, next->request);
      if (status.ok()) {
        num_running += NumSamples(next->request);
        const TimeUs arrival_us = concurrency > 0 ? clock_->NowUs() : next->arrival_us;
        core.Arrive(id, std::span(&next->request, 1), on_output, arrival_us);
      } else {
        callbacks.on_refused(static_cast<int64_t>(id), status);
      }
      next = source();
    }
    return true;
  };
  core.set_alarm([&](TimeUs next_us) {
    const bool by_clock = next && concurrency == 0;
    executor_->set_next_signal(by_clock ? std::min(next_us, next->arrival_us) : next_us);
  });
  const std::atomic<bool> never{false};
  while (next || !core.empty()) {
    if (next && core.empty() && concurrency == 0) {
      clock_->AdvanceTo(std::max(clock_->NowUs(), next->arrival_us));
    }
    take_due();
    if (!core.Step(never, take_due)) continue;
    core.Dispatch();
  }
  outcome.stats = core.Stats();
  outcome.end_us = clock_->NowUs();
  return outcome;
}

}  // namespace skein
