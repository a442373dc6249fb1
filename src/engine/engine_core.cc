#include "engine/engine_core.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "base/check.h"
#include "engine/overload/wait_estimate.h"
#include "sched/arrival.h"

namespace skein {

EngineCore::EngineCore(const SchedulerConfig& config, Executor* executor, const Clock* clock,
                       std::vector<SchedulerObserver*> observers, Ended ended,
                       const PolicyLists& lists)
    : config_(config),
      observers_(std::move(observers)),
      lists_(lists),
      executor_(executor),
      clock_(clock),
      ended_(std::move(ended)) {
  Begin();
}

void EngineCore::Begin() {
  scheduler_.emplace(config_, observers_, lists_);
  scheduler_->set_mixed_step_us(mixed_step_us_);
  scheduler_->set_max_wait_us(max_wait_us_);
}

void EngineCore::AdoptProfile(const CostFit& cost, const DecodeFit& decode_cost) {
  if (cost != CostFit{}) config_.cost = cost;
  if (decode_cost != DecodeFit{}) config_.decode_cost = decode_cost;
  scheduler_->AdoptProfile(cost, decode_cost, clock_->NowUs());
}

void EngineCore::set_mixed_step_us(TimeUs us) {
  mixed_step_us_ = us;
  scheduler_->set_mixed_step_us(us);
}

void EngineCore::set_max_wait_us(TimeUs us) {
  max_wait_us_ = us;
  scheduler_->set_max_wait_us(us);
}

void EngineCore::Arrive(RequestId first_id, std::span<Request> requests,
                        const OutputCallback& callback, TimeUs arrival_us) {
  arrived_ = true;
  RequestId id = first_id;
  for (Request& request : requests) {
    const int32_t num_samples = NumSamples(request);
    Caller caller = {.callback = callback,
                     .live = std::vector<bool>(num_samples, true),
                     .num_live = num_samples,
                     .execution_class = ClassOf(config_, request),
                     .size = SizeOf(config_, request)};
    callers_.emplace(id, std::move(caller));
    scheduler_->Arrive(id++, std::move(request), arrival_us);
  }
}

void EngineCore::Cancel(RequestId id) {
  cancelled_ = true;
  scheduler_->Cancel(id, clock_->NowUs());
}

void EngineCore::CancelSample(RequestId id, int32_t sample) {
  cancelled_ = true;
  scheduler_->CancelSample(id, sample, clock_->NowUs());
}

bool EngineCore::EndQueued(RequestId id, const Status& status) {
  if (!scheduler_->IsQueued(id)) return false;
  callers_.at(id).ended = status;
  Cancel(id);
  return true;
}

bool EngineCore::Step(const std::atomic<bool>& preempt, const std::function<bool()>& between) {
  const TimeUs begin_us = clock_->NowUs();
  BeginRound(false);
  const StepPlan* plan = scheduler_->Plan(begin_us);
  TimeUs resumed_us = clock_->NowUs();
  own_stats_.scheduler_us += resumed_us - begin_us;
  if (plan == nullptr) {
    DropTasks();
    return false;
  }
  StoppedTask task = TakeTask();
  std::optional<TaskStatus> status = Run(&task, *plan, preempt);
  while (status == TaskStatus::kPreempted) {
    task.ran_us += clock_->NowUs() - resumed_us;
    if (!between()) return true;
    if (MakeWay(&task)) return true;
    resumed_us = clock_->NowUs();
    status = Run(&task, *plan, preempt);
  }
  const TimeUs done_us = clock_->NowUs();
  if (status) {
    CountStep(*plan, task.ran_us + done_us - resumed_us);
    scheduler_->Complete(&results_, done_us);
  } else {
    scheduler_->FailStep(NoMemory(), done_us);
  }
  own_stats_.scheduler_us += clock_->NowUs() - done_us;
  return true;
}

// Counts the round by its cause. If the round began with a stopped step, it has been counted
// already.
void EngineCore::BeginRound(bool timed) {
  const bool counted = std::exchange(in_round_, false);
  const bool arrived = std::exchange(arrived_, false);
  const bool cancelled = std::exchange(cancelled_, false);
  if (counted) return;
  ++own_stats_.rounds;
  ++(arrived     ? own_stats_.rounds_arrival
     : cancelled ? own_stats_.rounds_cancellation
     : timed     ? own_stats_.rounds_timer
                 : own_stats_.rounds_completion);
}

void EngineCore::DropTasks() {
  std::erase_if(stopped_, [this](const StoppedTask& stopped) {
    return stopped.task == nullptr || !scheduler_->IsSuspended(stopped.step_id);
  });
}

// The task of the step that the scheduler has named. Tasks of dropped steps are destroyed before a
// new one begins, so that their memory is free.
EngineCore::StoppedTask EngineCore::TakeTask() {
  StoppedTask taken = {.step_id = scheduler_->step_id()};
  for (StoppedTask& stopped : stopped_) {
    if (stopped.step_id == taken.step_id) taken = std::move(stopped);
  }
  DropTasks();
  return taken;
}

void EngineCore::SetAlarm() {
  if (!set_alarm_) return;
  const std::optional<TimeUs> next_us = scheduler_->NextRoundUs();
  alarm_us_ = next_us ? std::max(*next_us, clock_->NowUs()) : kNever;
  set_alarm_(alarm_us_);
}

std::optional<TaskStatus> EngineCore::Run(StoppedTask* task, const StepPlan& plan,
                                          const std::atomic<bool>& preempt) {
  SetAlarm();
  try {
    if (task->task == nullptr) task->task = executor_->Begin(plan);
    const TaskStatus status = executor_->Resume(*task->task, preempt);
    if (status == TaskStatus::kDone) results_ = executor_->Results(*task->task);
    return status;
  } catch (const std::bad_alloc&) {
    task->task = nullptr;
    return std::nullopt;
  }
}

bool EngineCore::MakeWay(StoppedTask* task) {
  const TimeUs begin_us = clock_->NowUs();
  const bool timed = begin_us >= alarm_us_;
  if (!arrived_ && !cancelled_ && !timed) return false;
  BeginRound(timed);
  const StepFate fate = scheduler_->Reconsider(begin_us);
  own_stats_.scheduler_us += clock_->NowUs() - begin_us;
  if (fate == StepFate::kGoesOn) return false;
  if (fate == StepFate::kSuspended) stopped_.push_back(std::move(*task));
  in_round_ = true;
  return true;
}

void EngineCore::FailAll(const Status& status) {
  stopped_.clear();
  scheduler_->FailAll(status, clock_->NowUs());
}

void EngineCore::EndAll(const Status& status) {
  stopped_.clear();
  scheduler_.reset();
  results_ = {};
  arrived_ = cancelled_ = in_round_ = any_lost_ = false;
  while (!callers_.empty()) {
    const auto caller = callers_.begin();
    const RequestId id = caller->first;
    for (size_t sample = 0; sample < caller->second.live.size(); ++sample) {
      if (!caller->second.live[sample] || caller->second.lost) continue;
      SampleOutput output;
      output.request = id;
      output.sample = static_cast<int32_t>(sample);
      output.finish = FinishReason::kError;
      output.times.finished_us = clock_->NowUs();
      try {
        output.status = status;
        Tell(caller->second, output);
        caller->second.live[sample] = false;
      } catch (const std::bad_alloc&) {
        Lose(&caller->second, id);
      }
    }
    callers_.erase(caller);
    ended_(id);
  }
}

void EngineCore::AddBlockingTime(TimeUs signal_us, TimeUs now_us) {
  const auto blocking_us = static_cast<uint64_t>(now_us - signal_us);
  if (alarm_us_ <= signal_us) AddWakeup(signal_us - alarm_us_);
  ++own_stats_.signals;
  own_stats_.blocking_us += blocking_us;
  own_stats_.max_blocking_us = std::max(own_stats_.max_blocking_us, blocking_us);
}

void EngineCore::AddWakeup(TimeUs us) {
  const auto wakeup_us = static_cast<uint64_t>(std::max<TimeUs>(0, us));
  ++own_stats_.wakeups;
  own_stats_.wakeup_us += wakeup_us;
  own_stats_.max_wakeup_us = std::max(own_stats_.max_wakeup_us, wakeup_us);
}

void EngineCore::CountStep(const StepPlan& plan, TimeUs duration_us) {
  const auto* mixed = std::get_if<MixedPlan>(&plan);
  if (std::holds_alternative<DecodePlan>(plan)) {
    own_stats_.decode_us += duration_us;
  } else if (mixed != nullptr && !mixed->decodes.empty()) {
    own_stats_.mixed_us += duration_us;
  } else {
    own_stats_.prefill_us += duration_us;
  }
}

EngineStats EngineCore::Stats() const {
  EngineStats stats = scheduler_->Stats();
  stats.rounds = own_stats_.rounds;
  stats.rounds_arrival = own_stats_.rounds_arrival;
  stats.rounds_cancellation = own_stats_.rounds_cancellation;
  stats.rounds_timer = own_stats_.rounds_timer;
  stats.rounds_completion = own_stats_.rounds_completion;
  stats.signals = own_stats_.signals;
  stats.blocking_us = own_stats_.blocking_us;
  stats.max_blocking_us = own_stats_.max_blocking_us;
  stats.wakeups = own_stats_.wakeups;
  stats.wakeup_us = own_stats_.wakeup_us;
  stats.max_wakeup_us = own_stats_.max_wakeup_us;
  stats.scheduler_us = own_stats_.scheduler_us;
  stats.prefill_us = own_stats_.prefill_us;
  stats.decode_us = own_stats_.decode_us;
  stats.mixed_us = own_stats_.mixed_us;
  return stats;
}

void EngineCore::Dispatch() {
  do {
    CancelLost();
    for (SampleOutput& output : scheduler_->TakeOutputs()) Deliver(output);
  } while (any_lost_);
}

void EngineCore::CancelLost() {
  if (!std::exchange(any_lost_, false)) return;
  for (const auto& [id, caller] : callers_) {
    if (caller.lost) Cancel(id);  // again for one that is cancelled: it is ignored
  }
}

void EngineCore::Deliver(SampleOutput& output) {
  const auto caller = callers_.find(output.request);
  SKEIN_CHECK(caller != callers_.end());
  NoteToken(output, &caller->second);
  if (!caller->second.lost) {
    try {
      Tell(caller->second, output);
    } catch (const std::bad_alloc&) {
      Lose(&caller->second, output.request);
      any_lost_ = true;
    }
  }
  if (!output.finish) return;
  caller->second.live[output.sample] = false;
  if (--caller->second.num_live > 0) return;
  NoteRan(caller->second, output);
  const RequestId id = output.request;
  callers_.erase(caller);
  ended_(id);
}

void EngineCore::NoteToken(const SampleOutput& output, Caller* caller) {
  if (runs_ == nullptr || !output.token || output.sample != 0) return;
  const TimeUs now_us = clock_->NowUs();
  if (++caller->num_tokens > 1) runs_->ObserveToken(now_us - caller->token_us, now_us);
  caller->token_us = now_us;
}

// The time until now counts, since a batch at request level keeps its outputs.
void EngineCore::NoteRan(const Caller& caller, const SampleOutput& output) {
  const bool begun = output.times.first_scheduled_us > 0;
  if (runs_ == nullptr || !begun || output.finish == FinishReason::kError) return;
  runs_->ObserveRun({.execution_class = caller.execution_class,
                     .size = caller.size,
                     .num_tokens = caller.num_tokens,
                     .us = clock_->NowUs() - output.times.first_scheduled_us,
                     .complete = output.finish != FinishReason::kCancelled});
}

void EngineCore::Tell(const Caller& caller, SampleOutput& output) {
  RequestOutput message = {.request = output.request,
                           .sample = output.sample,
                           .prompt_logprobs = std::move(output.prompt_logprobs),
                           .read = std::move(output.read),
                           .finish = output.finish,
                           .status = std::move(output.status),
                           .cached_tokens = output.cached_tokens,
                           .times = output.times};
  if (output.finish && !caller.ended.ok()) {
    message.finish = FinishReason::kError;
    message.status = caller.ended;
  }
  if (output.token) message.tokens.push_back(std::move(*output.token));
  caller.callback(std::move(message));
}

// Tells the caller of all live samples, in few bytes. If that fails as well, it is not told.
void EngineCore::Lose(Caller* caller, RequestId id) {
  caller->lost = true;
  for (size_t sample = 0; sample < caller->live.size(); ++sample) {
    if (!caller->live[sample]) continue;
    try {
      caller->callback({.request = id,
                        .sample = static_cast<int32_t>(sample),
                        .finish = FinishReason::kError,
                        .status = NoMemory()});
    } catch (const std::bad_alloc&) {
    }
  }
}

}  // namespace skein
