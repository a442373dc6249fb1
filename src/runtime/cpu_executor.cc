#include "runtime/cpu_executor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "model/decision_head.h"
#include "runtime/memory_plan.h"

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

static_assert(kNoState == ForwardState::kNone);

ForwardState StateOf(const RowState& row) {
  ForwardState state = {.from = row.from, .to = row.to};
  for (size_t i = 0; i < row.snapshots.size(); ++i) {
    state.snapshots[i] = {row.snapshots[i].state, row.snapshots[i].at};
  }
  return state;
}

std::span<const BlockCopy> CopiesOf(const StepPlan& plan) {
  if (const auto* mixed = std::get_if<MixedPlan>(&plan)) return mixed->copies;
  if (const auto* decode = std::get_if<DecodePlan>(&plan)) return decode->copies;
  return {};
}

}  // namespace

struct CpuExecutor::State {
  // One draw from, or one read of, a row of logits: exactly one of the three pointers is set.
  struct Job {
    int32_t logit_row = 0;  // among all rows with logits
    int32_t result = 0;     // index among the results of its kind
    const DrawSpec* draw = nullptr;
    const LabelSpec* labels = nullptr;  // with a log-sum-exp
    const PromptLogprobsRange* logprobs = nullptr;
    int32_t logprob = 0;  // index in the range
    bool finite = true;   // of a prompt log-probability
  };

  State(const ForwardContext& context, const ForwardLimits& limits) : pass(context, limits) {}

  ForwardPass pass;
  std::span<const BlockCopy> copies;
  int next_copy_ticket = 0;                // tickets: copy by layer
  std::vector<const PlanRow*> logit_rows;  // in plan order; null where only a prompt
                                           // log-probability is read
  std::vector<Job> jobs;                   // in plan order
  // The jobs whose logits are ready: [next_job, end_job). Earlier jobs are done.
  int next_job = 0;
  int end_job = 0;
  // The index of the read that each output of the pass belongs to, kind by kind.
  std::vector<int32_t> label_reads, embedding_reads, class_reads, marker_reads, action_reads,
      question_reads, state_reads;
  bool done = false;
  StepResults results;  // keeps its memory from step to step
};

class CpuExecutor::CpuTask final : public Task {
 public:
  CpuTask(StatePool* pool, std::unique_ptr<State> begun) : state(std::move(begun)), pool_(pool) {}
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
  context_.team->PinLeader();
  const bool apart = decodes_apart_ && std::holds_alternative<DecodePlan>(plan);
  StatePool& pool = apart ? decode_states_ : states_;
  if (pool.free.empty()) {
    pool.free.push_back(std::make_unique<State>(context_, pool.limits));
    ++pool.num_states;
    state_bytes_ += pool.free.back()->pass.activation_bytes();
    pool.free.reserve(pool.num_states);
  }
  std::unique_ptr<State> state = std::move(pool.free.back());
  pool.free.pop_back();
  state->copies = CopiesOf(plan);
  state->next_copy_ticket = 0;
  state->next_job = state->end_job = 0;
  state->done = false;
  state->logit_rows.clear();
  state->jobs.clear();
  state->label_reads.clear();
  state->embedding_reads.clear();
  state->class_reads.clear();
  state->marker_reads.clear();
  state->action_reads.clear();
  state->question_reads.clear();
  state->state_reads.clear();
  state->pass.batch().Clear();
  int32_t num_rows = 0, num_draws = 0, num_reads = 0, num_logprobs = 0;
  ForEachRow(plan, [&](const PlanRow& row) {
    ++num_rows;
    num_draws += static_cast<int32_t>(row.draws.size());
    num_reads += row.read != nullptr;
    num_logprobs += !row.prompt_logprobs.tokens.empty();
  });
  SKEIN_CHECK(num_rows == 1 || !kv_->layout().contiguous);
  state->results.draws.resize(num_draws);
  state->results.reads.resize(num_reads);
  state->results.prompt_logprobs.resize(num_logprobs);
  RowCounts counts;
  ForEachRow(plan, [&](const PlanRow& row) { AddRow(row, &counts, *state); });
  state->pass.Begin();
  return std::make_unique<CpuTask>(&pool, std::move(state));
}

// Returns the number of the row of logits. `seen`: what the observer is told; null: nothing.
int32_t CpuExecutor::AddLogits(int32_t token, const PlanRow* seen, State& state) {
  state.pass.batch().logit_tokens.push_back(token);
  state.logit_rows.push_back(seen);
  return static_cast<int32_t>(state.logit_rows.size()) - 1;
}

// Adds a row to the pass, and the jobs of its logits.
void CpuExecutor::AddRow(const PlanRow& row, RowCounts* counts, State& state) {
  ForwardBatch& batch = state.pass.batch();
  const int32_t origin = batch.num_tokens() - row.begin;  // the token of position 0
  batch.AddRow(row.tokens, row.begin, kv_->BlocksOf(row.block_table), false);
  batch.rows.back().fork = {row.fork.from, row.fork.num_tokens};
  batch.rows.back().state = StateOf(row.state);
  batch.rows.back().adapter = row.adapter_id;
  batch.rows.back().second_segment_begin = row.second_segment_begin;
  const int32_t last_token = batch.num_tokens() - 1;
  const PromptLogprobsRange& range = row.prompt_logprobs;
  if (!range.tokens.empty()) {
    const auto count = static_cast<int32_t>(range.tokens.size());
    state.results.prompt_logprobs[counts->logprobs].logprobs.resize(count);
    for (int32_t i = 0; i < count; ++i) {
      // The token before position p predicts it.
      const int32_t token = origin + range.begin + i - 1;
      state.jobs.push_back({.logit_row = AddLogits(token, nullptr, state),
                            .result = counts->logprobs,
                            .logprobs = &range,
                            .logprob = i});
    }
    ++counts->logprobs;
  }
  if (!row.draws.empty()) {
    const int32_t logit_row = AddLogits(last_token, &row, state);
    for (const DrawSpec& draw : row.draws) {
      state.jobs.push_back({.logit_row = logit_row, .result = counts->draws++, .draw = &draw});
    }
  }
  if (row.read != nullptr) AddRead(row, counts->reads++, state);
}

// Adds the output that the last row of the pass is read for: result number `read`.
void CpuExecutor::AddRead(const PlanRow& row, int32_t read, State& state) {
  ForwardBatch& batch = state.pass.batch();
  const auto row_index = static_cast<int32_t>(batch.rows.size()) - 1;
  const int32_t first_token = batch.rows.back().first_token;
  const int32_t last_token = batch.num_tokens() - 1;
  if (const auto* labels = std::get_if<LabelSpec>(row.read)) {
    if (labels->want_log_sum_exp) {
      state.jobs.push_back(
          {.logit_row = AddLogits(last_token, &row, state), .result = read, .labels = labels});
    } else {
      batch.label_outputs.push_back({last_token, labels->tokens});
      state.label_reads.push_back(read);
    }
  } else if (const auto* embed = std::get_if<EmbedSpec>(row.read)) {
    if (embed->all_tokens) {
      std::vector<float>& values = state.results.reads[read].values.values;
      values.clear();
      values.reserve(row.tokens.size() * context_.weights->config.hidden_size);
      for (int32_t token = first_token; token <= last_token; ++token) {
        batch.state_tokens.push_back(token);
        state.state_reads.push_back(read);
      }
    } else {
      batch.embedded_rows.push_back(row_index);
      state.embedding_reads.push_back(read);
    }
  } else if (const auto* decide = std::get_if<DecideSpec>(row.read)) {
    batch.rows.back().question_type = decide->question_type;
    batch.rows.back().option_bounds = decide->option_bounds;
    state.results.reads[read].values.values.clear();
    const auto first_marker = static_cast<int32_t>(batch.marker_tokens.size());
    for (const int32_t marker : decide->markers) {
      batch.marker_tokens.push_back(origin + marker);
      state.marker_reads.push_back(read);
    }
    if (context_.weights->config.decision.is_compact()) {
      const auto count = static_cast<int32_t>(decide->markers.size());
      batch.decided_rows.push_back({row_index, first_marker, count, origin + decide->summary});
      state.question_reads.push_back(read);
    } else {
      batch.action_rows.push_back(row_index);
      state.action_reads.push_back(read);
    }
  } else {
    batch.classified_rows.push_back(row_index);
    state.class_reads.push_back(read);
  }
}

TaskStatus CpuExecutor::Resume(Task& task, const std::atomic<bool>& preempt) {
  State& state = *static_cast<CpuTask&>(task).state;
  while (!RunToStop(state, preempt)) {
    // Otherwise the team stopped at random.
    if (preempt.load(std::memory_order_relaxed)) return TaskStatus::kPreempted;
  }
  return TaskStatus::kDone;
}

bool CpuExecutor::RunToStop(State& state, const std::atomic<bool>& preempt) {
  if (!RunCopies(state, preempt)) return false;
  while (!state.done) {
    if (!RunJobs(state, preempt)) return false;
    switch (state.pass.Run(&preempt, stop_at())) {
      case ForwardStatus::kStopped:
        return false;
      case ForwardStatus::kLogits:
        BeginJobs(state);
        break;
      case ForwardStatus::kOutputs:
        TakeOutputs(state);
        break;
      case ForwardStatus::kDone:
        Finish(state);
        break;
    }
  }
  return true;
}

StopAt CpuExecutor::stop_at() const {
  switch (granularity_) {
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

// Runs the tickets of an operator outside the pass. Returns the first ticket that was not issued.
int CpuExecutor::RunTickets(int first, int end, const ThreadTeam::TicketFn& fn,
                            const std::atomic<bool>& preempt) {
  const StopAt stop_at = this->stop_at();
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

// Takes the jobs whose logits the pass has ready.
void CpuExecutor::BeginJobs(State& state) {
  const int32_t end_row = state.pass.first_logit_row() + state.pass.num_logit_rows();
  if (observer_) {
    for (int32_t row = state.pass.first_logit_row(); row < end_row; ++row) {
      if (state.logit_rows[row] == nullptr) continue;
      observer_(*state.logit_rows[row], state.pass.logits(row - state.pass.first_logit_row()));
    }
  }
  while (state.end_job < static_cast<int>(state.jobs.size()) &&
         state.jobs[state.end_job].logit_row < end_row) {
    ++state.end_job;
  }
}

bool CpuExecutor::RunJobs(State& state, const std::atomic<bool>& preempt) {
  if (state.next_job == state.end_job) return true;
  const auto run = [this, &state](int job, int thread) { RunJob(state, job, thread); };
  state.next_job = RunTickets(state.next_job, state.end_job, run, preempt);
  return state.next_job == state.end_job;
}

void CpuExecutor::RunJob(State& state, int job, int thread) {
  State::Job& j = state.jobs[job];
  const float* logits = state.pass.logits(j.logit_row - state.pass.first_logit_row());
  if (j.draw != nullptr) {
    sampler_.Draw(*j.draw, logits, thread, &state.results.draws[j.result]);
  } else if (j.logprobs != nullptr) {
    PromptLogprob& logprob = state.results.prompt_logprobs[j.result].logprobs[j.logprob];
    logprob.position = j.logprobs->begin + j.logprob;
    j.finite = sampler_.Logprob(j.logprobs->tokens[j.logprob], j.logprobs->num_top, logits, thread,
                                &logprob);
  } else {
    ReadResult& read = state.results.reads[j.result];
    const int32_t vocab = context_.weights->config.vocab_size;
    const Kernels::Largest largest = context_.kernels->FindLargest(logits, vocab, nullptr);
    read.values.values.clear();
    for (const TokenId token : j.labels->tokens) read.values.values.push_back(logits[token]);
    read.values.log_sum_exp = largest.finite
                                  ? context_.kernels->LogSumExp(logits, largest.max, vocab)
                                  : std::numeric_limits<float>::quiet_NaN();
    read.finite = largest.finite;
  }
}

// Takes outputs other than logits that the pass has ready.
void CpuExecutor::TakeOutputs(State& state) {
  const OutputChunk& chunk = state.pass.chunk();
  const ModelWeights& weights = *context_.weights;
  const bool embeds = chunk.kind == OutputKind::kEmbedding;
  for (int32_t i = 0; i < chunk.count; ++i) {
    const int32_t index = chunk.first + i;
    float* output = state.pass.output(i);
    ReadResult* result = nullptr;
    if (chunk.kind == OutputKind::kMarkers) {
      result = &state.results.reads[state.marker_reads[index]];
      result->values.values.push_back(*output);
    } else if (chunk.kind == OutputKind::kActions) {
      result = &state.results.reads[state.action_reads[index]];
      std::vector<float>& values = result->values.values;
      AppendActionLogits(weights.decision, *context_.kernels, values, output, &values);
    } else if (chunk.kind == OutputKind::kQuestions) {
      result = &state.results.reads[state.question_reads[index]];
      const int32_t count = state.pass.batch().decided_rows[index].num_markers;
      result->values.values.assign(output, output + count);
    } else if (chunk.kind == OutputKind::kLabels) {
      result = &state.results.reads[state.label_reads[index]];
      result->values.values.clear();
      for (const int32_t label : state.pass.batch().label_outputs[index].labels) {
        result->values.values.push_back(output[label]);
      }
    } else if (chunk.kind == OutputKind::kStates) {
      result = &state.results.reads[state.state_reads[index]];
      auto& values = result->values.values;
      values.insert(values.end(), output, output + weights.config.hidden_size);
      const bool ends = index + 1 == std::ssize(state.state_reads) ||
                        state.state_reads[index + 1] != state.state_reads[index];
      if (!ends) continue;
    } else {
      const auto& reads = embeds ? state.embedding_reads : state.class_reads;
      result = &state.results.reads[reads[index]];
      const int32_t size = embeds ? weights.embedding_size() : weights.config.num_classes;
      result->values.values.assign(output, output + size);
    }
    result->values.log_sum_exp = 0;
    result->finite =
        std::ranges::all_of(result->values.values, [](float v) { return std::isfinite(v); });
  }
}

void CpuExecutor::Finish(State& state) {
  for (PromptLogprobsResult& result : state.results.prompt_logprobs) result.finite = true;
  for (const State::Job& job : state.jobs) {
    if (!job.finite) state.results.prompt_logprobs[job.result].finite = false;
  }
  state.done = true;
}

const StepResults& CpuExecutor::Results(const Task& task) const {
  const State& state = *static_cast<const CpuTask&>(task).state;
  SKEIN_CHECK(state.done);
  return state.results;
}

}  // namespace skein
