#include "sched/waiting_sets.h"

#include "base/check.h"

namespace skein {

template <typename Sets>
auto& WaitingSets::SetOf(Sets& sets, const Sequence& sequence) {
  SKEIN_CHECK(sequence.state == SequenceState::kWaiting ||
              sequence.state == SequenceState::kPreempted);
  if (sequence.state == SequenceState::kPreempted) return sets.preempted_;
  return sequence.oneshot() ? sets.oneshot_ : sets.decode_;
}

Sequence* WaitingSets::Earlier(Sequence* a, Sequence* b) {
  if (a == nullptr || b == nullptr) return a != nullptr ? a : b;
  return a->key() < b->key() ? a : b;
}

void WaitingSets::Insert(Sequence* sequence) {
  SKEIN_CHECK(
      SetOf(*this, *sequence).Insert(sequence->key(), sequence->request->num_missing, sequence));
}

void WaitingSets::Erase(Sequence* sequence) {
  SKEIN_CHECK(SetOf(*this, *sequence).Erase(sequence->key()));
}

bool WaitingSets::Contains(const Sequence& sequence) const {
  return SetOf(*this, sequence).Contains(sequence.key());
}

Sequence* WaitingSets::PreemptedHead() const { return preempted_.First(); }

Sequence* WaitingSets::Head(bool want_oneshot, bool want_decode) const {
  if (Sequence* head = PreemptedHead(); head != nullptr) {
    if (head->oneshot() ? want_oneshot : want_decode) return head;
    (head->oneshot() ? want_oneshot : want_decode) = false;
  }
  return Earlier(want_oneshot ? oneshot_.First() : nullptr,
                 want_decode ? decode_.First() : nullptr);
}

Sequence* WaitingSets::NextFitting(const SequenceKey* after, int32_t max_tokens, bool want_oneshot,
                                   bool want_decode) const {
  if (const Sequence* head = PreemptedHead(); head != nullptr) {
    (head->oneshot() ? want_oneshot : want_decode) = false;
  }
  return Earlier(want_oneshot ? oneshot_.NextFitting(after, max_tokens) : nullptr,
                 want_decode ? decode_.NextFitting(after, max_tokens) : nullptr);
}

}  // namespace skein
