#include "cuda/executor/cuda_executor.h"

#include <spdlog/spdlog.h>

#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "base/check.h"
#include "runtime/cpu_executor.h"
#include "runtime/step_outputs.h"

namespace skein::cuda {

struct CudaExecutor::State {
  State(const CudaContext& context, std::unique_ptr<CudaPass> cuda_pass, Sampler* sampler)
      : pass(std::move(cuda_pass)),
        outputs(context.model.weights, context.model.kernels, sampler) {}

  std::unique_ptr<CudaPass> pass;
  StepOutputs outputs;
  bool outputs_coming = false;     // outputs, or the result, are being copied to the host
  bool has_result = false;         // the result is the last thing that the device computes
  ForwardPass* on_host = nullptr;  // computes the outputs from the result
  int32_t first_logit_row = 0;     // of the current chunk
  bool fails = false;              // there is no memory for the step
  RunAhead ahead;
};

class CudaExecutor::CudaTask final : public Task {
 public:
  // Takes a free state. REQUIRES: there is one.
  explicit CudaTask(StatePool* pool) : state(std::move(pool->free.back())), pool_(pool) {
    pool->free.pop_back();
  }
  ~CudaTask() override { pool_->free.push_back(std::move(state)); }

  std::unique_ptr<State> state;

 private:
  StatePool* pool_;
};

CudaExecutor::CudaExecutor(std::vector<CudaContext> contexts)
    : contexts_(std::move(contexts)),
      sampler_(context_.model.kernels, context_.model.weights->config.vocab_size,
               context_.model.team->num_threads()) {}

Result<std::unique_ptr<CudaExecutor>> CudaExecutor::Make(std::vector<CudaContext> contexts,
                                                         const ForwardLimits& limits,
                                                         const StepStates& states) {
  std::unique_ptr<CudaExecutor> executor(new CudaExecutor(std::move(contexts)));
  for (int32_t i = 0; i < states.num_steps; ++i) {
    SKEIN_RETURN_IF_ERROR(executor->AddState(limits, &executor->states_));
  }
  if (states.num_decodes > 0) {
    SKEIN_RETURN_IF_ERROR(
        executor->AddState(DecodeLimits(limits, states.num_decodes), &executor->decode_states_));
  }
  return executor;
}

CudaExecutor::~CudaExecutor() {
  for (const StatePool* pool : {&states_, &decode_states_}) {
    SKEIN_CHECK(pool->free.size() == pool->num_states);
  }
}

size_t CudaExecutor::StateBytes(StateLayout layout, const StepStates& states) {
  if (layout.num_slots > 0) layout.num_slots += states.num_steps + (states.num_decodes > 0 ? 1 : 0);
  return layout.total_bytes();
}

Status CudaExecutor::AddState(const ForwardLimits& limits, StatePool* pool) {
  const int32_t carried_state = num_states() + num_passes_++;
  SKEIN_ASSIGN_OR_RETURN(std::unique_ptr<CudaPass> pass,
                         CudaPass::Make(contexts_, limits, carried_state));
  activation_bytes_ += pass->activation_bytes();
  pool->free.push_back(std::make_unique<State>(context_, std::move(pass), &sampler_));
  ++pool->num_states;
  return Status::Ok();
}

std::unique_ptr<Task> CudaExecutor::Begin(const StepPlan& plan) {
  if (const std::span<const HostCopy> copies = HostCopiesOf(plan); !copies.empty()) {
    SKEIN_CHECK(kv_ != nullptr);
    kv_->Run(copies);
  }
  const bool apart = decode_states_.num_states > 0 && std::holds_alternative<DecodePlan>(plan);
  StatePool& pool = apart ? decode_states_ : states_;
  SKEIN_CHECK(!pool.free.empty());
  auto task = std::make_unique<CudaTask>(&pool);
  State& state = *task->state;
  // A task that was given up may have left operators behind.
  Lose(WaitForOperators(state));
  state.outputs_coming = state.has_result = false;
  state.on_host = nullptr;
  ForwardBatch& batch = state.pass->batch();
  batch.Clear();
  state.outputs.Begin(plan);
  ForEachRow(plan, [&](const PlanRow& row) { state.outputs.AddRow(row, row.block_table, &batch); });
  state.ahead.set_ahead_us(ahead_us_);
  state.pass->set_slice_us(slice_us_);
  state.pass->set_always_shares(always_shares_);
  const Status begun = state.pass->Begin(CopiesOf(plan), state.outputs.logit_needs());
  state.fails = begun.code() == StatusCode::kResourceExhausted;
  if (state.fails) {
    spdlog::error("a step of {} tokens fails: {}", batch.num_tokens(), begun.message());
  } else {
    Lose(begun);
  }
  return task;
}

TaskStatus CudaExecutor::Resume(Task& task, const std::atomic<bool>& preempt) {
  State& state = *static_cast<CudaTask&>(task).state;
  bool stopped = false;
  if (device_status_.ok() && !state.fails) Lose(Run(state, preempt, &stopped));
  if (!device_status_.ok() || state.fails) state.outputs.Fail();
  return stopped && device_status_.ok() ? TaskStatus::kPreempted : TaskStatus::kDone;
}

bool CudaExecutor::StopsHere(const State& state) const {
  switch (granularity_) {
    case Granularity::kOpTile:
    case Granularity::kOp:
      return true;
    case Granularity::kLayer:
      return state.pass->AtListBegin();
    case Granularity::kChunk:
    case Granularity::kNone:
      break;
  }
  return false;
}

// Runs the task to its end, or until it stops.
Status CudaExecutor::Run(State& state, const std::atomic<bool>& preempt, bool* stopped) {
  Device& device = *context_.device;
  *stopped = true;
  while (!state.outputs.done()) {
    if (!RunJobs(state, preempt)) return Status::Ok();
    if (StopsHere(state) && preempt.load(std::memory_order_relaxed)) {
      return WaitForOperators(state);  // afterwards the device is free for other work
    }
    if (state.outputs_coming) {
      SKEIN_RETURN_IF_ERROR(WaitForOperators(state));
      if (!state.has_result && state.pass->outputs().CopyLeft()) {
        state.ahead.Add(0);
        continue;
      }
      state.outputs_coming = false;
      if (state.has_result) {
        state.on_host = &state.pass->BeginOutputsOnHost();
      } else {
        TakeOutputs(state);
      }
      continue;
    }
    if (state.on_host != nullptr) {
      if (!RunOnHost(state, preempt)) return Status::Ok();
      continue;
    }
    const PassStatus status = state.pass->Step();
    if (status == PassStatus::kDone) {
      SKEIN_RETURN_IF_ERROR(WaitForOperators(state));
      state.outputs.Finish();
      break;
    }
    state.has_result = status == PassStatus::kResult;
    state.outputs_coming = state.has_result || status == PassStatus::kOutputs;
    if (!state.ahead.Add(state.pass->step_us())) continue;
    state.ahead.AddMark(device.Mark());
    while (const std::optional<int64_t> mark = state.ahead.PopExcess()) {
      SKEIN_RETURN_IF_ERROR(device.Wait(*mark));
    }
  }
  *stopped = false;
  return Status::Ok();
}

Status CudaExecutor::WaitForOperators(State& state) {
  if (state.ahead.empty()) return Status::Ok();
  state.ahead.Clear();
  if (!device_status_.ok()) return device_status_;
  Status status;
  for (const CudaContext& context : contexts_) {
    const Status of_device = context.device->WaitForAll();
    if (status.ok()) status = of_device;
  }
  return status;
}

// Computes the draws and reads of the logits that are on the host. Returns whether all are done.
bool CudaExecutor::RunJobs(State& state, const std::atomic<bool>& preempt) {
  StepOutputs& outputs = state.outputs;
  if (outputs.next_job() == outputs.end_job()) return true;
  const auto run = [&](int job, int thread) {
    const int32_t row = outputs.logit_row_of(job) - state.first_logit_row;
    if (const RowLargest* largest = state.pass->outputs().drawn(row)) {
      return outputs.RunJob(job, {0.0f, largest->index, largest->finite != 0});
    }
    outputs.RunJob(job, state.pass->outputs().output(row), thread);
  };
  outputs.set_next_job(context_.model.team->Run(outputs.next_job(), outputs.end_job(), run,
                                                StopsHere(state) ? &preempt : nullptr));
  return outputs.next_job() == outputs.end_job();
}

// Computes a chunk of outputs on the processor. Returns false if it was stopped.
bool CudaExecutor::RunOnHost(State& state, const std::atomic<bool>& preempt) {
  ForwardPass& pass = *state.on_host;
  switch (pass.Run(&preempt, StopAtOf(granularity_))) {
    case ForwardStatus::kStopped:
      return false;
    case ForwardStatus::kDone:
      state.outputs.Finish();
      return true;
    case ForwardStatus::kOutputs:
      break;
    case ForwardStatus::kLogits:
      SKEIN_CHECK(false);  // CheckDeviceComputes
  }
  const OutputChunk& chunk = pass.chunk();
  for (int32_t i = 0; i < chunk.count; ++i) {
    state.outputs.Take(chunk.kind, chunk.first + i, state.pass->batch(), pass.output(i));
  }
  return true;
}

void CudaExecutor::TakeOutputs(State& state) {
  OutputOperators& outputs = state.pass->outputs();
  const OutputChunk& chunk = state.pass->chunk();
  if (chunk.kind == OutputKind::kLogits) {
    state.first_logit_row = chunk.first;
    return state.outputs.TakeLogits(chunk.first + chunk.count);
  }
  for (int32_t i = 0; i < chunk.count; ++i) {
    state.outputs.Take(chunk.kind, chunk.first + i, state.pass->batch(), outputs.output(i));
  }
}

void CudaExecutor::Lose(const Status& status) {
  if (status.ok() || !device_status_.ok()) return;
  device_status_ = status;
  spdlog::error("the device {} is lost: {}", context_.device->name(), status.message());
}

const StepResults& CudaExecutor::Results(const Task& task) const {
  const State& state = *static_cast<const CudaTask&>(task).state;
  SKEIN_CHECK(state.outputs.done());
  return state.outputs.results();
}

}  // namespace skein::cuda
