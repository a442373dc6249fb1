#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/executor.h"
#include "sched/scheduler.h"
#include "skein/engine.h"

namespace skein {

// The work of an engine without its thread and its queue: events in, steps, outputs to callers. The
// engine's loop drives it on its own thread; the simulator drives it under a virtual clock.
//
//   Arrive, Cancel --> Step: [ Plan --> Begin, Resume --> Complete ] --> Dispatch: callbacks
//
// A task that stopped for more urgent work is kept until the scheduler names its step again or
// drops it. A scheduling round runs when requests have arrived or been cancelled, or a step has
// ended.
//
// Not thread-safe.
class EngineCore {
 public:
  // `executor`, `clock` and the observers outlive the core. `ended` is called for each request when
  // its last sample has ended, after that sample's callback.
  using Ended = std::function<void(RequestId)>;
  // The scheduler takes the policies that `config` names from `lists`.
  EngineCore(const SchedulerConfig& config, Executor* executor, const Clock* clock,
             std::vector<SchedulerObserver*> observers, Ended ended,
             const PolicyLists& lists = BuiltInPolicies());

  // Takes requests that arrive at the same time, numbered from `first_id`. REQUIRES: as
  // Scheduler::Arrive.
  void Arrive(RequestId first_id, std::vector<Request> requests, const OutputCallback& callback,
              TimeUs arrival_us);
  void Cancel(RequestId id);
  void CancelSample(RequestId id, int32_t sample);
  // Ends the request with kError and `status` if it has never been scheduled. Returns whether it
  // does so.
  bool EndQueued(RequestId id, const Status& status);

  // Plans a step and runs it. Returns false if there was nothing to do. Calls `between` whenever
  // the task stops before its end because `preempt` read true. `between` may take in events and
  // dispatch. If it returns false, the step is abandoned for good (FailAll must follow). After
  // events, the scheduler decides whether the step goes on. If not, Step returns, and the next call
  // runs the more urgent work.
  bool Step(const std::atomic<bool>& preempt, const std::function<bool()>& between);
  void FailAll(const Status& status);

  // As Scheduler::VisitBlocks.
  void VisitBlocks(const std::function<void(BlockManager*)>& visit) {
    scheduler_.VisitBlocks(visit);
  }

  // Passes the outputs that are new since the last call to the callbacks.
  void Dispatch();

  void set_mixed_step_us(TimeUs us) { scheduler_.set_mixed_step_us(us); }
  bool empty() const { return scheduler_.empty(); }
  // The number of requests that have never been scheduled.
  size_t num_queued() const { return scheduler_.num_queued(); }
  bool IsQueued(RequestId id) { return scheduler_.IsQueued(id); }
  int64_t num_queued_tokens() const { return scheduler_.num_queued_tokens(); }
  EngineStats Stats() const;
  EngineView View() const { return scheduler_.View(clock_->NowUs()); }
  // `set` is called before a step runs or goes on. Its argument is the time at which the step
  // should be stopped for a scheduling round; kNever: no such time. Without this call, nothing is
  // called.
  static constexpr TimeUs kNever = std::numeric_limits<TimeUs>::max();
  void set_alarm(std::function<void(TimeUs)> set) { set_alarm_ = std::move(set); }

  // A step stood still at `now_us`, after a signal at `signal_us`. If the alarm raised the signal,
  // the delay of the alarm's thread counts as a wake-up.
  void AddBlockingTime(TimeUs signal_us, TimeUs now_us);
  // A thread that slept ran `us` after the event or the time for which it had waited.
  void AddWakeup(TimeUs us);
  // Time spent on scheduling outside of Step.
  void AddSchedulerTime(TimeUs us) { own_stats_.scheduler_us += us; }

 private:
  struct Caller {
    OutputCallback callback;
    int32_t num_live = 1;
    Status ended;  // not ok: the reason for which EndQueued ended the request
  };

  // The task of a stopped step.
  struct StoppedTask {
    int64_t step_id = 0;
    std::unique_ptr<Task> task;
    TimeUs ran_us = 0;
  };

  void BeginRound(bool timed);
  TaskStatus Resume(Task* task, const std::atomic<bool>& preempt);
  void DropTasks();  // tasks of steps that are no longer suspended
  StoppedTask TakeTask(const StepPlan& plan);
  // Whether the step in flight must make way. It was stopped after `task.ran_us`.
  bool MakeWay(StoppedTask* task);
  void CountStep(const StepPlan& plan, TimeUs duration_us);
  void Deliver(SampleOutput& output);

  Executor* const executor_;
  const Clock* const clock_;
  const Ended ended_;
  Scheduler scheduler_;
  std::vector<StoppedTask> stopped_;
  std::function<void(TimeUs)> set_alarm_;
  TimeUs alarm_us_ = kNever;
  bool arrived_ = false, cancelled_ = false;  // whether a request did so since the last round
  bool in_round_ = false;                     // the round that stopped a step is not over
  std::unordered_map<RequestId, Caller> callers_;
  StepResults results_;    // keeps its memory
  EngineStats own_stats_;  // the engine's share of the counters
};

}  // namespace skein
