#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "engine/executor.h"
#include "sim/step_cost.h"

namespace skein {

// An executor that computes nothing and takes, on a virtual clock, as long as a device would. Every
// draw is a token that depends on the sequence and the position alone and that ends nothing; what
// is read is zeros.
class SimExecutor final : public Executor {
 public:
  // `clock` outlives this.
  SimExecutor(StepCost cost, VirtualClock* clock, int32_t vocab_size);

  std::unique_ptr<Task> Begin(const StepPlan& plan) override;
  // Runs to the end: the clock moves by the step's time. Never stops early.
  TaskStatus Resume(Task& task, const std::atomic<bool>& preempt) override;
  const StepResults& Results(const Task& task) const override;

  const KvReadTotals& kv_reads() const { return kv_reads_; }

 private:
  void AddResults(const PlanRow& row, StepResults* results) const;

  const StepCost cost_;
  VirtualClock* const clock_;
  const int32_t vocab_size_;
  KvReadTotals kv_reads_;
};

}  // namespace skein
