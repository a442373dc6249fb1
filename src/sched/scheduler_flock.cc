// The part of Scheduler's planning that chooses who joins the decode batch: by order, or, with the
// decode set `flock`, by what is shared (sched/decode_set/flock.h); and how many, with the decode
// set `dynamic` (sched/decode_set/dynamic_batch.h).

#include <algorithm>
#include <limits>

#include "sched/scheduler.h"

namespace skein {

// Whether the first by the order is the next of its class, whatever the flock says: so is who asked
// for a deadline, where the order is by those.
bool Scheduler::GoesByOrder(const Sequence& first) const {
  if (!flock_ || first.oneshot() || first.state == SequenceState::kPreempted) return true;
  return OrdersByDeadline() && first.request->request.slo_ttft_us.has_value();
}

// The next to be planned of the classes that are wanted. Between OneShot and Decode work the order
// decides; which of the Decode-class requests it is, the flock. But a prefill may have stopped, at
// `bound`, for one that the flock does not choose or the stop rule refuses: where it names nobody
// before the bound, that one begins, so that the prefill has not stopped for nothing. Arrival alone
// is no such reason, or the order would stand in the flock's place; nor does a prefill stop for it
// (MoreUrgentWaits).
Sequence* Scheduler::NextHead(bool want_oneshot, bool want_decode,
                              const std::optional<SequenceKey>& bound) {
  Sequence* head = waiting_.Head(want_oneshot, want_decode);
  if (head == nullptr || GoesByOrder(*head)) return head;
  Sequence* next = NextOfFlock(std::numeric_limits<int32_t>::max(), bound);
  if (next != nullptr) return next;
  const bool stopped_for = bound && step_.prefills.empty() &&
                           head->request->urgency < bound->urgency && CouldBegin(*head);
  return stopped_for ? head : waiting_.Head(want_oneshot, false);
}

// The best companion that can be admitted now and has at most so many tokens to be computed, if it
// is before `bound` and the stop rule agrees. Who would compute what a row of this step computes is
// set aside: the next round finds it in the cache.
Sequence* Scheduler::NextOfFlock(int32_t max_tokens, const std::optional<SequenceKey>& bound) {
  const int32_t num_free_slots = NumFreeSlots();
  if (num_free_slots == 0) return nullptr;
  int32_t num_blocks = blocks_.num_available() - ExpressReserve();
  for (const auto& trunk : trunks_) {  // admitting it gives them up
    if (!trunk->in_step && trunk->num_admitted == 0) {
      num_blocks += static_cast<int32_t>(trunk->blocks.table().size());
    }
  }
  while (Sequence* next = flock_->Candidate(planned_us_)) {
    const SequenceBlocks::Need need = NeedOf(*next);
    const StepRow* leader = LeaderOf(*next, need.num_cached);
    if (leader != nullptr) {
      if (leader->sequence != nullptr) Inherit(leader->sequence, *next);
      flock_->SetAside(*next->request, planned_us_);
      continue;
    }
    const bool fits = next->slots_needed() <= num_free_slots && need.num_blocks <= num_blocks &&
                      (next->num_remaining() <= max_tokens || NumMissing(*next) <= max_tokens);
    if (fits) {
      if (bound && !(next->key() < *bound)) return nullptr;
      return flock_->Approves(planned_us_) ? next : nullptr;
    }
    if (!flock_->PassOver(planned_us_)) return nullptr;
  }
  return nullptr;
}

// The Decode-class request for which OneShot work makes and leaves room, if it will join: one that
// will be next.
const Sequence* Scheduler::ExpectedDecode() {
  const Sequence* head = waiting_.Head(false, true);
  if (head == nullptr || GoesByOrder(*head)) return head;
  return slots_used_ == config_.max_num_seqs ? nullptr : flock_->Candidate(planned_us_);
}

// Whether that one joins where it finds a slot and needs so many blocks, with those that are left
// to express work, of those there are. Were it one that the stop rule refuses, OneShot work would
// wait for nothing; but the rule is asked only about who could be admitted.
bool Scheduler::WillJoin(const Sequence& next, int32_t num_needed, int32_t num_blocks) {
  const bool by_order = &next == waiting_.Head(false, true) && GoesByOrder(next);
  return num_needed <= num_blocks && (by_order || flock_->Approves(planned_us_));
}

// How many more samples may run. A limit that falls below those who run lets nobody join and stops
// nobody; whoever comes first runs, whatever the limit.
int32_t Scheduler::NumFreeSlots() const {
  const bool limited = dynamic_ && slots_used_ > 0;
  return std::max(0, (limited ? dynamic_->limit() : config_.max_num_seqs) - slots_used_);
}

// Tells the decode set how long the step took that has ended.
void Scheduler::ObserveDecodeSet(TimeUs now_us) {
  if (!flock_ && !dynamic_) return;
  int64_t num_prefill_tokens = 0;
  for (const StepRow& row : step_.prefills) num_prefill_tokens += row.num_tokens;
  const int64_t num_decodes = std::ssize(step_.decodes);
  if (flock_) flock_->ObserveStep(num_decodes, num_prefill_tokens, step_.RanUs(now_us));
  // With prompts in it too: whoever decodes waits for them.
  if (dynamic_ && num_decodes > 0) dynamic_->ObserveStep(num_decodes, step_.RanUs(now_us));
}

// What a request held that has ended.
void Scheduler::ObserveEnd(const RequestRecord& request) {
  if (request.execution_class == ExecutionClass::kOneShot || !request.scheduled) return;
  for (const auto& sequence : request.sequences) {
    const int32_t num_shared = sequence->sample == 0 ? request.cached_tokens : request.prompt_len;
    const int32_t num_blocks = BlocksFor(std::ssize(sequence->tokens)) - num_shared / kBlockTokens;
    dynamic_->ObserveRequest(std::max(1, num_blocks));
  }
}

}  // namespace skein
