#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "base/clock.h"
#include "engine/executor.h"
#include "sched/config.h"
#include "sim/step_cost.h"

namespace skein {

// An executor that computes nothing, but takes on a virtual clock the time that a device would
// take. Every drawn token depends only on the sequence and the position, and does not end the
// output. The answers to reads, such as probabilities and embeddings, are zeros.
class SimExecutor final : public Executor {
 public:
  static constexpr TimeUs kNever = std::numeric_limits<TimeUs>::max();
  static constexpr int32_t kOperatorsPerLayer = 5;
  static constexpr TimeUs kTicketUs = 1000;

  // `clock` outlives the executor.
  SimExecutor(StepCost cost, VirtualClock* clock, int32_t vocab_size);

  std::unique_ptr<Task> Begin(const StepPlan& plan) override;
  // Sets the boundaries at which tasks stop; by default there are none. They are evenly spaced in
  // time: kOperatorsPerLayer in a layer, or tickets of at most kTicketUs.
  void set_granularity(Granularity granularity) { granularity_ = granularity; }
  // Sets the time of the scheduling round with which each step begins; by default 0.
  void set_round_us(TimeUs round_us) { round_us_ = round_us; }
  // Sets the time of the signal that stops a running task at its next boundary; kNever: none.
  void set_next_signal(TimeUs at_us) { next_signal_us_ = at_us; }

  // Moves the clock by the step's time: to its end, or to the boundary at which the signal stops
  // it.
  TaskStatus Resume(Task& task, const std::atomic<bool>& preempt) override;
  const StepResults& Results(const Task& task) const override;

  const KvReadTotals& kv_reads() const { return kv_reads_; }

 private:
  TimeUs BoundaryUs(TimeUs duration_us) const;
  void AddResults(const PlanRow& row, StepResults* results) const;

  const StepCost cost_;
  VirtualClock* const clock_;
  const int32_t vocab_size_;
  KvReadTotals kv_reads_;
  Granularity granularity_ = Granularity::kNone;
  TimeUs next_signal_us_ = kNever;
  TimeUs round_us_ = 0;
};

}  // namespace skein
