#include "runtime/cpu_executor.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace skein {
namespace {

// Calls fn(row) for the rows of any plan, prefills before decodes.
template <typename Fn>
void ForEachRow(const StepPlan& plan, const Fn& fn) {
  if (const auto* mixed = std::get_if<MixedPlan>(&plan)) {
    for (const PlanRow& row : mixed->prefills) fn(row);
    for (const PlanRow& row : mixed->decodes) fn(row);
  } else if (const auto* decode = std::get_if<DecodePlan>(&plan)) {
    for (const PlanRow& row : decode->rows) fn(row);
  } else {
    for (const PlanRow& row : std::get<OneShotPlan>(plan).rows) fn(row);
  }
}

std::span<const BlockCopy> CopiesOf(const StepPlan& plan) {
  if (const auto* mixed = std::get_if<MixedPlan>(&plan)) return mixed->copies;
  if (const auto* decode = std::get_if<DecodePlan>(&plan)) return decode->copies;
  return {};
}

}  // namespace

struct CpuExecutor::State {
  // One draw of a row with logits.
  struct Draw {
    const DrawSpec* spec = nullptr;
    int32_t logit_row = 0;  // among all rows with logits
  };

  State(const ForwardContext& context, const ForwardLimits& limits) : pass(context, limits) {}

  ForwardPass pass;
  std::span<const BlockCopy> copies;
  int next_copy_ticket = 0;                // tickets: copy by layer
  std::vector<const PlanRow*> logit_rows;  // rows with draws, in plan order
  std::vector<Draw> draws;                 // in plan order
  // Draws whose logits are there: [next_draw, end_draw); those before are done.
  int next_draw = 0;
  int end_draw = 0;
  bool done = false;
  // At least as many as draws: results keep their memory from step to step.
  std::vector<DrawResult> results;
};

class CpuExecutor::CpuTask final : public Task {
 public:
  CpuTask(CpuExecutor* executor, std::unique_ptr<State> begun)
      : state(std::move(begun)), executor_(executor) {}
  ~CpuTask() override { executor_->free_.push_back(std::move(state)); }

  std::unique_ptr<State> state;

 private:
  CpuExecutor* executor_;
};

CpuExecutor::CpuExecutor(const ForwardContext& context, const ForwardLimits& limits, KvMemory* kv)
    : context_(context),
      limits_(limits),
      kv_(kv),
      sampler_(context.kernels, context.weights->config.vocab_size, context.team->num_threads()) {
  SKEIN_CHECK(kv->data() == context.kv);
}

CpuExecutor::~CpuExecutor() { SKEIN_CHECK(free_.size() == num_states_); }

size_t CpuExecutor::activation_bytes() const { return state_bytes_; }

std::unique_ptr<Task> CpuExecutor::Begin(const StepPlan& plan) {
  if (free_.empty()) {
    free_.push_back(std::make_unique<State>(context_, limits_));
    ++num_states_;
    state_bytes_ += free_.back()->pass.activation_bytes();
    free_.reserve(num_states_);
  }
  std::unique_ptr<State> state = std::move(free_.back());
  free_.pop_back();
  state->copies = CopiesOf(plan);
  state->next_copy_ticket = 0;
  state->next_draw = state->end_draw = 0;
  state->done = false;
  state->logit_rows.clear();
  state->draws.clear();
  ForwardBatch& batch = state->pass.batch();
  batch.Clear();
  ForEachRow(plan, [&](const PlanRow& row) {
    batch.AddRow(row.tokens, row.begin, row.block_table, !row.draws.empty());
    batch.rows.back().fork = {row.fork.from, row.fork.to, row.fork.num_tokens};
    for (const DrawSpec& spec : row.draws) {
      state->draws.push_back({&spec, static_cast<int32_t>(state->logit_rows.size())});
    }
    if (!row.draws.empty()) state->logit_rows.push_back(&row);
  });
  state->results.resize(state->draws.size());
  state->pass.Begin();
  return std::make_unique<CpuTask>(this, std::move(state));
}

TaskStatus CpuExecutor::Resume(Task& task, const std::atomic<bool>& preempt) {
  State& state = *static_cast<CpuTask&>(task).state;
  if (!RunCopies(state, preempt)) return TaskStatus::kPreempted;
  while (!state.done) {
    if (!RunDraws(state, preempt)) return TaskStatus::kPreempted;
    switch (state.pass.Run(&preempt)) {
      case ForwardStatus::kStopped:
        return TaskStatus::kPreempted;
      case ForwardStatus::kLogits:
        BeginDraws(state);
        break;
      case ForwardStatus::kDone:
        state.done = true;
        break;
    }
  }
  return TaskStatus::kDone;
}

bool CpuExecutor::RunCopies(State& state, const std::atomic<bool>& preempt) {
  const int32_t num_layers = kv_->layout().num_layers;
  const int end = static_cast<int>(state.copies.size()) * num_layers;
  const auto copy = [this, &state](int ticket, int) {
    const int layers = kv_->layout().num_layers;
    kv_->CopyBlock(state.copies[ticket / layers], ticket % layers);
  };
  state.next_copy_ticket = context_.team->Run(state.next_copy_ticket, end, copy, &preempt);
  return state.next_copy_ticket == end;
}

// Takes the draws whose logits the pass has ready.
void CpuExecutor::BeginDraws(State& state) {
  const int32_t end_row = state.pass.first_logit_row() + state.pass.num_logit_rows();
  if (observer_) {
    for (int32_t row = state.pass.first_logit_row(); row < end_row; ++row) {
      observer_(*state.logit_rows[row], state.pass.logits(row - state.pass.first_logit_row()));
    }
  }
  while (state.end_draw < static_cast<int>(state.draws.size()) &&
         state.draws[state.end_draw].logit_row < end_row) {
    ++state.end_draw;
  }
}

bool CpuExecutor::RunDraws(State& state, const std::atomic<bool>& preempt) {
  if (state.next_draw == state.end_draw) return true;
  const auto draw = [this, &state](int ticket, int thread) {
    const State::Draw& d = state.draws[ticket];
    const float* logits = state.pass.logits(d.logit_row - state.pass.first_logit_row());
    sampler_.Draw(*d.spec, logits, thread, &state.results[ticket]);
  };
  state.next_draw = context_.team->Run(state.next_draw, state.end_draw, draw, &preempt);
  return state.next_draw == state.end_draw;
}

const std::vector<DrawResult>& CpuExecutor::Results(const Task& task) const {
  const State& state = *static_cast<const CpuTask&>(task).state;
  SKEIN_CHECK(state.done);
  return state.results;
}

}  // namespace skein
