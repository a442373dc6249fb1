#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/executor/cuda_pass.h"
#include "engine/executor.h"
#include "runtime/memory_plan.h"
#include "runtime/sampler.h"
#include "sched/config.h"
#include "sched/plan.h"

namespace skein::cuda {

// Runs plans on a device:
//
//   one copy in -> operators -> rows of logits, or other outputs, to the host -> draws and reads
//   -> next rows ... -> results
//
// The host gives the device at most kOperatorsAhead operators that it has not finished. So a task
// stops within that many operators of the signal, and the device still never waits for the host. A
// stopped task keeps its activations on the device. All memory is allocated at the start. If the
// device is lost, every result of its steps is one that is not finite: requests fail, the process
// goes on.
class CudaExecutor final : public Executor {
 public:
  static constexpr int32_t kOperatorsAhead = 3;

  // Allocates the activations of `states`. Everything in `context` is borrowed. Fails as
  // Device::Allocate does.
  static Result<std::unique_ptr<CudaExecutor>> Make(const CudaContext& context,
                                                    const ForwardLimits& limits,
                                                    const StepStates& states);
  ~CudaExecutor() override;

  std::unique_ptr<Task> Begin(const StepPlan& plan) override;
  TaskStatus Resume(Task& task, const std::atomic<bool>& preempt) override;
  const StepResults& Results(const Task& task) const override;

  // Sets where tasks stop; a device's operator is one ticket.
  void set_granularity(Granularity granularity) { granularity_ = granularity; }

  int64_t activation_bytes() const { return activation_bytes_; }
  // The error that lost the device.
  const Status& device_status() const { return device_status_; }

 private:
  struct State;  // everything of a task whose memory is used again
  class CudaTask;
  struct StatePool {
    std::vector<std::unique_ptr<State>> free;  // states without a task
    size_t num_states = 0;
  };

  explicit CudaExecutor(const CudaContext& context);
  Status AddState(const ForwardLimits& limits, StatePool* pool);
  bool StopsHere(const State& state) const;
  Status Run(State& state, const std::atomic<bool>& preempt, bool* stopped);
  // Waits for the operators that the device has.
  Status WaitForOperators(State& state);
  bool RunJobs(State& state, const std::atomic<bool>& preempt);
  void TakeOutputs(State& state);
  void Lose(const Status& status);

  const CudaContext context_;
  Sampler sampler_;
  Granularity granularity_ = Granularity::kOpTile;
  StatePool states_;
  StatePool decode_states_;  // of steps of decodes alone, if they run beside others
  int64_t activation_bytes_ = 0;
  Status device_status_;
};

}  // namespace skein::cuda
