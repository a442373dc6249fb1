#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "engine/executor.h"
#include "model/forward/pass.h"
#include "runtime/kv_memory.h"
#include "runtime/sampler.h"
#include "sched/config.h"
#include "sched/plan.h"

namespace skein {

// The boundaries of a pass at which tasks of this granularity stop.
StopAt StopAtOf(Granularity granularity);

// Runs plans on the processor's cores:
//
//   copies -> forward operators -> up to max_logit_rows rows of logits -> draws and reads from them
//   -> next rows ... -> labels, embeddings and classes
//
// A task can stop between any two tickets, including those of the sampler, or at the boundaries of
// a coarser granularity. Builds that look for bugs (SKEIN_RANDOM_STOPS: debug and sanitizers) also
// stop at random tickets and go on at once, without any visible effect. Activations live as long as
// their task; later tasks reuse their memory. So in a steady state, only the task itself is
// allocated. Steps of decodes alone may have separate, small activations: a task of this kind then
// runs beside any number of suspended tasks.
class CpuExecutor final : public Executor {
 public:
  // Gets the raw logits [vocab] of each row with draws, before the draws.
  using LogitsObserver = std::function<void(const PlanRow& row, const float* logits)>;

  // `kv` and everything in `context` is borrowed and outlives the executor; context.kv is
  // kv->data(). `num_decodes`: as in StepStates. If above 0, it is the most rows of a DecodePlan.
  CpuExecutor(const ForwardContext& context, const ForwardLimits& limits, KvMemory* kv,
              int32_t num_decodes = 0);
  ~CpuExecutor() override;

  int32_t num_states() const override { return context_.state_layout.num_slots; }
  std::unique_ptr<Task> Begin(const StepPlan& plan) override;
  TaskStatus Resume(Task& task, const std::atomic<bool>& preempt) override;
  const StepResults& Results(const Task& task) const override;

  // Sets the boundaries at which tasks stop; the default is any ticket.
  void set_granularity(Granularity granularity) { granularity_ = granularity; }

  // The observer is called on the engine's thread.
  void set_logits_observer(LogitsObserver observer) { observer_ = std::move(observer); }

  // The most bytes of activations that were in use at the same time.
  size_t activation_bytes() const;

 private:
  struct State;  // all parts of a task whose memory is reused
  class CpuTask;
  // The states for steps up to one size.
  struct StatePool {
    ForwardLimits limits;
    std::vector<std::unique_ptr<State>> free;  // states without a task
    size_t num_states = 0;
  };

  int RunTickets(int first, int end, const ThreadTeam::TicketFn& fn,
                 const std::atomic<bool>& preempt);
  // Returns true if the task is done, and false if it was stopped.
  bool RunToStop(State& state, const std::atomic<bool>& preempt);
  bool RunCopies(State& state, const std::atomic<bool>& preempt);
  bool RunJobs(State& state, const std::atomic<bool>& preempt);
  void BeginJobs(State& state);
  void TakeOutputs(State& state);

  const ForwardContext context_;
  KvMemory* const kv_;
  const bool decodes_apart_;
  Sampler sampler_;
  LogitsObserver observer_;
  Granularity granularity_ = Granularity::kOpTile;
  StatePool states_;
  StatePool decode_states_;  // used if decodes_apart_
  size_t state_bytes_ = 0;
};

}  // namespace skein
