#include "sim/sim_executor.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace skein {
namespace {

struct SimTask final : public Task {
  TimeUs duration_us = 0;
  TimeUs ran_us = 0;
  StepResults results;
};

// A token that does not end the output: it is not a stop token and, if the output is one of a few
// choices, it completes no choice.
TokenId TokenOf(const DrawSpec& draw, SequenceId sequence, int32_t vocab_size) {
  const GenerateSpec& generate = *draw.generate;
  const auto output = draw.history.subspan(draw.prompt_len);
  for (const std::vector<TokenId>& choice : generate.choices) {
    if (GoesOn(choice, output)) return choice[output.size()];
  }
  const auto position = static_cast<uint64_t>(draw.history.size());
  for (uint64_t attempt = 0;; ++attempt) {
    const uint64_t bits =
        RandomBitsAt(sequence, static_cast<uint64_t>(draw.sample) + attempt * 977, position);
    const auto token = static_cast<TokenId>(bits % static_cast<uint64_t>(vocab_size));
    const bool stops =
        std::ranges::find(generate.stop_token_ids, token) != generate.stop_token_ids.end();
    if (!stops || attempt > 100) return token;
  }
}

}  // namespace

SimExecutor::SimExecutor(StepCost cost, VirtualClock* clock, int32_t vocab_size)
    : cost_(std::move(cost)), clock_(clock), vocab_size_(vocab_size) {}

std::unique_ptr<Task> SimExecutor::Begin(const StepPlan& plan) {
  auto task = std::make_unique<SimTask>();
  const KvReads reads = CountKvReads(DecodesOf(plan));
  kv_reads_.Add(reads);
  task->duration_us = round_us_ + std::max<TimeUs>(1, std::llround(cost_.StepUs(plan, reads)));
  const auto add = [&](const std::vector<PlanRow>& rows) {
    for (const PlanRow& row : rows) AddResults(row, &task->results);
  };
  if (const auto* oneshot = std::get_if<OneShotPlan>(&plan)) add(oneshot->rows);
  if (const auto* decode = std::get_if<DecodePlan>(&plan)) add(decode->rows);
  if (const auto* mixed = std::get_if<MixedPlan>(&plan)) {
    add(mixed->prefills);
    add(mixed->decodes);
  }
  return task;
}

void SimExecutor::AddResults(const PlanRow& row, StepResults* results) const {
  for (const DrawSpec& draw : row.draws) {
    const TokenId token = TokenOf(draw, row.sequence, vocab_size_);
    results->draws.push_back({.token = {.token = token, .chosen = {.token = token}}});
  }
  if (row.read != nullptr) {
    const auto* labels = std::get_if<LabelSpec>(row.read);
    ReadResult& read = results->reads.emplace_back();
    read.values.values.resize(labels != nullptr ? labels->tokens.size() : 1);
  }
  if (row.prompt_logprobs.tokens.empty()) return;
  auto& logprobs = results->prompt_logprobs.emplace_back().logprobs;
  int32_t position = row.prompt_logprobs.begin;
  for (const TokenId token : row.prompt_logprobs.tokens) {
    logprobs.push_back({.position = position++, .chosen = {.token = token}});
  }
}

// The time from one boundary of a step to the next; 0 if the step has no boundaries.
TimeUs SimExecutor::BoundaryUs(TimeUs duration_us) const {
  if (!StopsSteps(granularity_)) return 0;
  int64_t parts = cost_.num_layers();
  if (granularity_ != Granularity::kLayer) parts *= kOperatorsPerLayer;
  const TimeUs part_us = std::max<TimeUs>(1, duration_us / parts);
  return granularity_ == Granularity::kOpTile ? std::min(part_us, kTicketUs) : part_us;
}

TaskStatus SimExecutor::Resume(Task& task, const std::atomic<bool>& /*preempt*/) {
  auto& state = static_cast<SimTask&>(task);
  const TimeUs now_us = clock_->NowUs();
  TimeUs run_us = state.duration_us - state.ran_us;
  const TimeUs boundary_us = BoundaryUs(state.duration_us);
  if (boundary_us > 0 && next_signal_us_ < now_us + run_us) {
    const TimeUs until_us = state.ran_us + std::max<TimeUs>(0, next_signal_us_ - now_us);
    const TimeUs stop_us = (until_us + boundary_us - 1) / boundary_us * boundary_us;
    run_us = std::min(run_us, stop_us - state.ran_us);
  }
  clock_->AdvanceTo(now_us + run_us);
  state.ran_us += run_us;
  return state.ran_us == state.duration_us ? TaskStatus::kDone : TaskStatus::kPreempted;
}

const StepResults& SimExecutor::Results(const Task& task) const {
  return static_cast<const SimTask&>(task).results;
}

}  // namespace skein
