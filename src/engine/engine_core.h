#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/executor.h"
#include "sched/scheduler.h"
#include "skein/engine.h"

namespace skein {

class WaitEstimate;

// The end of a request without memory: so short that it takes none itself.
inline Status NoMemory() { return {StatusCode::kUnavailable, "no memory left"}; }

// The work of an engine without its thread and its queue: events in, steps, outputs to callers. The
// engine's loop drives it on its own thread; the simulator drives it under a virtual clock.
//
//   Arrive, Cancel --> Step: [ Plan --> Begin, Resume --> Complete ] --> Dispatch: callbacks
//
// A task that stopped for more urgent work is kept until the scheduler names its step again or
// drops it. A scheduling round runs when requests have arrived or been cancelled, or a step has
// ended.
//
// Memory may run out (std::bad_alloc) at any allocation:
//   of the executor            the step's largest request ends, the others are computed again
//   of a request's callback    that request ends
//   of the scheduler           the call throws; Restart must follow, which ends every request
//
// Not thread-safe.
class EngineCore {
 public:
  // `executor`, `clock` and the observers outlive the core. `ended` is called for each request when
  // its last sample has ended, after that sample's callback.
  using Ended = std::function<void(RequestId)>;
  // The scheduler takes its policies from `lists`; the entries outlive the core.
  EngineCore(const SchedulerConfig& config, Executor* executor, const Clock* clock,
             std::vector<SchedulerObserver*> observers, Ended ended,
             const PolicyLists& lists = BuiltInPolicies());

  // Requests that arrive at one time, numbered from `first_id`; moves them out. REQUIRES: as
  // Scheduler::Arrive.
  void Arrive(RequestId first_id, std::span<Request> requests, const OutputCallback& callback,
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

  // Ends every request with kError and `status` and destroys the scheduler; throws nothing. Only
  // Knows, num_queued and Begin may be called until Begin has made another one.
  void EndAll(const Status& status);
  void Begin();
  // Whether the callback of this request may still be called.
  bool Knows(RequestId id) const { return callers_.contains(id); }

  // As Scheduler::VisitBlocks.
  void VisitBlocks(const std::function<void(BlockManager*)>& visit) {
    scheduler_->VisitBlocks(visit);
  }

  // Passes the outputs that are new since the last call to the callbacks.
  void Dispatch();

  // As Scheduler::AdoptProfile; Begin keeps the costs.
  void AdoptProfile(const CostFit& cost, const DecodeFit& decode_cost);

  // As the scheduler's; Begin keeps both.
  void set_mixed_step_us(TimeUs us);
  void set_max_wait_us(TimeUs us);
  // Dispatch tells `runs` how long requests take from when they are first scheduled. Without this
  // call nothing is told. `runs` must be there at each later call of Dispatch.
  void set_runs(WaitEstimate* runs) { runs_ = runs; }
  bool empty() const { return scheduler_->empty(); }
  // Requests that have never been scheduled.
  size_t num_queued() const { return scheduler_->num_queued(); }
  bool IsQueued(RequestId id) { return scheduler_->IsQueued(id); }
  int64_t num_queued_tokens(ExecutionClass of_class) const {
    return scheduler_->num_queued_tokens(of_class);
  }
  int64_t queued_budget() const { return scheduler_->queued_budget(); }
  EngineStats Stats() const;
  EngineView View() const { return scheduler_->View(clock_->NowUs()); }
  // `set` is called before a step runs or goes on, with the time at which the step should be
  // stopped for a scheduling round. kNever: there is none. Without this call no function is set.
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
    std::vector<bool> live;  // by sample
    int32_t num_live = 1;
    ExecutionClass execution_class = ExecutionClass::kDecode;
    int64_t size = 0;
    int64_t num_tokens = 0;  // of the first sample's output
    TimeUs token_us = 0;     // when the last of them came
    Status ended;            // not ok: why EndQueued ended it
    bool lost = false;  // its callback found no memory: it is called no more, and the request ends
  };

  // The task of a stopped step.
  struct StoppedTask {
    int64_t step_id = 0;
    std::unique_ptr<Task> task;
    TimeUs ran_us = 0;
  };

  void BeginRound(bool timed);
  void SetAlarm();
  // Runs the task, which begins if it has not; when it is done, its results are in results_.
  // nullopt: there is no memory for it, and the task is destroyed.
  std::optional<TaskStatus> Run(StoppedTask* task, const StepPlan& plan,
                                const std::atomic<bool>& preempt);
  void DropTasks();  // tasks of steps that are not suspended any more
  StoppedTask TakeTask();
  // True if the step in flight has to make way. It was stopped after `task.ran_us`.
  bool MakeWay(StoppedTask* task);
  void CountStep(const StepPlan& plan, TimeUs duration_us);
  void Deliver(SampleOutput& output);
  void NoteToken(const SampleOutput& output, Caller* caller);
  void NoteRan(const Caller& caller, const SampleOutput& output);
  static void Tell(const Caller& caller, SampleOutput& output);
  static void Lose(Caller* caller, RequestId id);
  void CancelLost();

  SchedulerConfig config_;
  const std::vector<SchedulerObserver*> observers_;
  const PolicyLists lists_;
  Executor* const executor_;
  const Clock* const clock_;
  const Ended ended_;
  WaitEstimate* runs_ = nullptr;
  std::optional<Scheduler> scheduler_;
  TimeUs mixed_step_us_ = 0;
  TimeUs max_wait_us_ = 0;
  std::vector<StoppedTask> stopped_;
  std::function<void(TimeUs)> set_alarm_;
  TimeUs alarm_us_ = kNever;
  bool arrived_ = false, cancelled_ = false;  // since the last round
  bool in_round_ = false;                     // the round that stopped a step goes on
  bool any_lost_ = false;                     // callers whose requests are to be cancelled
  std::unordered_map<RequestId, Caller> callers_;
  StepResults results_;    // keeps its memory
  EngineStats own_stats_;  // the engine's share of the counters
};

}  // namespace skein
