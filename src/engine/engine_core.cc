#include "engine/engine_core.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"

namespace skein {

EngineCore::EngineCore(const SchedulerConfig& config, Executor* executor, const Clock* clock,
                       std::vector<SchedulerObserver*> observers, Ended ended,
                       const PolicyLists& lists)
    : executor_(executor),
      clock_(clock),
      ended_(std::move(ended)),
      scheduler_(config, std::move(observers), lists) {}

void EngineCore::Arrive(RequestId first_id, std::vector<Request> requests,
                        const OutputCallback& callback, TimeUs arrival_us) {
  arrived_ = true;
  RequestId id = first_id;
  for (Request& request : requests) {
    callers_[id] = {callback, NumSamples(request), Status::Ok()};
    scheduler_.Arrive(id++, std::move(request), arrival_us);
  }
}

void EngineCore::Cancel(RequestId id) {
  cancelled_ = true;
  scheduler_.Cancel(id, clock_->NowUs());
}

void EngineCore::CancelSample(RequestId id, int32_t sample) {
  cancelled_ = true;
  scheduler_.CancelSample(id, sample, clock_->NowUs());
}

bool EngineCore::EndQueued(RequestId id, const Status& status) {
  if (!scheduler_.IsQueued(id)) return false;
  callers_.at(id).ended = status;
  Cancel(id);
  return true;
}

bool EngineCore::Step(const std::atomic<bool>& preempt, const std::function<bool()>& between) {
  const TimeUs begin_us = clock_->NowUs();
  BeginRound(false);
  const StepPlan* plan = scheduler_.Plan(begin_us);
  TimeUs resumed_us = clock_->NowUs();
  own_stats_.scheduler_us += resumed_us - begin_us;
  if (plan == nullptr) {
    DropTasks();
    return false;
  }
  StoppedTask task = TakeTask(*plan);
  while (Resume(task.task.get(), preempt) == TaskStatus::kPreempted) {
    task.ran_us += clock_->NowUs() - resumed_us;
    if (!between()) return true;
    if (MakeWay(&task)) return true;
    resumed_us = clock_->NowUs();
  }
  const TimeUs done_us = clock_->NowUs();
  CountStep(*plan, task.ran_us + done_us - resumed_us);
  results_ = executor_->Results(*task.task);
  scheduler_.Complete(&results_, done_us);
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
    return stopped.task == nullptr || !scheduler_.IsSuspended(stopped.step_id);
  });
}

// The task of the step that the scheduler has named. Tasks of dropped steps are destroyed before a
// new task begins, so that their memory is free.
EngineCore::StoppedTask EngineCore::TakeTask(const StepPlan& plan) {
  StoppedTask taken = {.step_id = scheduler_.step_id()};
  for (StoppedTask& stopped : stopped_) {
    if (stopped.step_id == taken.step_id) taken = std::move(stopped);
  }
  DropTasks();
  if (taken.task == nullptr) taken.task = executor_->Begin(plan);
  return taken;
}

TaskStatus EngineCore::Resume(Task* task, const std::atomic<bool>& preempt) {
  if (set_alarm_) {
    const std::optional<TimeUs> next_us = scheduler_.NextRoundUs();
    alarm_us_ = next_us ? std::max(*next_us, clock_->NowUs()) : kNever;
    set_alarm_(alarm_us_);
  }
  return executor_->Resume(*task, preempt);
}

bool EngineCore::MakeWay(StoppedTask* task) {
  const TimeUs begin_us = clock_->NowUs();
  const bool timed = begin_us >= alarm_us_;
  if (!arrived_ && !cancelled_ && !timed) return false;
  BeginRound(timed);
  const StepFate fate = scheduler_.Reconsider(begin_us);
  own_stats_.scheduler_us += clock_->NowUs() - begin_us;
  if (fate == StepFate::kGoesOn) return false;
  if (fate == StepFate::kSuspended) stopped_.push_back(std::move(*task));
  in_round_ = true;
  return true;
}

void EngineCore::FailAll(const Status& status) {
  stopped_.clear();
  scheduler_.FailAll(status, clock_->NowUs());
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
  EngineStats stats = scheduler_.Stats();
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
  for (SampleOutput& output : scheduler_.TakeOutputs()) Deliver(output);
}

void EngineCore::Deliver(SampleOutput& output) {
  const auto caller = callers_.find(output.request);
  SKEIN_CHECK(caller != callers_.end());
  RequestOutput message = {.request = output.request,
                           .sample = output.sample,
                           .prompt_logprobs = std::move(output.prompt_logprobs),
                           .read = std::move(output.read),
                           .finish = output.finish,
                           .status = std::move(output.status),
                           .cached_tokens = output.cached_tokens,
                           .times = output.times};
  if (output.finish && !caller->second.ended.ok()) {
    message.finish = FinishReason::kError;
    message.status = caller->second.ended;
  }
  if (output.token) message.tokens.push_back(std::move(*output.token));
  caller->second.callback(std::move(message));
  if (!output.finish || --caller->second.num_live > 0) return;
  callers_.erase(caller);
  ended_(output.request);
}

}  // namespace skein
