#include "engine/engine_core.h"

#include <memory>
#include <utility>

#include "base/check.h"

namespace skein {

EngineCore::EngineCore(const SchedulerConfig& config, Executor* executor, const Clock* clock,
                       std::vector<SchedulerObserver*> observers, Ended ended)
    : executor_(executor),
      clock_(clock),
      ended_(std::move(ended)),
      scheduler_(config, std::move(observers)) {}

void EngineCore::Arrive(RequestId first_id, std::vector<Request> requests,
                        const OutputCallback& callback, TimeUs arrival_us) {
  RequestId id = first_id;
  for (Request& request : requests) {
    callers_[id] = {callback, NumSamples(request)};
    scheduler_.Arrive(id++, std::move(request), arrival_us);
  }
}

void EngineCore::Cancel(RequestId id) { scheduler_.Cancel(id, clock_->NowUs()); }

void EngineCore::CancelSample(RequestId id, int32_t sample) {
  scheduler_.CancelSample(id, sample, clock_->NowUs());
}

bool EngineCore::Step(const std::atomic<bool>& preempt, const std::function<bool()>& between) {
  const TimeUs begin_us = clock_->NowUs();
  const StepPlan* plan = scheduler_.Plan(begin_us);
  const TimeUs planned_us = clock_->NowUs();
  ++own_stats_.rounds;
  own_stats_.scheduler_us += planned_us - begin_us;
  if (plan == nullptr) return false;
  const std::unique_ptr<Task> task = executor_->Begin(*plan);
  while (executor_->Resume(*task, preempt) == TaskStatus::kPreempted) {
    if (!between()) return true;
  }
  const TimeUs done_us = clock_->NowUs();
  CountStep(*plan, done_us - planned_us);
  results_ = executor_->Results(*task);
  scheduler_.Complete(&results_, done_us);
  own_stats_.scheduler_us += clock_->NowUs() - done_us;
  return true;
}

void EngineCore::FailAll(const Status& status) { scheduler_.FailAll(status, clock_->NowUs()); }

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
  if (output.token) message.tokens.push_back(std::move(*output.token));
  caller->second.callback(std::move(message));
  if (!output.finish || --caller->second.num_live > 0) return;
  callers_.erase(caller);
  ended_(output.request);
}

}  // namespace skein
