#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/executor/cuda_pass.h"
#include "cuda/executor/kv/device_kv.h"
#include "cuda/executor/operators/operator_slices.h"
#include "cuda/executor/run_ahead.h"
#include "engine/executor.h"
#include "runtime/memory_plan.h"
#include "runtime/sampler.h"
#include "sched/config.h"
#include "sched/plan.h"

namespace skein::cuda {

// Runs plans on a device, or on several that compute each operator together (rank.h):
//
//   copy inputs to the device -> operators -> draws on the device -> copy rows of logits, or other
//   outputs, to the host -> other draws and reads -> next rows ... -> results
//
// A draw that the device leaves to the host brings its row of logits in a second copy.
//
// The device gets operators before it has finished earlier ones, but few of them (run_ahead.h). So
// a task stops soon after the signal, and the device never waits for the host. A stopped task keeps
// its activations on the device. If the device does not compute a model's outputs
// (DeviceComputesOutputs), the threads of the host do. All memory is allocated at the start, but
// that for the integers of unusually large batches: a step for which there is none fails. If a
// device is lost, every result of its steps is a number that is not finite: requests fail, and the
// process goes on.
//
// Copies to and from the host tier are the first commands of a step. They are not cut: a signal
// waits for those that the device has begun.
class CudaExecutor final : public Executor {
 public:
  // Allocates the activations of `states`. contexts: one for each rank, in order; the objects in
  // them are borrowed, and CudaContext::states has StateBytes. Fails as Device::Allocate does.
  static Result<std::unique_ptr<CudaExecutor>> Make(std::vector<CudaContext> contexts,
                                                    const ForwardLimits& limits,
                                                    const StepStates& states);
  ~CudaExecutor() override;

  // The bytes of the states of linear layers: those of `layout`, and one slot for each step that
  // keeps its state, which carries a row from chunk to chunk (LayerWalk).
  static size_t StateBytes(StateLayout layout, const StepStates& states);

  int32_t num_states() const override { return context_.model.state_layout.num_slots; }
  std::unique_ptr<Task> Begin(const StepPlan& plan) override;
  TaskStatus Resume(Task& task, const std::atomic<bool>& preempt) override;
  const StepResults& Results(const Task& task) const override;

  // Sets where tasks stop. On a device, a slice of an operator is one ticket: tasks stop between
  // slices, with kOp too.
  void set_granularity(Granularity granularity) { granularity_ = granularity; }
  // Sets the work that the device has ahead of it (run_ahead.h), for tasks that begin later.
  void set_ahead_us(double ahead_us) { ahead_us_ = ahead_us; }
  // Sets the longest slice of an operator (operator_slices.h), for tasks that begin later.
  void set_slice_us(double slice_us) { slice_us_ = slice_us; }
  // The KV memory that plans copy to the host and back; it outlives the executor. Not set: no plan
  // has such copies.
  void set_kv(DeviceKv* kv) { kv_ = kv; }
  // TileCutter::set_always_shares, for tasks that begin later.
  void set_always_shares(bool always_shares) { always_shares_ = always_shares; }

  // On all devices together.
  int64_t activation_bytes() const { return activation_bytes_; }
  // The error that lost the device.
  const Status& device_status() const { return device_status_; }

 private:
  struct State;  // a task's data, whose memory is used again
  class CudaTask;
  struct StatePool {
    std::vector<std::unique_ptr<State>> free;  // states that no task uses
    size_t num_states = 0;
  };

  explicit CudaExecutor(std::vector<CudaContext> contexts);
  Status AddState(const ForwardLimits& limits, StatePool* pool);
  bool StopsHere(const State& state) const;
  Status Run(State& state, const std::atomic<bool>& preempt, bool* stopped);
  // Waits for the operators that were given to the devices.
  Status WaitForOperators(State& state);
  bool RunJobs(State& state, const std::atomic<bool>& preempt);
  bool RunOnHost(State& state, const std::atomic<bool>& preempt);
  void TakeOutputs(State& state);
  void Lose(const Status& status);

  const std::vector<CudaContext> contexts_;
  const CudaContext& context_ = contexts_.front();  // of the rank that leads
  Sampler sampler_;
  Granularity granularity_ = Granularity::kOpTile;
  double ahead_us_ = kAheadUs;
  double slice_us_ = kSliceUs;
  bool always_shares_ = false;
  DeviceKv* kv_ = nullptr;
  StatePool states_;
  StatePool decode_states_;  // for steps of decodes alone, if these run beside other steps
  int32_t num_passes_ = 0;
  int64_t activation_bytes_ = 0;
  Status device_status_;
};

}  // namespace skein::cuda
