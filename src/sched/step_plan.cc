#include "sched/step_plan.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace skein {
namespace {

// Sets the reads of the sequence's row of `num_tokens` tokens.
void ReadFrom(Sequence* sequence, int32_t num_tokens) {
  const RequestRecord& request = *sequence->request;
  const bool last = num_tokens == sequence->num_remaining();
  sequence->read = last && !request.request.generates() ? &request.request.output : nullptr;
  sequence->prompt_logprobs = {};
  const int32_t first = request.next_prompt_logprob;
  // The row's last token predicts the token behind it.
  const int32_t end = std::min(sequence->num_computed + num_tokens + 1, request.prompt_len);
  if (first >= end) return;
  sequence->prompt_logprobs = {.begin = first,
                               .tokens = std::span(sequence->tokens).subspan(first, end - first),
                               .num_top = request.request.prompt_logprobs->num_top};
}

// Sets the draws of the sequence's row of `num_tokens` tokens.
void DrawFrom(Sequence* sequence, int32_t num_tokens) {
  const RequestRecord& request = *sequence->request;
  sequence->draws.clear();
  if (num_tokens < sequence->num_remaining() || request.budget == 0) return;
  DrawSpec draw = {.generate = &request.request.generate(),
                   .history = sequence->tokens,
                   .prompt_len = request.prompt_len};
  const auto add = [&](int32_t sample) {
    draw.sample = sample;
    if (!request.grammar_states.empty()) draw.grammar = request.grammar_states[sample].get();
    sequence->draws.push_back(draw);
  };
  if (request.forked) return add(sequence->sample);
  for (size_t sample = 0; sample < request.live.size(); ++sample) {
    if (request.live[sample]) add(static_cast<int32_t>(sample));
  }
}

PlanRow MakePrefixRow(const StepRow& row) {
  const std::span<const BlockId> table = row.blocks().table();
  const auto num_blocks = static_cast<size_t>(BlocksFor(row.begin() + row.num_tokens));
  SKEIN_CHECK(table.size() >= num_blocks);
  return {.sequence = row.prefix->id,
          .begin = row.begin(),
          .tokens = row.tokens().subspan(row.begin(), row.num_tokens),
          .block_table = table.first(num_blocks),
          .state = row.blocks().row_state(),
          .adapter_id = row.blocks().hashes().scope().adapter_id};
}

PlanRow MakeRow(const StepRow& row) {
  if (row.prefix != nullptr) return MakePrefixRow(row);
  const std::span<const BlockId> table = row.blocks().table();
  const auto num_blocks = static_cast<size_t>(BlocksFor(row.begin() + row.num_tokens));
  Sequence* sequence = row.sequence;
  SKEIN_CHECK(table.size() >= num_blocks || (sequence->oneshot() && row.finishes()));
  sequence->in_step = true;
  ReadFrom(sequence, row.num_tokens);
  DrawFrom(sequence, row.num_tokens);
  PlanRow plan_row = {.sequence = sequence->id(),
                      .begin = row.begin(),
                      .tokens = row.tokens().subspan(row.begin(), row.num_tokens),
                      .block_table = table.first(std::min(num_blocks, table.size())),
                      .draws = sequence->draws,
                      .read = sequence->read,
                      .prompt_logprobs = sequence->prompt_logprobs};
  if (const SharedPrefix* prefix = sequence->shared_prefix; prefix != nullptr) {
    plan_row.parent = prefix->id;
    const int32_t tail = plan_row.begin % kBlockTokens;
    const int32_t block = plan_row.begin / kBlockTokens;
    if (tail > 0) plan_row.fork = {prefix->blocks.table()[block], tail};
  }
  plan_row.state = sequence->blocks.row_state();
  plan_row.adapter_id = sequence->request->request.adapter_id;
  plan_row.second_segment_begin =
      sequence->request->request.second_segment_begin.value_or(std::numeric_limits<int32_t>::max());
  plan_row.num_attended =
      sequence->request->request.num_attended.value_or(std::numeric_limits<int32_t>::max());
  return plan_row;
}

// Replaces `*copies` and `*rows` by those of the decodes.
void WriteDecodes(std::span<const StepRow> decodes, std::vector<BlockCopy>* copies,
                  std::vector<PlanRow>* rows) {
  copies->clear();
  rows->clear();
  for (const StepRow& row : decodes) {
    const SequenceBlocks& blocks = row.sequence->blocks;
    if (blocks.has_pending_copy()) copies->push_back(blocks.pending_copy());
    rows->push_back(MakeRow(row));
  }
}

void WritePrefills(std::span<const StepRow> prefills, std::vector<PlanRow>* rows) {
  rows->clear();
  for (const StepRow& row : prefills) rows->push_back(MakeRow(row));
}

}  // namespace

const StepPlan* WritePlan(Step* step, BlockManager* blocks) {
  StepPlans& plans = *step->plans;
  if (step->prefills.empty()) {
    auto& plan = std::get<DecodePlan>(plans.decode);
    blocks->TakeHostCopies(&plan.host_copies);
    WriteDecodes(step->decodes, &plan.copies, &plan.rows);
    return &plans.decode;
  }
  const bool all_oneshot = std::ranges::all_of(step->prefills, [](const StepRow& row) {
    return row.finishes() && (row.prefix != nullptr || row.sequence->oneshot());
  });
  if (step->decodes.empty() && all_oneshot) {
    auto& plan = std::get<OneShotPlan>(plans.oneshot);
    blocks->TakeHostCopies(&plan.host_copies);
    WritePrefills(step->prefills, &plan.rows);
    return &plans.oneshot;
  }
  auto& plan = std::get<MixedPlan>(plans.mixed);
  blocks->TakeHostCopies(&plan.host_copies);
  WritePrefills(step->prefills, &plan.prefills);
  WriteDecodes(step->decodes, &plan.copies, &plan.decodes);
  return &plans.mixed;
}

}  // namespace skein
