// The planning half of Scheduler: who runs in the next step.

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "sched/scheduler.h"

namespace skein {

const StepPlan* Scheduler::Plan(TimeUs now_us) {
  step_.Begin(now_us);
  planned_us_ = now_us;
  preempted_in_round_ = false;
  reserved_for_ = nullptr;
  batch_.reset();
  walked_to_.reset();
  tokens_left_ = config_.max_num_batched_tokens;
  own_blocks_left_ =
      StepBoundsOf(config_.retention, config_.max_model_len, config_.max_num_batched_tokens)
          .max_own_blocks;
  Recalibrate();
  FollowMoments(now_us);
  if (config_.order == Order::kDfsWeight) OrderDepthFirst();
  const Step* mixed = SuspendedMixed();
  if (mixed != nullptr && mixed->id != step_id_) return ResumeStep(mixed, now_us);
  const int32_t mixed_tokens = MixedTokens(now_us);
  if (mixed_tokens > 0 || !PlanDueDecodes(now_us)) {
    const Step* suspended = FirstSuspended(now_us);
    const Step* goes_on = mixed != nullptr ? mixed : suspended;
    bound_.reset();
    if (suspended != nullptr) {
      bound_ = KeyOf(*suspended, now_us);
      if (!Yields(*bound_)) {
        if (flock_) flock_->EndRound();
        return ResumeStep(goes_on, now_us);
      }
    }
    ReclaimForDecodes();
    if (config_.sharing != Sharing::kWhole) PlanDecodes(mixed_tokens > 0);
    if (mixed_tokens > 0) tokens_left_ = std::min(tokens_left_, mixed_tokens);
    const Sequence* prompt = mixed != nullptr ? NextPrompt() : nullptr;  // it makes way for one
    if (prompt != nullptr) tokens_left_ = std::min(tokens_left_, NumMissingNow(*prompt));
    PlanPrefills(now_us);
    if (bound_ && step_.prefills.empty()) {  // what is more urgent cannot begin after all
      step_.decodes.clear();
      if (mixed_tokens == 0 || !PlanDueDecodes(now_us)) {
        if (flock_) flock_->EndRound();
        return ResumeStep(goes_on, now_us);
      }
    }
    if (step_.prefills.empty() && config_.sharing != Sharing::kChunked) {
      tokens_left_ += static_cast<int32_t>(step_.decodes.size());
      step_.decodes.clear();
      PlanDecodes(true);
    }
  }
  if (flock_) flock_->EndRound();
  if (step_.prefills.empty() && step_.decodes.empty()) {
    SKEIN_CHECK(running_.empty() && waiting_.empty());
    return nullptr;
  }
  BoundSuspended(now_us);
  step_.was_suspended_us = SuspendedBefore();
  step_.plan = BuildPlan();
  step_.state = StepState::kInFlight;
  if (cost_.known()) step_.work = WorkOf(*step_.plan);
  const bool one_row = step_.decodes.empty() && step_.prefills.size() == 1;
  const Sequence* sole = one_row ? step_.prefills[0].sequence : nullptr;
  if (sole != std::exchange(sole_, sole)) sole_since_ = iteration_;
  HoldRanks();
  for (SchedulerObserver* observer : observers_) observer->OnPlan(iteration_, *step_.plan, now_us);
  step_id_ = step_.id = iteration_++;
  return step_.plan;
}

// All, or those only that may share a step with prefills.
void Scheduler::PlanDecodes(bool all) {
  // Only what follows shrinks meanwhile: elders never lose their blocks to the young.
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence* sequence = running_[i];
    if (sequence->state != SequenceState::kDecoding || sequence->in_step) continue;
    if (!all && TakesOwnSteps(*sequence)) continue;
    if (!FindDecodeBlock(sequence)) continue;
    step_.decodes.push_back({sequence, 1});
    --tokens_left_;
  }
  if (!step_.decodes.empty()) batch_open_ = false;
}

bool Scheduler::FindDecodeBlock(Sequence* sequence) {
  while (!sequence->blocks.Grow(&blocks_, sequence->num_computed + 1)) {
    const auto is_free = [](const Sequence* s) { return !s->in_step; };  // of suspended steps
    Sequence* youngest = *std::find_if(running_.rbegin(), running_.rend(), is_free);
    Preempt(youngest);
    preempted_in_round_ = true;
    if (youngest == sequence) return false;
  }
  return true;
}

void Scheduler::Preempt(Sequence* sequence) {
  SKEIN_CHECK(!sequence->in_step);
  running_.erase(std::ranges::find(running_, sequence));
  LeaveTrunk(sequence);
  sequence->blocks.Release(&blocks_);
  sequence->num_computed = 0;
  slots_used_ -= sequence->num_slots;
  sequence->num_slots = 0;
  sequence->state = SequenceState::kPreempted;
  if (OrdersByDeadline() && !sequence->request->forked) {
    Reorder(sequence, NumCachedNow(*sequence), planned_us_);
  }
  EnterWaiting(sequence);
  ++stats_.num_preemptions;
}

// Of what OneShot work holds from step to step, gives up one piece: a trunk, or the youngest prompt
// of which a part is computed. What is full of it stays in the prefix cache as long as it can.
bool Scheduler::ReclaimOneShot() {
  if (ReclaimTrunk(nullptr)) return true;
  const auto youngest = std::find_if(running_.rbegin(), running_.rend(), [](const Sequence* s) {
    return s->oneshot() && s->state == SequenceState::kPrefilling && !s->in_step;
  });
  if (youngest == running_.rend()) return false;
  Preempt(*youngest);
  return true;
}

void Scheduler::ReclaimForDecodes() {
  int32_t num_needed = 0;
  int32_t num_reclaimable = 0;
  for (const auto& trunk : trunks_) {
    num_reclaimable += static_cast<int32_t>(trunk->blocks.table().size());
  }
  for (const Sequence* sequence : running_) {
    if (sequence->in_step) continue;
    const auto num_blocks = static_cast<int32_t>(sequence->blocks.table().size());
    if (sequence->state == SequenceState::kDecoding) {
      num_needed += BlocksFor(sequence->num_computed + 1) > num_blocks;
    } else if (sequence->oneshot()) {
      num_reclaimable += num_blocks;
    }
  }
  if (num_reclaimable == 0) return;
  const Sequence* next = ExpectedDecode();
  if (next != nullptr && MayJoin(*next) && next->slots_needed() <= NumFreeSlots()) {
    const int32_t with_next = num_needed + NeedOf(*next).num_blocks + ExpressReserve();
    const int32_t num_available = blocks_.num_available();
    const bool lacks = with_next > num_available;
    if (lacks && WillJoin(*next, with_next, num_available + num_reclaimable)) {
      num_needed = with_next;
    }
  }
  while (blocks_.num_available() < num_needed && ReclaimOneShot()) {
  }
}

// Blocks that OneShot work must leave for the next Decode request, which could run now.
int32_t Scheduler::DecodeReserve() {
  if (config_.contiguous_kv) return 0;  // one after the other, in order
  const Sequence* next = ExpectedDecode();
  if (next == nullptr || !MayJoin(*next) || preempted_in_round_) return 0;
  if (next->slots_needed() > NumFreeSlots()) return 0;
  if (next != reserved_for_) {
    reserved_for_ = next;
    num_reserved_ = NeedOf(*next).num_blocks;
  }
  const int32_t num_needed = num_reserved_ + ExpressReserve();
  return WillJoin(*next, num_needed, blocks_.num_available()) ? num_reserved_ : 0;
}

void Scheduler::EnterWaiting(Sequence* sequence) {
  waiting_.Insert(sequence);
  if (IsWatched(*sequence)) watch_.Insert(sequence, blocks_);
}

void Scheduler::LeaveWaiting(Sequence* sequence) {
  waiting_.Erase(sequence);
  watch_.Erase(sequence);
}

void Scheduler::PlanPrefills(TimeUs now_us) {
  PlanBegun(now_us);
  // Blocks that a decode has just won from the youngest are not given away again.
  if (preempted_in_round_) return;
  AdmitWaiting(now_us, bound_);
  for (Sequence* sequence : deferred_) waiting_.Insert(sequence);
  deferred_.clear();
}

// Prompts of which a part is computed; where urgent work goes before them, that too.
void Scheduler::PlanBegun(TimeUs now_us) {
  begun_.clear();
  for (Sequence* sequence : running_) {
    if (sequence->state == SequenceState::kPrefilling && !sequence->in_step) {
      begun_.push_back(sequence);
    }
  }
  for (Sequence* sequence : begun_) {
    if (bound_ && !(sequence->key() < *bound_)) break;
    if (PrefersUrgentToBegun() && !preempted_in_round_) AdmitWaiting(now_us, sequence->key());
    if (TakesNoMoreBegun()) break;
    PlanChunk(sequence);
  }
}

// The next that may join the head of the step: SLO-aware batching takes only requests that wait.
// Where a flock chooses, the best companion that fits stands for its class (but see GoesByOrder).
Sequence* Scheduler::NextOfBatch(bool want_oneshot, bool want_decode,
                                 const std::optional<SequenceKey>& bound) {
  int64_t num_tokens = 0;
  for (const StepRow& row : step_.prefills) num_tokens += row.num_tokens;
  if (!batch_) {
    const auto head = std::ranges::find(step_.prefills, nullptr, &StepRow::trunk);
    if (head == step_.prefills.end()) return nullptr;
    batch_ =
        SloBatch{.fit = cost_.fit(),
                 .left_us = static_cast<double>(head->sequence->request->deadline_us - planned_us_),
                 .token_budget = config_.slo_batch_tokens,
                 .num_head_tokens = num_tokens};
    for (const StepRow& row : step_.prefills) batch_->head += WorkOf(row.num_tokens, row.begin());
  }
  const auto max_tokens = static_cast<int32_t>(
      std::min<int64_t>(batch_->MaxTokens(num_tokens - batch_->num_head_tokens), tokens_left_));
  if (max_tokens < 1) return nullptr;
  Sequence* next = waiting_.NextFitting(walked_to_ ? &*walked_to_ : nullptr, max_tokens,
                                        want_oneshot, want_decode && !flock_);
  if (!flock_) return next;
  // Null too where a preempted one waits, before which none of its class goes.
  Sequence* decode = waiting_.NextFitting(nullptr, max_tokens, false, want_decode);
  if (decode != nullptr && !GoesByOrder(*decode)) decode = NextOfFlock(max_tokens, bound);
  if (decode == nullptr || next == nullptr) return decode != nullptr ? decode : next;
  return decode->key() < next->key() ? decode : next;
}

// Those before `bound`, where there is one.
void Scheduler::AdmitWaiting(TimeUs now_us, const std::optional<SequenceKey>& bound) {
  bool want_oneshot = true;
  bool want_decode = true;
  while (tokens_left_ > 0 && !StepIsFull()) {
    const bool batched = config_.batching == Batching::kSloAware && !step_.prefills.empty();
    Sequence* head = batched ? NextOfBatch(want_oneshot, want_decode, bound)
                             : NextHead(want_oneshot, want_decode, bound);
    if (head == nullptr || !MayJoin(*head)) return;
    if (bound && !(head->key() < *bound)) return;
    if (config_.batching == Batching::kSaturate && !step_.prefills.empty() &&
        !StaysBelowSaturation(*head)) {
      return;
    }
    // Not the flock's choice: what the order has before that one has not been considered.
    if (!flock_ || head->oneshot()) walked_to_ = head->key();
    if (head->slots_needed() > NumFreeSlots()) {
      want_decode = false;
    } else if (!CompatibleWithStep(*head)) {
      want_oneshot = false;
    } else {
      switch (PlanHead(head, now_us)) {
        case Planned::kYes:
          // Its blocks may have come from the cache.
          if (Calibrates()) Recalibrate();
          break;
        case Planned::kLater:
          waiting_.Erase(head);
          deferred_.push_back(head);
          if (flock_ && !head->oneshot()) flock_->SetAside(*head->request, planned_us_);
          break;
        case Planned::kNoBlocks:
          // Only Decode work for which blocks are reserved passes by OneShot work.
          if (head->oneshot() ? DecodeReserve() == 0 : !config_.forests) return;
          (head->oneshot() ? want_oneshot : want_decode) = false;
          break;
        case Planned::kNoTokens:
          return;
      }
    }
  }
}

Scheduler::Planned Scheduler::PlanHead(Sequence* head, TimeUs now_us) {
  // The next step has room for it.
  if (RunsInOneStep(*head) && !HasRoomFor(*head)) return Planned::kNoTokens;
  if (config_.forests && head->state == SequenceState::kWaiting && head->request->shares_prefix) {
    if (head->trunk == nullptr && head->oneshot()) JoinTrunk(head);
    if (head->trunk != nullptr && head->trunk->suspended) return Planned::kLater;
    if (head->trunk == nullptr && WaitsForPrefix(head, now_us)) return Planned::kLater;
    if (head->trunk == nullptr && head->oneshot()) FormTrunk(head);
    if (head->trunk != nullptr && !PlanTrunk(head->trunk)) return Planned::kNoTokens;
    if (tokens_left_ == 0) return Planned::kNoTokens;
  }
  if (!Admit(head, now_us)) return Planned::kNoBlocks;
  return PlanChunk(head) ? Planned::kYes : Planned::kNoTokens;
}

bool Scheduler::MayJoin(const Sequence& sequence) const {
  if (config_.contiguous_kv && !running_.empty()) return false;
  if (config_.decode_set != DecodeSet::kStatic) return true;
  if (sequence.state == SequenceState::kPreempted) return true;
  const int32_t size = std::max(1, sequence.slots_needed());
  return batch_open_ && batch_size_ + size <= config_.max_num_seqs;
}

// Tokens of a waiting request's prompt that are neither cached nor its trunk's.
int32_t Scheduler::NumMissing(const Sequence& sequence) const {
  const int32_t num_shared = sequence.trunk != nullptr ? sequence.trunk->length() : 0;
  return sequence.num_remaining() - std::max(NeedOf(sequence).num_cached, num_shared);
}

// Whether the step takes the whole of a prompt that runs in one. A step without other prompts takes
// any whose keys and values are not all kept.
bool Scheduler::HasRoomFor(const Sequence& sequence) const {
  if (DiscardsKv(sequence) && step_.prefills.empty()) return true;
  const int32_t num_tokens = NumMissing(sequence);
  if (num_tokens > tokens_left_) return false;
  // The first and the last may be parts of blocks.
  return !DiscardsKv(sequence) || BlocksFor(num_tokens) + 1 <= own_blocks_left_;
}

SequenceBlocks::Hold Scheduler::HoldOf(const Sequence& sequence) const {
  const auto num_tokens = static_cast<int32_t>(sequence.tokens.size());
  if (!DiscardsKv(sequence)) return {.num_blocks = BlocksFor(num_tokens)};
  const bool keeps =
      config_.retention != Retention::kNone && blocks_.prefix_caching() && !sequence.request->whole;
  // Nobody can attach a block that is not full.
  const int32_t num_full = num_tokens / kBlockTokens;
  SequenceBlocks::Hold hold = {.num_blocks = keeps ? num_full : 0, .or_fewer = true};
  if (keeps && recent_) hold.num_worthy = recent_->NumShared(sequence.blocks.hashes(), num_full);
  return hold;
}

// Gives the sequence its blocks: under its trunk, or else what is cached and the rest.
bool Scheduler::AttachBlocks(Sequence* sequence) {
  const int32_t num_reserved = ExpressReserve() + (sequence->oneshot() ? DecodeReserve() : 0);
  if (Trunk* trunk = sequence->trunk; trunk != nullptr) {
    if (!sequence->blocks.AttachTo(&blocks_, trunk->blocks, trunk->length(), HoldOf(*sequence),
                                   num_reserved)) {
      return false;
    }
    sequence->num_computed = trunk->length();
    trunk->in_step = true;
    sequence->on_trunk = true;
    ++trunk->num_admitted;
    stats_.shared_prefix_tokens += trunk->length() - trunk->num_cached;
    return true;
  }
  sequence->blocks.Hash(blocks_.prefix_caching() ? std::span<const TokenId>(sequence->tokens)
                                                 : std::span<const TokenId>());
  const int32_t num_cached = sequence->blocks.Attach(
      &blocks_, sequence->tokens, sequence->max_cached_tokens(), HoldOf(*sequence), num_reserved);
  if (num_cached < 0) return false;
  sequence->num_computed = num_cached;
  return true;
}

bool Scheduler::Admit(Sequence* sequence, TimeUs now_us) {
  while (!AttachBlocks(sequence)) {
    // Its own trunk last: without it the request needs no more than it does alone.
    if (!ReclaimTrunk(sequence->trunk) && !ReclaimTrunk(nullptr)) return false;
  }
  LeaveWaiting(sequence);
  NoteAdmission(sequence, now_us);
  return true;
}

void Scheduler::NoteAdmission(Sequence* sequence, TimeUs now_us) {
  RequestRecord* request = sequence->request;
  const bool fresh = sequence->state == SequenceState::kWaiting;
  sequence->state = SequenceState::kPrefilling;
  sequence->num_slots = sequence->slots_needed();
  slots_used_ += sequence->num_slots;
  stats_.decode_slots_taken += sequence->num_slots;
  InsertRunning(sequence);
  if (!fresh) return;
  if (flock_ && !sequence->oneshot()) flock_->Join(request, now_us);
  if (config_.order == Order::kFair) {
    fair_queue_.Serve(request->urgency.rank, sequence->num_remaining());
    request->unserved = 0;
  }
  batch_size_ += std::max(1, sequence->num_slots);
  request->scheduled = true;
  request->times.first_scheduled_us = now_us;
  request->first_iteration = iteration_;
  if (cost_.known()) {
    // Orders nothing, so it follows the latest speed and waits for no new version.
    request->predicted_us = cost_.PredictUs(
        WorkOf(sequence->num_remaining(), sequence->num_computed), StepKind::kPrefill);
  }
  // Of a shared prefix what was cached before anyone asked for it.
  const Trunk* trunk = sequence->trunk;
  request->cached_tokens = trunk != nullptr ? trunk->num_cached : sequence->num_computed;
  if (blocks_.prefix_caching() && !request->whole) {
    stats_.prefix_cache_queries += request->prompt_len;
    stats_.prefix_cache_hits += request->cached_tokens;
  }
}

bool Scheduler::CompatibleWithStep(const Sequence& sequence) const {
  if (!sequence.oneshot()) return true;
  for (const StepRow& row : step_.prefills) {
    if (row.trunk == nullptr && !row.sequence->oneshot()) continue;
    return row.blocks().hashes().scope().adapter_id == sequence.request->request.adapter_id;
  }
  return true;
}

bool Scheduler::PlanChunk(Sequence* sequence) {
  if (tokens_left_ == 0 || !CompatibleWithStep(*sequence)) return false;
  if (RunsInOneStep(*sequence)) {
    const int32_t num_remaining = sequence->num_remaining();
    const auto num_own = std::max<int32_t>(
        0, BlocksFor(std::ssize(sequence->tokens)) - std::ssize(sequence->blocks.table()));
    // One that was begun and whose step was dropped comes again: it waits for a step with room, as
    // it did when it was admitted (HasRoomFor).
    const bool fits = num_remaining <= tokens_left_ && num_own <= own_blocks_left_;
    if (!step_.prefills.empty() && !fits) return false;
    step_.prefills.push_back({.sequence = sequence, .num_tokens = num_remaining});
    tokens_left_ = std::max(0, tokens_left_ - num_remaining);
    own_blocks_left_ -= num_own;
    return true;
  }
  const int32_t num_tokens = std::min(sequence->num_remaining(), tokens_left_);
  const bool split = num_tokens < sequence->num_remaining();
  if (config_.sharing != Sharing::kChunked && split && !step_.prefills.empty()) return false;
  step_.prefills.push_back({.sequence = sequence, .num_tokens = num_tokens});
  tokens_left_ -= num_tokens;
  return true;
}

// What is read of the sequence's row of so many tokens.
void Scheduler::ReadFrom(Sequence* sequence, int32_t num_tokens) {
  const RequestRecord& request = *sequence->request;
  const bool last = num_tokens == sequence->num_remaining();
  sequence->read = last && !request.request.generates() ? &request.request.output : nullptr;
  sequence->prompt_logprobs = {};
  const int32_t first = request.next_prompt_logprob;
  // The row's last token predicts the one behind it.
  const int32_t end = std::min(sequence->num_computed + num_tokens + 1, request.prompt_len);
  if (first >= end) return;
  sequence->prompt_logprobs = {.begin = first,
                               .tokens = std::span(sequence->tokens).subspan(first, end - first),
                               .num_top = request.request.prompt_logprobs->num_top};
}

// The draws of the sequence's row of so many tokens.
void Scheduler::DrawFrom(Sequence* sequence, int32_t num_tokens) {
  const RequestRecord& request = *sequence->request;
  sequence->draws.clear();
  if (num_tokens < sequence->num_remaining() || request.budget == 0) return;
  DrawSpec draw = {.generate = &request.request.generate(),
                   .sample = sequence->sample,
                   .history = sequence->tokens,
                   .prompt_len = request.prompt_len};
  if (request.forked) {
    sequence->draws.push_back(draw);
    return;
  }
  for (size_t sample = 0; sample < request.live.size(); ++sample) {
    draw.sample = static_cast<int32_t>(sample);
    if (request.live[sample]) sequence->draws.push_back(draw);
  }
}

PlanRow Scheduler::MakeRow(const StepRow& row) {
  const std::span<const BlockId> table = row.blocks().table();
  const auto num_blocks = static_cast<size_t>(BlocksFor(row.begin() + row.num_tokens));
  SKEIN_CHECK(table.size() >= num_blocks ||
              (row.trunk == nullptr && DiscardsKv(*row.sequence) && row.finishes()));
  PlanRow plan_row = {.begin = row.begin(),
                      .tokens = row.tokens().subspan(row.begin(), row.num_tokens),
                      .block_table = table.first(std::min(num_blocks, table.size()))};
  if (row.trunk != nullptr) {
    plan_row.sequence = row.trunk->id;
    return plan_row;
  }
  Sequence* sequence = row.sequence;
  sequence->in_step = true;
  ReadFrom(sequence, row.num_tokens);
  DrawFrom(sequence, row.num_tokens);
  plan_row.sequence = sequence->id();
  plan_row.draws = sequence->draws;
  plan_row.read = sequence->read;
  plan_row.prompt_logprobs = sequence->prompt_logprobs;
  if (const Trunk* trunk = sequence->trunk; trunk != nullptr) {
    plan_row.parent = trunk->id;
    const int32_t tail = plan_row.begin % kBlockTokens;
    const int32_t block = plan_row.begin / kBlockTokens;
    if (tail > 0) {
      plan_row.fork = {trunk->blocks.table()[block], tail};
    }
  }
  plan_row.second_segment_begin =
      sequence->request->request.second_segment_begin.value_or(std::numeric_limits<int32_t>::max());
  return plan_row;
}

const StepPlan* Scheduler::BuildPlan() {
  int32_t num_tokens = static_cast<int32_t>(step_.decodes.size());
  for (const StepRow& row : step_.prefills) num_tokens += row.num_tokens;
  stats_.iteration_tokens_sum += num_tokens;
  if (!step_.decodes.empty()) stats_.wasted_decode_slots += batch_slots_idle_;
  const auto& bounds = EngineStats::kIterationTokenBounds;
  const auto bound = std::lower_bound(bounds.begin(), bounds.end(), num_tokens);
  ++stats_.iteration_tokens[bound - bounds.begin()];

  if (step_.prefills.empty()) {
    ++stats_.steps_decode;
    auto& plan = std::get<DecodePlan>(step_.plans->decode);
    plan.copies.clear();
    plan.rows.clear();
    for (const StepRow& row : step_.decodes) {
      if (row.sequence->blocks.has_pending_copy()) {
        plan.copies.push_back(row.sequence->blocks.pending_copy());
      }
      plan.rows.push_back(MakeRow(row));
    }
    return &step_.plans->decode;
  }
  const bool all_oneshot = std::ranges::all_of(step_.prefills, [](const StepRow& row) {
    return row.finishes() && (row.trunk != nullptr || row.sequence->oneshot());
  });
  if (step_.decodes.empty() && all_oneshot) {
    ++stats_.steps_oneshot;
    auto& plan = std::get<OneShotPlan>(step_.plans->oneshot);
    plan.rows.clear();
    for (const StepRow& row : step_.prefills) plan.rows.push_back(MakeRow(row));
    return &step_.plans->oneshot;
  }
  ++stats_.steps_mixed;
  auto& plan = std::get<MixedPlan>(step_.plans->mixed);
  plan.copies.clear();
  plan.prefills.clear();
  plan.decodes.clear();
  for (const StepRow& row : step_.prefills) plan.prefills.push_back(MakeRow(row));
  for (const StepRow& row : step_.decodes) {
    if (row.sequence->blocks.has_pending_copy()) {
      plan.copies.push_back(row.sequence->blocks.pending_copy());
    }
    plan.decodes.push_back(MakeRow(row));
  }
  return &step_.plans->mixed;
}

}  // namespace skein
