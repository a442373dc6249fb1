// The planning half of Scheduler: who runs in the next step.

#include <algorithm>

#include "base/check.h"
#include "sched/scheduler.h"

namespace skein {

const StepPlan* Scheduler::Plan(TimeUs now_us) {
  SKEIN_CHECK(!in_flight_);
  step_prefills_.clear();
  step_decodes_.clear();
  preempted_in_round_ = false;
  tokens_left_ = config_.max_num_batched_tokens;
  if (config_.sharing == Sharing::kChunked) {
    PlanDecodes();
    PlanPrefills(now_us);
  } else {
    PlanPrefills(now_us);
    if (step_prefills_.empty()) PlanDecodes();
  }
  if (step_prefills_.empty() && step_decodes_.empty()) {
    SKEIN_CHECK(running_.empty() && waiting_.empty());
    return nullptr;
  }
  const StepPlan* plan = BuildPlan();
  in_flight_ = true;
  for (SchedulerObserver* observer : observers_) observer->OnPlan(iteration_, *plan, now_us);
  ++iteration_;
  return plan;
}

void Scheduler::PlanDecodes() {
  // Only the tail of running_ shrinks meanwhile: elders never lose their blocks to the young.
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence* sequence = running_[i];
    if (sequence->state != SequenceState::kDecoding || !FindDecodeBlock(sequence)) continue;
    step_decodes_.push_back({sequence, 1});
    --tokens_left_;
  }
  if (!step_decodes_.empty()) {
    batch_open_ = false;
    stats_.wasted_decode_slots += batch_slots_idle_;
  }
}

bool Scheduler::FindDecodeBlock(Sequence* sequence) {
  while (!sequence->blocks.Grow(&blocks_, sequence->num_computed + 1)) {
    Sequence* youngest = running_.back();
    Preempt(youngest);
    if (youngest == sequence) return false;
  }
  return true;
}

void Scheduler::Preempt(Sequence* sequence) {
  SKEIN_CHECK(sequence == running_.back() && !sequence->in_step);
  running_.pop_back();
  sequence->blocks.Release(&blocks_);
  sequence->num_computed = 0;
  slots_used_ -= sequence->num_slots;
  sequence->num_slots = 0;
  sequence->state = SequenceState::kPreempted;
  waiting_.Insert(sequence);
  ++stats_.num_preemptions;
  preempted_in_round_ = true;
}

void Scheduler::PlanPrefills(TimeUs now_us) {
  for (Sequence* sequence : running_) {
    if (sequence->state == SequenceState::kPrefilling) PlanChunk(sequence);
  }
  // Blocks that a decode has just won from the youngest are not given away again.
  if (!preempted_in_round_) AdmitWaiting(now_us);
}

void Scheduler::AdmitWaiting(TimeUs now_us) {
  bool want_oneshot = true;
  bool want_decode = true;
  while (tokens_left_ > 0) {
    Sequence* head = waiting_.Head(want_oneshot, want_decode);
    if (head == nullptr || !MayJoin(*head)) return;
    if (head->slots_needed() > config_.max_num_seqs - slots_used_) {
      want_decode = false;
    } else if (!CompatibleWithStep(*head)) {
      want_oneshot = false;
    } else if (head->request->whole && head->num_remaining() > tokens_left_) {
      return;  // the next step has room for it
    } else if (!Admit(head, now_us) || !PlanChunk(head)) {
      return;
    }
  }
}

bool Scheduler::MayJoin(const Sequence& sequence) const {
  if (config_.decode_set == DecodeSet::kFill) return true;
  if (sequence.state == SequenceState::kPreempted) return true;
  const int32_t size = std::max(1, sequence.slots_needed());
  return batch_open_ && batch_size_ + size <= config_.max_num_seqs;
}

bool Scheduler::Admit(Sequence* sequence, TimeUs now_us) {
  RequestRecord* request = sequence->request;
  sequence->blocks.Hash(blocks_.prefix_caching() ? std::span<const TokenId>(sequence->tokens)
                                                 : std::span<const TokenId>());
  const int32_t num_cached =
      sequence->blocks.Attach(&blocks_, sequence->tokens, sequence->max_cached_tokens());
  if (num_cached < 0) return false;
  waiting_.Erase(sequence);
  const bool fresh = sequence->state == SequenceState::kWaiting;
  sequence->state = SequenceState::kPrefilling;
  sequence->num_computed = num_cached;
  sequence->num_slots = sequence->slots_needed();
  slots_used_ += sequence->num_slots;
  stats_.decode_slots_taken += sequence->num_slots;
  InsertRunning(sequence);
  if (!fresh) return true;
  batch_size_ += std::max(1, sequence->num_slots);
  request->scheduled = true;
  request->times.first_scheduled_us = now_us;
  request->cached_tokens = num_cached;
  if (blocks_.prefix_caching() && !request->whole) {
    stats_.prefix_cache_queries += request->prompt_len;
    stats_.prefix_cache_hits += num_cached;
  }
  return true;
}

bool Scheduler::CompatibleWithStep(const Sequence& sequence) const {
  if (!sequence.oneshot()) return true;
  for (const StepRow& row : step_prefills_) {
    if (!row.sequence->oneshot()) continue;
    return row.sequence->request->request.adapter_id == sequence.request->request.adapter_id;
  }
  return true;
}

bool Scheduler::PlanChunk(Sequence* sequence) {
  if (tokens_left_ == 0 || !CompatibleWithStep(*sequence)) return false;
  const int32_t num_tokens = std::min(sequence->num_remaining(), tokens_left_);
  const bool split = num_tokens < sequence->num_remaining();
  if (config_.sharing == Sharing::kWhole && split && !step_prefills_.empty()) return false;
  step_prefills_.push_back({sequence, num_tokens});
  tokens_left_ -= num_tokens;
  return true;
}

PlanRow Scheduler::MakeRow(const StepRow& row) {
  Sequence& sequence = *row.sequence;
  const RequestRecord& request = *sequence.request;
  const bool last = row.num_tokens == sequence.num_remaining();
  const int32_t end = sequence.num_computed + row.num_tokens;
  sequence.in_step = true;
  sequence.read = last && !request.request.generates() ? &request.request.output : nullptr;
  sequence.prompt_logprobs = {};
  const int32_t end_logprob = std::min(end + 1, request.prompt_len);
  if (request.next_prompt_logprob < end_logprob) {
    const int32_t first = request.next_prompt_logprob;
    sequence.prompt_logprobs = {
        .begin = first,
        .tokens = std::span(sequence.tokens).subspan(first, end_logprob - first),
        .num_top = request.request.prompt_logprobs->num_top};
  }
  sequence.draws.clear();
  if (last && request.budget > 0) {
    DrawSpec draw = {.generate = &request.request.generate(),
                     .sample = sequence.sample,
                     .history = sequence.tokens,
                     .prompt_len = request.prompt_len};
    if (request.forked) {
      sequence.draws.push_back(draw);
    } else {
      for (size_t sample = 0; sample < request.live.size(); ++sample) {
        draw.sample = static_cast<int32_t>(sample);
        if (request.live[sample]) sequence.draws.push_back(draw);
      }
    }
  }
  return {.sequence = sequence.id(),
          .begin = sequence.num_computed,
          .tokens = std::span(sequence.tokens).subspan(sequence.num_computed, row.num_tokens),
          .block_table = sequence.blocks.table().first(BlocksFor(end)),
          .draws = sequence.draws,
          .read = sequence.read,
          .prompt_logprobs = sequence.prompt_logprobs,
          .second_segment_begin = sequence.request->request.second_segment_begin.value_or(
              std::numeric_limits<int32_t>::max())};
}

const StepPlan* Scheduler::BuildPlan() {
  const int32_t num_tokens = config_.max_num_batched_tokens - tokens_left_;
  stats_.iteration_tokens_sum += num_tokens;
  const auto& bounds = EngineStats::kIterationTokenBounds;
  const auto bound = std::lower_bound(bounds.begin(), bounds.end(), num_tokens);
  ++stats_.iteration_tokens[bound - bounds.begin()];

  if (step_prefills_.empty()) {
    ++stats_.steps_decode;
    auto& plan = std::get<DecodePlan>(decode_plan_);
    plan.copies.clear();
    plan.rows.clear();
    for (const StepRow& row : step_decodes_) {
      if (row.sequence->blocks.has_pending_copy()) {
        plan.copies.push_back(row.sequence->blocks.pending_copy());
      }
      plan.rows.push_back(MakeRow(row));
    }
    return &decode_plan_;
  }
  const bool all_oneshot = std::ranges::all_of(step_prefills_, [](const StepRow& row) {
    return row.sequence->oneshot() && row.num_tokens == row.sequence->num_remaining();
  });
  if (step_decodes_.empty() && all_oneshot) {
    ++stats_.steps_oneshot;
    auto& plan = std::get<OneShotPlan>(oneshot_plan_);
    plan.rows.clear();
    for (const StepRow& row : step_prefills_) plan.rows.push_back(MakeRow(row));
    return &oneshot_plan_;
  }
  ++stats_.steps_mixed;
  auto& plan = std::get<MixedPlan>(mixed_plan_);
  plan.copies.clear();
  plan.prefills.clear();
  plan.decodes.clear();
  for (const StepRow& row : step_prefills_) plan.prefills.push_back(MakeRow(row));
  for (const StepRow& row : step_decodes_) {
    if (row.sequence->blocks.has_pending_copy()) {
      plan.copies.push_back(row.sequence->blocks.pending_copy());
    }
    plan.decodes.push_back(MakeRow(row));
  }
  return &mixed_plan_;
}

}  // namespace skein
