#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "base/clock.h"
#include "engine/executor.h"
#include "sched/config.h"
#include "sim/step_cost.h"

namespace skein {

// An executor that computes nothing and takes, on a virtual clock, as long as a device would. Every
// draw is a token that depends on the sequence and the position alone and that ends nothing; what
// is read is zeros.
class SimExecutor final : public Executor {
 public:
  static constexpr TimeUs kNever = std::numeric_limits<TimeUs>::max();
  static constexpr int32_t kOperatorsPerLayer = 5;
  static constexpr TimeUs kTicketUs = 1000;

  // `clock` outlives this.
  SimExecutor(StepCost cost, VirtualClock* clock, int32_t vocab_size);

  std::unique_ptr<Task> Begin(const StepPlan& plan) override;
  // Where tasks stop; nowhere unless told otherwise. Boundaries are taken as evenly spaced in time:
  // kOperatorsPerLayer a layer, and tickets kTicketUs apart at most.
  void set_granularity(Granularity granularity) { granularity_ = granularity; }
  // When a signal will be raised that stops a running task at its next boundary; kNever: not.
  void set_next_signal(TimeUs at_us) { next_signal_us_ = at_us; }

  // Moves the clock by the step's time, to its end or to where the signal stops it.
  TaskStatus Resume(Task& task, const std::atomic<bool>& preempt) override;
  const StepResults& Results(const Task& task) const override;

 private:
  TimeUs BoundaryUs(TimeUs duration_us) const;
  void AddResults(const PlanRow& row, StepResults* results) const;

  const StepCost cost_;
  VirtualClock* const clock_;
  const int32_t vocab_size_;
  Granularity granularity_ = Granularity::kNone;
  TimeUs next_signal_us_ = kNever;
};

}  // namespace skein
