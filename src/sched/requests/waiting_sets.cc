#include "sched/requests/waiting_sets.h"

#include "base/check.h"

namespace skein {

template <typename Sets>
auto& WaitingSets::SetOf(Sets& sets, const Sequence& sequence) {
  SKEIN_CHECK(sequence.state == SequenceState::kWaiting ||
              sequence.state == SequenceState::kPreempted);
  auto& of_class = sequence.oneshot() ? sets.oneshot_ : sets.decode_;
  return sequence.state == SequenceState::kPreempted ? of_class.preempted : of_class.fresh;
}

Sequence* WaitingSets::Earlier(Sequence* a, Sequence* b) {
  if (a == nullptr || b == nullptr) return a != nullptr ? a : b;
  return a->key() < b->key() ? a : b;
}

void WaitingSets::CountTokens(const Sequence& sequence, int times) {
  if (sequence.state != SequenceState::kWaiting) return;
  Class& of_class = sequence.oneshot() ? oneshot_ : decode_;
  of_class.num_new_tokens += times * int64_t{sequence.request->prompt_len};
  of_class.new_budget += times * int64_t{sequence.request->budget};
}

void WaitingSets::Insert(Sequence* sequence) {
  SKEIN_CHECK(
      SetOf(*this, *sequence).Insert(sequence->key(), sequence->request->num_missing, sequence));
  CountTokens(*sequence, 1);
}

void WaitingSets::Erase(Sequence* sequence) {
  SKEIN_CHECK(SetOf(*this, *sequence).Erase(sequence->key()));
  CountTokens(*sequence, -1);
}

bool WaitingSets::Contains(const Sequence& sequence) const {
  return SetOf(*this, sequence).Contains(sequence.key());
}

Sequence* WaitingSets::Head(bool want_oneshot, bool want_decode) const {
  Sequence* preempted = Earlier(want_oneshot ? oneshot_.preempted.First() : nullptr,
                                want_decode ? decode_.preempted.First() : nullptr);
  if (preempted != nullptr) return preempted;
  return Earlier(want_oneshot && oneshot_.preempted.empty() ? oneshot_.fresh.First() : nullptr,
                 want_decode && decode_.preempted.empty() ? decode_.fresh.First() : nullptr);
}

Sequence* WaitingSets::NextFitting(const SequenceKey* after, int32_t max_tokens, bool want_oneshot,
                                   bool want_decode) const {
  const auto next = [&](const Class& of_class) {
    return of_class.preempted.empty() ? of_class.fresh.NextFitting(after, max_tokens) : nullptr;
  };
  return Earlier(want_oneshot ? next(oneshot_) : nullptr, want_decode ? next(decode_) : nullptr);
}

}  // namespace skein
