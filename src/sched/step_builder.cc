#include "sched/step_builder.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "sched/prefix/family.h"

namespace skein {
namespace {

// A wait for a leader must save at least this many tokens for each token that the leader still
// computes. A step's cost grows with its tokens, and the leader's tokens are computed in any case.
constexpr double kMinSavedPerTokenWaited = 0.5;

// The most requests that wait for a cold prefix in one round. Further requests compute their prefix
// themselves.
constexpr size_t kMaxDeferred = 256;

}  // namespace

StepBuilder::StepBuilder(const SchedulerContext& context, Ranks* ranks, SharedPrefixes* prefixes,
                         Admission* admission, Step* step)
    : config_(*context.config),
      blocks_(context.blocks),
      table_(context.table),
      order_(context.order),
      batching_(context.batching),
      decode_set_(context.decode_set),
      stats_(context.stats),
      ranks_(ranks),
      prefixes_(prefixes),
      admission_(admission),
      max_own_blocks_(StepBoundsOf(config_.policies.retention, config_.max_model_len,
                                   config_.max_num_batched_tokens)
                          .max_own_blocks),
      step_(*step) {}

void StepBuilder::Begin(TimeUs now_us) {
  step_.Begin(now_us);
  now_us_ = now_us;
  walked_to_.reset();
  tokens_left_ = config_.max_num_batched_tokens;
  own_blocks_left_ = max_own_blocks_;
  batching_->BeginStep();
}

void StepBuilder::SetBound(const std::optional<SequenceKey>& bound) {
  bound_ = bound;
  admission_->set_preempts(bound.has_value());
}

void StepBuilder::LimitTokens(int64_t num_tokens) {
  tokens_left_ = static_cast<int32_t>(std::min<int64_t>(tokens_left_, num_tokens));
}

void StepBuilder::AddDecodes(bool all) {
  // Entries behind this one may disappear during the loop: older sequences never lose their blocks
  // to younger ones.
  const std::vector<Sequence*>& running = table_->running();
  for (size_t i = 0; i < running.size(); ++i) {
    Sequence* sequence = running[i];
    if (sequence->state != SequenceState::kDecoding || sequence->in_step) continue;
    if (!all && sequence->request->decodes_in_own_steps) continue;
    if (!admission_->FindDecodeBlock(sequence)) continue;
    SKEIN_CHECK(admission_->BeginRow(sequence, 1));  // it holds a state already
    step_.decodes.push_back({sequence, 1});
    --tokens_left_;
  }
  if (!step_.decodes.empty()) decode_set_->OnDecode();
}

void StepBuilder::RemoveDecodes() {
  tokens_left_ += static_cast<int32_t>(step_.decodes.size());
  for (const StepRow& row : step_.decodes) admission_->CancelRow(row.sequence);
  step_.decodes.clear();
}

void StepBuilder::AddPrompts() {
  AddStartedPrompts();
  // Blocks that a decode has just taken from the youngest sequence are not given away again.
  if (admission_->preempted_in_round()) return;
  AddWaiting(bound_);
  for (Sequence* sequence : deferred_) table_->waiting().Insert(sequence);
  deferred_.clear();
}

bool StepBuilder::PrefersUrgentToStarted() const {
  if (Preempts(config_.policies.sharing)) return config_.policies.granularity != Granularity::kNone;
  return order_->ByDeadline();
}

// Adds started prompts, and the urgent waiting requests that go before them.
void StepBuilder::AddStartedPrompts() {
  started_.clear();
  for (Sequence* sequence : table_->running()) {
    if (sequence->state == SequenceState::kPrefilling && !sequence->in_step) {
      started_.push_back(sequence);
    }
  }
  for (Sequence* sequence : started_) {
    if (bound_ && !(sequence->key() < *bound_)) break;
    if (PrefersUrgentToStarted() && !admission_->preempted_in_round()) AddWaiting(sequence->key());
    if (!step_.prefills.empty() && !batching_->TakesMoreStarted()) break;
    if (!GaveUpState(*sequence)) AddChunk(sequence);
  }
}

// Adds waiting requests in order. With a `bound`, only requests before it are added.
void StepBuilder::AddWaiting(const std::optional<SequenceKey>& bound) {
  bool want_oneshot = true;
  bool want_decode = true;
  while (tokens_left_ > 0 && (step_.prefills.empty() || batching_->TakesMore())) {
    Sequence* head = NextWaiting(want_oneshot, want_decode, bound);
    if (head == nullptr) return;
    // A request that the decode set chose does not count here: requests before it in the order have
    // not been considered.
    if (!SetChooses() || head->oneshot()) walked_to_ = head->key();
    if (SkipsClass(head, &want_oneshot, &want_decode)) continue;
    switch (AddHead(head)) {
      case Added::kYes:
        ranks_->FollowCacheInRound();  // its blocks may have come from the cache
        break;
      case Added::kLater:
        table_->waiting().Erase(head);
        deferred_.push_back(head);
        if (!head->oneshot()) decode_set_->SetAside(*head->request, now_us_);
        break;
      case Added::kNoBlocks:
        // If OneShot work finds no blocks, only Decode work with reserved blocks passes it.
        if (head->oneshot() ? admission_->DecodeReserve() == 0 : !config_.policies.forests) return;
        (head->oneshot() ? want_oneshot : want_decode) = false;
        break;
      case Added::kNoTokens:
        return;
    }
  }
}

// Whether no request of `head`'s class can join this step. Only the other class is then considered.
bool StepBuilder::SkipsClass(Sequence* head, bool* want_oneshot, bool* want_decode) {
  if (head->slots_needed() > admission_->NumFreeSlots()) {
    *want_decode = false;
    return true;
  }
  if (!IsCompatible(*head)) {
    *want_oneshot = false;
    return true;
  }
  return false;
}

// The next request that joins the step; null: none does.
Sequence* StepBuilder::NextWaiting(bool want_oneshot, bool want_decode,
                                   const std::optional<SequenceKey>& bound) {
  const bool follows = !step_.prefills.empty();
  Sequence* head = nullptr;
  if (follows && batching_->SkipsToFit()) {
    head = NextThatFits(batching_->MaxTokens(SoFar()), want_oneshot, want_decode, bound);
  } else {
    head = NextHead(want_oneshot, want_decode, bound);
  }
  if (head == nullptr || !admission_->MayJoin(*head)) return nullptr;
  if (bound && !(head->key() < *bound)) return nullptr;
  if (follows && !batching_->SkipsToFit()) {
    const int64_t max_tokens = batching_->MaxTokens(SoFar());
    if (max_tokens != BatchingPolicy::kAny && admission_->NumMissing(*head) > max_tokens) {
      return nullptr;
    }
  }
  return head;
}

// The next request of the wanted classes. The order decides between OneShot and Decode work; the
// decode set decides between Decode-class requests. A prefill may have stopped, at `bound`, for a
// request that the set does not choose or refuses (Preemption::MoreUrgentWaits). If the set names
// no request before the bound, that request begins; otherwise the prefill would have stopped for
// nothing.
Sequence* StepBuilder::NextHead(bool want_oneshot, bool want_decode,
                                const std::optional<SequenceKey>& bound) {
  const WaitingSets& waiting = table_->waiting();
  Sequence* head = waiting.Head(want_oneshot, want_decode);
  if (head == nullptr || admission_->GoesByOrder(*head)) return head;
  Sequence* next = NextOfDecodeSet(std::numeric_limits<int32_t>::max(), bound);
  if (next != nullptr) return next;
  const bool stopped_for = bound && step_.prefills.empty() &&
                           admission_->GoesBefore(*head, *bound) && admission_->CouldBegin(*head);
  return stopped_for ? head : waiting.Head(want_oneshot, false);
}

// The next request in order with at most `max_tokens` missing tokens. If the decode set chooses,
// the set's choice is the only candidate of the Decode class.
Sequence* StepBuilder::NextThatFits(int64_t max_tokens, bool want_oneshot, bool want_decode,
                                    const std::optional<SequenceKey>& bound) {
  const auto max_fitting = static_cast<int32_t>(std::min<int64_t>(max_tokens, tokens_left_));
  if (max_fitting < 1) return nullptr;
  const WaitingSets& waiting = table_->waiting();
  const bool chooses = SetChooses();
  Sequence* next = waiting.NextFitting(walked_to_ ? &*walked_to_ : nullptr, max_fitting,
                                       want_oneshot, want_decode && !chooses);
  if (!chooses) return next;
  // Null also while a preempted request waits, since no other request of its class goes before it.
  Sequence* decode = waiting.NextFitting(nullptr, max_fitting, false, want_decode);
  if (decode != nullptr && !admission_->GoesByOrder(*decode)) {
    decode = NextOfDecodeSet(max_fitting, bound);
  }
  if (decode == nullptr || next == nullptr) return decode != nullptr ? decode : next;
  return decode->key() < next->key() ? decode : next;
}

// The decode set's best candidate that can be admitted now and has at most `max_tokens` to be
// computed. Null if the candidate is not before `bound` or the set refuses it. A candidate is set
// aside while a row of this step computes its missing prefix: in the next round, the prefix is in
// the cache.
Sequence* StepBuilder::NextOfDecodeSet(int32_t max_tokens,
                                       const std::optional<SequenceKey>& bound) {
  const int32_t num_free_slots = admission_->NumFreeSlots();
  if (num_free_slots == 0) return nullptr;
  const int32_t num_blocks = admission_->NumBlocksForDecodes();
  while (Sequence* next = decode_set_->Candidate(now_us_)) {
    const SequenceBlocks::Need need = next->NeedOf(*blocks_);
    const StepRow* leader = LeaderOf(*next, need.num_cached);
    if (leader != nullptr) {
      if (leader->sequence != nullptr) ranks_->Inherit(leader->sequence, *next);
      admission_->AddSnapshot(*leader, CommonLength(*leader, *next));
      decode_set_->SetAside(*next->request, now_us_);
      continue;
    }
    const bool fits =
        next->slots_needed() <= num_free_slots && need.num_blocks <= num_blocks &&
        (next->num_remaining() <= max_tokens || admission_->NumMissing(*next) <= max_tokens);
    if (fits) {
      if (bound && !(next->key() < *bound)) return nullptr;
      return decode_set_->Approves(now_us_) ? next : nullptr;
    }
    if (!decode_set_->PassOver(now_us_)) return nullptr;
  }
  return nullptr;
}

StepBuilder::Added StepBuilder::AddHead(Sequence* head) {
  // The request waits for the next step, which has room for it.
  if (admission_->RunsInOneStep(*head) && !HasRoomFor(*head)) return Added::kNoTokens;
  const bool shares = head->state == SequenceState::kWaiting && SharesPrefix(*head->request);
  const bool forests = shares && config_.policies.forests;
  if (forests) {
    if (head->shared_prefix == nullptr && head->oneshot()) prefixes_->JoinExisting(head);
    if (head->shared_prefix != nullptr && head->shared_prefix->suspended) return Added::kLater;
  }
  const bool waits = forests || (shares && batching_->WaitsForPrefixes());
  // The questions on one input arrive together: in one step, each would compute the input.
  const bool grouped = shares && head->request->request.group.id != 0;
  if ((waits || grouped) && head->shared_prefix == nullptr && WaitsForPrefix(head)) {
    return !waits && order_->InLine() ? Added::kNoTokens : Added::kLater;
  }
  if (forests) {
    if (head->shared_prefix == nullptr && head->oneshot()) {
      const int32_t num_blocks =
          admission_->DiscardsKv(*head) ? 0 : BlocksFor(std::ssize(head->tokens));
      prefixes_->Form(head, num_blocks, [this] { return admission_->DecodeReserve(); });
    }
    if (head->shared_prefix != nullptr && !AddSharedPrefix(head->shared_prefix, head->key())) {
      return Added::kNoTokens;
    }
    if (tokens_left_ == 0) return Added::kNoTokens;
  }
  if (!admission_->Admit(head)) return Added::kNoBlocks;
  return AddChunk(head) ? Added::kYes : Added::kNoTokens;
}

// Whether the step has room for a prompt that runs in one step. A step without other prompts has
// room for each that was accepted.
bool StepBuilder::HasRoomFor(const Sequence& sequence) const {
  if (step_.prefills.empty()) return true;
  const bool discards = admission_->DiscardsKv(sequence);
  const int32_t num_tokens = admission_->NumMissing(sequence);
  if (num_tokens > tokens_left_) return false;
  // The first and the last block may be partly filled.
  return !discards || BlocksFor(num_tokens) + 1 <= own_blocks_left_;
}

// All OneShot rows of a step use the same adapter.
bool StepBuilder::IsCompatible(const Sequence& sequence) const {
  if (!sequence.oneshot()) return true;
  for (const StepRow& row : step_.prefills) {
    if (row.prefix == nullptr && !row.sequence->oneshot()) continue;
    return row.blocks().hashes().scope().adapter_id == sequence.request->request.adapter_id;
  }
  return true;
}

bool StepBuilder::AddChunk(Sequence* sequence) {
  if (tokens_left_ == 0 || !IsCompatible(*sequence)) return false;
  if (admission_->RunsInOneStep(*sequence)) return AddWholePrompt(sequence);
  const int32_t num_tokens = ChunkOf(*sequence);
  if (num_tokens == 0) return false;
  const bool split = num_tokens < sequence->num_remaining();
  if (config_.policies.sharing != Sharing::kChunked && split && !step_.prefills.empty())
    return false;
  if (!BeginRow(sequence, num_tokens)) return false;
  step_.prefills.push_back({.sequence = sequence, .num_tokens = num_tokens});
  tokens_left_ = std::max(0, tokens_left_ - num_tokens);
  return true;
}

// The number of a prompt's tokens that the step takes; 0: none. The prompt's tail is not cut. It
// waits for a step with enough room; a step without other prompts always has enough.
int32_t StepBuilder::ChunkOf(const Sequence& sequence) const {
  const int32_t num_remaining = sequence.num_remaining();
  const int32_t tail_len = std::min(sequence.request->tail_len, num_remaining);
  if (num_remaining <= tokens_left_) return num_remaining;
  if (num_remaining > tail_len) {
    return CutAtBlock(sequence.num_computed, std::min(tokens_left_, num_remaining - tail_len));
  }
  return step_.prefills.empty() ? num_remaining : 0;
}

// The number of the first `num_tokens` tokens from `begin` on that a chunk takes. In a model with
// states, it ends with a block if it can: only there the state becomes a snapshot.
int32_t StepBuilder::CutAtBlock(int32_t begin, int32_t num_tokens) const {
  if (!blocks_->states().enabled()) return num_tokens;
  const int32_t end = (begin + num_tokens) / kBlockTokens * kBlockTokens;
  return end > begin ? end - begin : num_tokens;
}

// A sequence that gave up its state waits again, or has been admitted again and has its row.
bool StepBuilder::GaveUpState(const Sequence& started) const {
  if (!blocks_->states().enabled()) return false;
  return started.state != SequenceState::kPrefilling ||
         std::ranges::find(step_.prefills, &started, &StepRow::sequence) != step_.prefills.end();
}

bool StepBuilder::BeginRow(Sequence* sequence, int32_t num_tokens) {
  while (!admission_->BeginRow(sequence, num_tokens)) {
    if (!admission_->ReclaimState(sequence->key(), sequence->shared_prefix, step_.prefills)) {
      return false;
    }
  }
  return true;
}

bool StepBuilder::AddWholePrompt(Sequence* sequence) {
  const int32_t num_remaining = sequence->num_remaining();
  const auto num_own = std::max<int32_t>(
      0, BlocksFor(std::ssize(sequence->tokens)) - std::ssize(sequence->blocks.table()));
  // A started prompt of a dropped step waits for a step with room, as it did when it was admitted
  // (HasRoomFor).
  const bool fits = num_remaining <= tokens_left_ && num_own <= own_blocks_left_;
  if (!step_.prefills.empty() && !fits) return false;
  if (!BeginRow(sequence, num_remaining)) return false;
  step_.prefills.push_back({.sequence = sequence, .num_tokens = num_remaining});
  tokens_left_ = std::max(0, tokens_left_ - num_remaining);
  own_blocks_left_ -= num_own;
  return true;
}

// Adds as many tokens of the prefix as the step has room for. Returns true if members may follow.
bool StepBuilder::AddSharedPrefix(SharedPrefix* prefix, const SequenceKey& key) {
  if (prefix->ready()) return true;
  const int32_t num_left = prefix->length() - prefix->num_computed;
  const bool split = tokens_left_ < num_left;
  const int32_t num_tokens = split ? CutAtBlock(prefix->num_computed, tokens_left_) : num_left;
  if (prefix->num_planned > 0 || num_tokens == 0) return false;
  if (config_.policies.sharing != Sharing::kChunked && split && !step_.prefills.empty())
    return false;
  while (!prefixes_->BeginRow(prefix, num_tokens)) {
    if (!admission_->ReclaimState(key, prefix, step_.prefills)) return false;
  }
  prefix->in_step = true;
  prefix->num_planned = num_tokens;
  tokens_left_ -= num_tokens;
  step_.prefills.push_back({.num_tokens = num_tokens, .prefix = prefix});
  return prefix->ready();
}

// The row of this step that computes the first missing block of `head`, if waiting for that row
// saves enough; else null. `num_cached` tokens of `head` are cached.
const StepRow* StepBuilder::LeaderOf(const Sequence& head, int32_t num_cached) const {
  if (step_.prefills.empty() || !blocks_->prefix_caching()) return nullptr;
  const PrefixHashes& hashes = head.blocks.hashes();
  const int32_t missing = num_cached / kBlockTokens;
  if (missing >= hashes.num_blocks()) return nullptr;
  for (const StepRow& leader : step_.prefills) {
    const PrefixHashes& others = leader.blocks().hashes();
    if (leader.begin() / kBlockTokens == missing && missing < others.num_blocks() &&
        others[missing] == hashes[missing] && IsWorthWaiting(leader, head, num_cached)) {
      return &leader;
    }
  }
  return nullptr;
}

// The tokens of `head` that are in blocks which the leader publishes. Only full blocks are.
int32_t StepBuilder::CommonLength(const StepRow& leader, const Sequence& head) {
  const int32_t num_held = static_cast<int32_t>(leader.blocks().table().size()) * kBlockTokens;
  return std::min(SharedLength(leader.tokens(), head.shareable()) / kBlockTokens * kBlockTokens,
                  num_held);
}

bool StepBuilder::IsWorthWaiting(const StepRow& leader, const Sequence& head,
                                 int32_t num_cached) const {
  const int32_t common = CommonLength(leader, head);
  const int32_t num_saved = common - num_cached;
  const int32_t num_waited = std::max(leader.num_tokens, common - leader.begin());
  return num_saved > kMinSavedPerTokenWaited * num_waited;
}

// Whether `head` must wait for a row of this step that computes its first missing block.
bool StepBuilder::WaitsForPrefix(Sequence* head) {
  if (config_.max_prefix_wait_us == 0 || deferred_.size() == kMaxDeferred) return false;
  const StepRow* leader = LeaderOf(*head, head->NeedOf(*blocks_).num_cached);
  if (leader == nullptr) return false;
  TimeUs& since_us = head->request->waits_for_prefix_since_us;
  if (since_us < 0) {
    since_us = now_us_;
    ++stats_->prefix_waits;
  }
  if (now_us_ - since_us >= config_.max_prefix_wait_us) return false;
  if (leader->sequence != nullptr) ranks_->Inherit(leader->sequence, *head);
  admission_->AddSnapshot(*leader, CommonLength(*leader, *head));
  return true;
}

}  // namespace skein
