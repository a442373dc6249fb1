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

void WaitingSets::Insert(Sequence* sequence) {
  SKEIN_CHECK(SetOf(*this, *sequence).emplace(sequence->key(), sequence).second);
}

void WaitingSets::Erase(Sequence* sequence) {
  SKEIN_CHECK(SetOf(*this, *sequence).erase(sequence->key()) == 1);
}

bool WaitingSets::Contains(const Sequence& sequence) const {
  return SetOf(*this, sequence).contains(sequence.key());
}

Sequence* WaitingSets::PreemptedHead() const {
  return preempted_.empty() ? nullptr : preempted_.begin()->second;
}

Sequence* WaitingSets::Head(bool want_oneshot, bool want_decode) const {
  if (Sequence* head = PreemptedHead(); head != nullptr) {
    if (head->oneshot() ? want_oneshot : want_decode) return head;
    (head->oneshot() ? want_oneshot : want_decode) = false;
  }
  Sequence* oneshot = want_oneshot && !oneshot_.empty() ? oneshot_.begin()->second : nullptr;
  Sequence* decode = want_decode && !decode_.empty() ? decode_.begin()->second : nullptr;
  if (oneshot == nullptr || decode == nullptr) return oneshot != nullptr ? oneshot : decode;
  return oneshot->key() < decode->key() ? oneshot : decode;
}

}  // namespace skein
