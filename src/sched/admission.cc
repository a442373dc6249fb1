#include "sched/admission.h"

#include <algorithm>

#include "base/check.h"

namespace skein {
namespace {

// Retention `value` remembers as many prompts as have this many times the blocks of the cache. A
// prefix that did not come again in that time would have been evicted several times over.
constexpr int32_t kRememberedCaches = 4;

}  // namespace

Admission::Admission(const SchedulerContext& context, Ranks* ranks, SharedPrefixes* prefixes)
    : config_(*context.config),
      blocks_(context.blocks),
      cost_(context.cost),
      table_(context.table),
      order_(context.order),
      decode_set_(context.decode_set),
      stats_(context.stats),
      ranks_(ranks),
      prefixes_(prefixes) {
  if (config_.policies.retention == Retention::kValue && config_.prefix_caching) {
    recent_.emplace(kRememberedCaches, config_.num_kv_blocks);
  }
}

void Admission::BeginRound(int64_t iteration, TimeUs now_us) {
  iteration_ = iteration;
  now_us_ = now_us;
  preempted_in_round_ = false;
  reserved_for_ = nullptr;
}

void Admission::NoteArrival(const Sequence& sequence) {
  if (recent_ && sequence.oneshot()) recent_->Note(sequence.blocks.hashes());
}

int32_t Admission::NumFreeSlots() const {
  int32_t limit = config_.max_num_seqs;
  if (slots_used_ > 0) limit = std::min(limit, decode_set_->MaxRunning());
  return std::max(0, limit - slots_used_);
}

bool Admission::MayJoin(const Sequence& sequence) const {
  if (config_.kv_storage == KvStorage::kContiguous && !table_->running().empty()) return false;
  if (sequence.state == SequenceState::kPreempted) return true;
  return decode_set_->MayJoin(std::max(1, sequence.slots_needed()));
}

bool Admission::CouldBegin(const Sequence& sequence) const {
  if (!MayJoin(sequence) || sequence.slots_needed() > NumFreeSlots()) return false;
  if (sequence.shared_prefix != nullptr && sequence.shared_prefix->suspended) return false;
  return DiscardsKv(sequence) || sequence.NeedOf(*blocks_).num_blocks <= blocks_->num_available();
}

bool Admission::GoesByOrder(const Sequence& first) const {
  if (!decode_set_->Chooses() || decode_set_->FollowsOrder()) return true;
  if (first.oneshot() || first.state == SequenceState::kPreempted) return true;
  if (first.request->wait.presses) return true;
  return order_->ByDeadline() && first.request->request.slo_ttft_us.has_value();
}

bool Admission::GoesBefore(const Sequence& first, const SequenceKey& step) const {
  return first.request->urgency < step.urgency && !order_->StopsStepsOnlyInNeed();
}

int32_t Admission::NumMissing(const Sequence& sequence) const {
  const SharedPrefix* prefix = sequence.shared_prefix;
  const int32_t num_shared = prefix != nullptr ? prefix->length() : 0;
  return sequence.num_remaining() - std::max(sequence.NeedOf(*blocks_).num_cached, num_shared);
}

// Blocks that a prompt leaves free for work that may preempt it. 0 if the prompt itself preempts or
// if nothing else runs: the prompt may then take all blocks.
int32_t Admission::ExpressReserve() const {
  return preempts_ || table_->running().empty() ? 0 : ExpressBlocks(config_);
}

int32_t Admission::NumBlocksForDecodes() const {
  return blocks_->num_available() - ExpressReserve() + prefixes_->NumReclaimableBlocks();
}

// The Decode-class request for which OneShot work gives up blocks and leaves blocks free, if that
// request will join.
const Sequence* Admission::ExpectedDecode() {
  const Sequence* head = table_->waiting().Head(false, true);
  if (head == nullptr || GoesByOrder(*head)) return head;
  return slots_used_ == config_.max_num_seqs ? nullptr : decode_set_->Candidate(now_us_);
}

// Whether the expected decode, which has a slot and needs `num_needed` blocks, joins if
// `num_blocks` are available. `num_needed` includes the express reserve. OneShot work must not wait
// for a request that the decode set refuses. The decode set is asked only about a request that
// could be admitted.
bool Admission::WillJoin(const Sequence& next, int32_t num_needed, int32_t num_blocks) {
  const bool by_order = &next == table_->waiting().Head(false, true) && GoesByOrder(next);
  return num_needed <= num_blocks && (by_order || decode_set_->Approves(now_us_));
}

int32_t Admission::DecodeReserve() {
  if (config_.kv_storage == KvStorage::kContiguous) return 0;  // one sequence at a time, in order
  const Sequence* next = ExpectedDecode();
  if (next == nullptr || !MayJoin(*next) || preempted_in_round_) return 0;
  if (next->slots_needed() > NumFreeSlots()) return 0;
  if (next != reserved_for_) {
    reserved_for_ = next;
    num_reserved_ = next->NeedOf(*blocks_).num_blocks;
  }
  const int32_t num_needed = num_reserved_ + ExpressReserve();
  return WillJoin(*next, num_needed, blocks_->num_available()) ? num_reserved_ : 0;
}

void Admission::ReclaimForDecodes() {
  int32_t num_needed = 0;
  int32_t num_reclaimable = prefixes_->NumBlocks();
  for (const Sequence* sequence : table_->running()) {
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
    const int32_t with_next = num_needed + next->NeedOf(*blocks_).num_blocks + ExpressReserve();
    const int32_t num_available = blocks_->num_available();
    const bool lacks = with_next > num_available;
    if (lacks && WillJoin(*next, with_next, num_available + num_reclaimable)) {
      num_needed = with_next;
    }
  }
  while (blocks_->num_available() < num_needed && ReclaimOneShot()) {
  }
}

// Gives up the blocks of a shared prefix, or of the youngest partly computed OneShot prompt. Full
// blocks stay in the prefix cache until they are evicted.
bool Admission::ReclaimOneShot() {
  if (prefixes_->Reclaim(nullptr)) return true;
  const std::vector<Sequence*>& running = table_->running();
  const auto youngest = std::find_if(running.rbegin(), running.rend(), [](const Sequence* s) {
    return s->oneshot() && s->state == SequenceState::kPrefilling && !s->in_step;
  });
  if (youngest == running.rend()) return false;
  Preempt(*youngest);
  return true;
}

SequenceBlocks::Hold Admission::HoldOf(const Sequence& sequence) const {
  const auto num_tokens = static_cast<int32_t>(sequence.tokens.size());
  if (!DiscardsKv(sequence)) return {.num_blocks = BlocksFor(num_tokens)};
  const bool keeps = config_.policies.retention != Retention::kNone && blocks_->prefix_caching() &&
                     !sequence.request->whole;
  // No other sequence can attach a block that is not full.
  const int32_t num_full = num_tokens / kBlockTokens;
  SequenceBlocks::Hold hold = {.num_blocks = keeps ? num_full : 0, .or_fewer = true};
  if (keeps && recent_) hold.num_evicting = recent_->NumShared(sequence.blocks.hashes(), num_full);
  return hold;
}

// Gives the sequence its blocks: if it has a shared prefix, the blocks behind that prefix, else the
// cached blocks and new ones for the other tokens.
bool Admission::AttachBlocks(Sequence* sequence) {
  const int32_t num_reserved = ExpressReserve() + (sequence->oneshot() ? DecodeReserve() : 0);
  if (sequence->shared_prefix != nullptr) {
    return prefixes_->Attach(sequence, HoldOf(*sequence), num_reserved);
  }
  sequence->blocks.Hash(blocks_->prefix_caching() ? std::span<const TokenId>(sequence->tokens)
                                                  : std::span<const TokenId>());
  const int32_t num_cached = sequence->blocks.Attach(
      blocks_, sequence->tokens, sequence->max_cached_tokens(), HoldOf(*sequence), num_reserved);
  if (num_cached < 0) return false;
  sequence->num_computed = num_cached;
  if (blocks_->states().enabled() && blocks_->prefix_caching() && !sequence->request->whole) {
    sequence->blocks.WantSnapshots(static_cast<int32_t>(sequence->tokens.size()), num_cached,
                                   sequence->request->request.group.parent_prefix_len);
  }
  return true;
}

void Admission::AddSnapshot(const StepRow& row, int32_t num_tokens) {
  SequenceBlocks& blocks = row.prefix != nullptr ? row.prefix->blocks : row.sequence->blocks;
  blocks.AddSnapshot(blocks_, num_tokens / kBlockTokens * kBlockTokens);
}

// Decode-class requests keep a state from their first row on. OneShot requests keep a state only if
// the row does not finish the prompt.
bool Admission::BeginRow(Sequence* sequence, int32_t num_tokens) {
  const bool keeps = !sequence->oneshot() || num_tokens < sequence->num_remaining();
  return sequence->blocks.BeginRow(blocks_, sequence->num_computed, num_tokens, keeps);
}

bool Admission::ReclaimState(const SequenceKey& key, const SharedPrefix* except,
                             std::span<const StepRow> planned) {
  if (prefixes_->Reclaim(except)) return true;
  const auto is_free = [&](const Sequence* s) {
    return s->oneshot() && s->state == SequenceState::kPrefilling && !s->in_step &&
           key < s->key() && std::ranges::find(planned, s, &StepRow::sequence) == planned.end();
  };
  const std::vector<Sequence*>& running = table_->running();
  const auto youngest = std::find_if(running.rbegin(), running.rend(), is_free);
  if (youngest == running.rend()) return false;
  Preempt(*youngest);
  return true;
}

bool Admission::AttachForRows(Sequence* sequence) {
  if (sequence->oneshot() || !blocks_->states().enabled()) return AttachBlocks(sequence);
  const bool shares = sequence->shared_prefix != nullptr;  // then it starts from a state in use
  if (shares && blocks_->states().num_available() == 0) return false;
  if (!AttachBlocks(sequence)) return false;
  if (sequence->blocks.TakeState(blocks_)) return true;
  SKEIN_CHECK(!shares);
  sequence->blocks.Release(blocks_);
  sequence->num_computed = 0;
  return false;
}

bool Admission::Admit(Sequence* sequence) {
  while (!AttachForRows(sequence)) {
    // The sequence's own prefix is given up last: without that prefix, the request needs no more
    // blocks than it does alone.
    if (!prefixes_->Reclaim(sequence->shared_prefix) && !prefixes_->Reclaim(nullptr)) return false;
  }
  ranks_->LeaveWaiting(sequence);
  NoteAdmission(sequence);
  return true;
}

void Admission::NoteAdmission(Sequence* sequence) {
  const bool fresh = sequence->state == SequenceState::kWaiting;
  sequence->state = SequenceState::kPrefilling;
  sequence->num_slots = sequence->slots_needed();
  slots_used_ += sequence->num_slots;
  stats_->decode_slots_taken += sequence->num_slots;
  table_->InsertRunning(sequence);
  if (fresh) NoteFirstAdmission(sequence);
}

void Admission::NoteFirstAdmission(Sequence* sequence) {
  RequestRecord* request = sequence->request;
  if (!sequence->oneshot()) decode_set_->Join(request, now_us_);
  order_->OnAdmit(request->urgency.rank, sequence->num_remaining());
  request->num_charged = 0;
  decode_set_->OnAdmit(std::max(1, sequence->num_slots));
  request->scheduled = true;
  request->times.first_scheduled_us = now_us_;
  request->first_iteration = iteration_;
  if (cost_->known()) {
    // No order depends on this prediction. Therefore the latest measured speed is used, without
    // waiting for a new version of the cost model.
    request->predicted_us = cost_->PredictUs(
        WorkOf(sequence->num_remaining(), sequence->num_computed), StepKind::kPrefill);
  }
  // Tokens of a shared prefix count as cached if they were cached before a request asked for the
  // prefix.
  const SharedPrefix* prefix = sequence->shared_prefix;
  request->cached_tokens = prefix != nullptr ? prefix->num_cached : sequence->num_computed;
  if (blocks_->prefix_caching() && !request->whole) {
    stats_->prefix_cache_queries += request->prompt_len;
    stats_->prefix_cache_hits += request->cached_tokens;
  }
}

bool Admission::FindDecodeBlock(Sequence* sequence) {
  while (!sequence->blocks.Grow(blocks_, sequence->num_computed + 1)) {
    const auto is_free = [](const Sequence* s) { return !s->in_step; };  // not in a suspended step
    const std::vector<Sequence*>& running = table_->running();
    Sequence* youngest = *std::find_if(running.rbegin(), running.rend(), is_free);
    Preempt(youngest);
    preempted_in_round_ = true;
    if (youngest == sequence) return false;
  }
  return true;
}

void Admission::Preempt(Sequence* sequence) {
  SKEIN_CHECK(!sequence->in_step);
  table_->EraseRunning(sequence);
  // The row of its shared prefix may not be computed yet.
  if (sequence->shared_prefix == nullptr) {
    sequence->blocks.KeepEnd(blocks_, sequence->num_computed, SequenceStates::NextRow::kNone);
  }
  ReleaseBlocks(sequence);
  sequence->num_computed = 0;
  slots_used_ -= sequence->num_slots;
  sequence->num_slots = 0;
  sequence->state = SequenceState::kPreempted;
  ranks_->NotePreempted(sequence);
  ranks_->EnterWaiting(sequence);
  ++stats_->num_preemptions;
}

void Admission::MoveSlot(Sequence* carrier, Sequence* child, bool runs) {
  SKEIN_CHECK(carrier->num_slots > 1);
  --carrier->num_slots;
  if (runs) {
    child->num_slots = 1;
  } else {
    --slots_used_;
  }
}

void Admission::ReleaseSlots(Sequence* sequence, int32_t count) {
  sequence->num_slots -= count;
  if (decode_set_->RunsWholeBatches()) {
    num_idle_slots_ += count;
  } else {
    slots_used_ -= count;
  }
}

void Admission::ReleaseBlocks(Sequence* sequence) {
  prefixes_->Leave(sequence);
  sequence->blocks.Release(blocks_);
}

void Admission::EndBatch() {
  slots_used_ = 0;
  num_idle_slots_ = 0;
  decode_set_->OnBatchEnd();
}

void Admission::CheckStates() const {
  const StatePool& states = blocks_->states();
  std::vector<int32_t> references(states.num_states());
  prefixes_->CountStates(references);
  for (const auto& [id, request] : table_->requests()) {
    for (const auto& sequence : request->sequences) sequence->blocks.CountStates(references);
  }
  for (StateId state = 0; state < states.num_states(); ++state) {
    SKEIN_CHECK(references[state] == states.ref_count(state));
  }
}

void Admission::CheckIntegrity() const {
  int32_t num_slots = num_idle_slots_;
  std::vector<int32_t> references(blocks_->num_blocks());
  prefixes_->CountReferences(references);
  for (const auto& [id, request] : table_->requests()) {
    for (const auto& sequence : request->sequences) {
      sequence->blocks.CountReferences(references);
      num_slots += sequence->num_slots;
    }
  }
  if (blocks_->states().enabled()) CheckStates();
  SKEIN_CHECK(num_slots == slots_used_ && slots_used_ <= config_.max_num_seqs);
  for (BlockId block = 0; block < blocks_->num_blocks(); ++block) {
    SKEIN_CHECK(references[block] == blocks_->ref_count(block));
  }
}

}  // namespace skein
