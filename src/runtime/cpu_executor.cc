#include "runtime/cpu_executor.h"

#include <utility>

#include "base/check.h"
#include "runtime/memory_plan.h"
#include "runtime/step_outputs.h"

namespace skein {

StopAt StopAtOf(Granularity granularity) {
  switch (granularity) {
    case Granularity::kOpTile:
      return StopAt::kTicket;
    case Granularity::kOp:
      return StopAt::kOperator;
    case Granularity::kLayer:
      return StopAt::kLayer;
    case Granularity::kChunk:
    case Granularity::kNone:
      break;
  }
  return StopAt::kEnd;
}

struct CpuExecutor::State {
  State(const ForwardContext& context, const ForwardLimits& limits, Sampler* sampler)
      : pass(context, limits), outputs(context.weights, context.kernels, sampler) {}

  ForwardPass pass;
  std::span<const BlockCopy> copies;
  int next_copy_ticket = 0;  // a ticket copies one block in one layer
  StepOutputs outputs;
};

class CpuExecutor::CpuTask final : public Task {
 public:
  // Takes a free state. REQUIRES: there is one.
  explicit CpuTask(StatePool* pool) : state(std::move(pool->free.back())), pool_(pool) {
    pool->free.pop_back();
  }
  ~CpuTask() override { pool_->free.push_back(std::move(state)); }

  std::unique_ptr<State> state;

 private:
  StatePool* pool_;
};

CpuExecutor::CpuExecutor(const ForwardContext& context, const ForwardLimits& limits, KvMemory* kv,
                         int32_t num_decodes)
    : context_(context),
      kv_(kv),
      decodes_apart_(num_decodes > 0),
      sampler_(context.kernels, context.weights->config.vocab_size, context.team->num_threads()) {
  SKEIN_CHECK(kv->data() == context.kv);
  states_.limits = limits;
  decode_states_.limits = DecodeLimits(limits, num_decodes);
#ifdef SKEIN_RANDOM_STOPS
  context.team->StopAtRandom(/*seed=*/1);
#endif
}

CpuExecutor::~CpuExecutor() {
  for (const StatePool* pool : {&states_, &decode_states_}) {
    SKEIN_CHECK(pool->free.size() == pool->num_states);
  }
}

size_t CpuExecutor::activation_bytes() const { return state_bytes_; }

std::unique_ptr<Task> CpuExecutor::Begin(const StepPlan& plan) {
  SKEIN_CHECK(HostCopiesOf(plan).empty());  // its blocks are in the host's memory already
  context_.team->PinLeader();
  const bool apart = decodes_apart_ && std::holds_alternative<DecodePlan>(plan);
  StatePool& pool = apart ? decode_states_ : states_;
  if (pool.free.empty()) {
    pool.free.reserve(pool.num_states + 1);  // the end of a task takes no memory
    pool.free.push_back(std::make_unique<State>(context_, pool.limits, &sampler_));
    ++pool.num_states;
    state_bytes_ += pool.free.back()->pass.activation_bytes();
  }
  auto task = std::make_unique<CpuTask>(&pool);
  State& state = *task->state;
  state.copies = CopiesOf(plan);
  state.next_copy_ticket = 0;
  state.pass.batch().Clear();
  state.outputs.Begin(plan);
  ForEachRow(plan, [&](const PlanRow& row) {
    state.outputs.AddRow(row, kv_->BlocksOf(row.block_table), &state.pass.batch());
  });
  SKEIN_CHECK(state.pass.batch().rows.size() == 1 || !kv_->layout().contiguous);
  state.pass.Begin();
  return task;
}

TaskStatus CpuExecutor::Resume(Task& task, const std::atomic<bool>& preempt) {
  State& state = *static_cast<CpuTask&>(task).state;
  while (!RunToStop(state, preempt)) {
    // If `preempt` is not set, the team stopped at random, and the task goes on.
    if (preempt.load(std::memory_order_relaxed)) return TaskStatus::kPreempted;
  }
  return TaskStatus::kDone;
}

bool CpuExecutor::RunToStop(State& state, const std::atomic<bool>& preempt) {
  if (!RunCopies(state, preempt)) return false;
  while (!state.outputs.done()) {
    if (!RunJobs(state, preempt)) return false;
    switch (state.pass.Run(&preempt, StopAtOf(granularity_))) {
      case ForwardStatus::kStopped:
        return false;
      case ForwardStatus::kLogits:
        BeginJobs(state);
        break;
      case ForwardStatus::kOutputs:
        TakeOutputs(state);
        break;
      case ForwardStatus::kDone:
        state.outputs.Finish();
        break;
    }
  }
  return true;
}

// Runs the tickets of an operator outside the pass. Returns the first ticket that was not issued.
int CpuExecutor::RunTickets(int first, int end, const ThreadTeam::TicketFn& fn,
                            const std::atomic<bool>& preempt) {
  const StopAt stop_at = StopAtOf(granularity_);
  if (stop_at == StopAt::kOperator && preempt.load(std::memory_order_relaxed)) return first;
  return context_.team->Run(first, end, fn, stop_at == StopAt::kTicket ? &preempt : nullptr);
}

bool CpuExecutor::RunCopies(State& state, const std::atomic<bool>& preempt) {
  const int32_t num_layers = kv_->layout().num_layers;
  const int end = static_cast<int>(state.copies.size()) * num_layers;
  const auto copy = [this, &state](int ticket, int) {
    const int layers = kv_->layout().num_layers;
    kv_->CopyBlock(state.copies[ticket / layers], ticket % layers);
  };
  state.next_copy_ticket = RunTickets(state.next_copy_ticket, end, copy, preempt);
  return state.next_copy_ticket == end;
}

// Takes the rows of logits that the pass has ready.
void CpuExecutor::BeginJobs(State& state) {
  const int32_t end_row = state.pass.first_logit_row() + state.pass.num_logit_rows();
  if (observer_) {
    for (int32_t row = state.pass.first_logit_row(); row < end_row; ++row) {
      if (state.outputs.logit_row(row) == nullptr) continue;
      observer_(*state.outputs.logit_row(row),
                state.pass.logits(row - state.pass.first_logit_row()));
    }
  }
  state.outputs.TakeLogits(end_row);
}

bool CpuExecutor::RunJobs(State& state, const std::atomic<bool>& preempt) {
  StepOutputs& outputs = state.outputs;
  if (outputs.next_job() == outputs.end_job()) return true;
  const auto run = [&](int job, int thread) {
    outputs.RunJob(job, state.pass.logits(outputs.logit_row_of(job) - state.pass.first_logit_row()),
                   thread);
  };
  outputs.set_next_job(RunTickets(outputs.next_job(), outputs.end_job(), run, preempt));
  return outputs.next_job() == outputs.end_job();
}

// Takes the outputs other than logits that the pass has ready.
void CpuExecutor::TakeOutputs(State& state) {
  const OutputChunk& chunk = state.pass.chunk();
  for (int32_t i = 0; i < chunk.count; ++i) {
    state.outputs.Take(chunk.kind, chunk.first + i, state.pass.batch(), state.pass.output(i));
  }
}

const StepResults& CpuExecutor::Results(const Task& task) const {
  const State& state = *static_cast<const CpuTask&>(task).state;
  SKEIN_CHECK(state.outputs.done());
  return state.outputs.results();
}

}  // namespace skein
