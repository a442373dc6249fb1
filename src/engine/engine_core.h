#pragma once

#include <atomic>
#include <functional>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "engine/executor.h"
#include "sched/scheduler.h"
#include "skein/engine.h"

namespace skein {

// What an engine does, without its thread and its queue: events in, steps, outputs to callers. The
// engine's loop drives it on a thread of its own, the simulator under a virtual clock.
//
//   Arrive, Cancel --> Step: [ Plan --> Begin, Resume --> Complete ] --> Dispatch: callbacks
//
// Not thread-safe.
class EngineCore {
 public:
  // `executor`, `clock` and the observers outlive the core. `ended` is called for each request when
  // its last sample has ended, after that one's callback.
  using Ended = std::function<void(RequestId)>;
  EngineCore(const SchedulerConfig& config, Executor* executor, const Clock* clock,
             std::vector<SchedulerObserver*> observers, Ended ended);

  // Requests of one moment, numbered from `first_id`. REQUIRES: as Scheduler::Arrive.
  void Arrive(RequestId first_id, std::vector<Request> requests, const OutputCallback& callback,
              TimeUs arrival_us);
  void Cancel(RequestId id);
  void CancelSample(RequestId id, int32_t sample);

  // Plans a step and runs it; false if there was nothing to do. Whenever the task stops before its
  // end because `preempt` read true, calls `between`, which may take in events and dispatch; where
  // that returns false, the step is abandoned for good (FailAll must follow).
  bool Step(const std::atomic<bool>& preempt, const std::function<bool()>& between);
  void FailAll(const Status& status);

  // Hands out what has been said since the last call.
  void Dispatch();

  bool empty() const { return scheduler_.empty(); }
  // Requests that have never been scheduled.
  size_t num_queued() const { return scheduler_.num_queued(); }
  EngineStats Stats() const;
  // Time spent on scheduling outside of Step.
  void AddSchedulerTime(TimeUs us) { own_stats_.scheduler_us += us; }

 private:
  struct Caller {
    OutputCallback callback;
    int32_t num_live = 1;
  };

  void CountStep(const StepPlan& plan, TimeUs duration_us);
  void Deliver(SampleOutput& output);

  Executor* const executor_;
  const Clock* const clock_;
  const Ended ended_;
  Scheduler scheduler_;
  std::unordered_map<RequestId, Caller> callers_;
  StepResults results_;    // keeps its memory
  EngineStats own_stats_;  // the engine's share of the counters
};

}  // namespace skein
