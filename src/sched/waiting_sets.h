#pragma once

#include <cstddef>
#include <cstdint>

#include "sched/batching/fit_tree.h"
#include "sched/sequence.h"

namespace skein {

// The sequences that wait, in four sets: OneShot work and requests that want decode slots, of each
// class the new ones and the preempted ones, which go before all new ones. Each set is in the order
// of its keys; the heads of both classes compete by key. O(log waiting) per change. Not
// thread-safe.
class WaitingSets {
 public:
  void Insert(Sequence* sequence);
  // REQUIRES: the sequence is in its set; its key, its state and its tokens to be computed are
  // unchanged since Insert.
  void Erase(Sequence* sequence);
  // REQUIRES: the sequence waits.
  bool Contains(const Sequence& sequence) const;

  // The first by order among those whose class is wanted, or null. While a preempted sequence
  // waits, no new one of its class goes before it.
  Sequence* Head(bool want_oneshot, bool want_decode) const;
  // Of those in the order behind `after` (null: from its beginning), the first new one whose prompt
  // has at most `max_tokens` to be computed; classes as in Head. O(log waiting).
  Sequence* NextFitting(const SequenceKey* after, int32_t max_tokens, bool want_oneshot,
                        bool want_decode) const;

  bool empty() const { return num_preempted() + num_new() == 0; }
  size_t num_preempted() const { return oneshot_.preempted.size() + decode_.preempted.size(); }
  size_t num_new() const { return oneshot_.fresh.size() + decode_.fresh.size(); }

 private:
  // The earlier of two by key; either may be null.
  static Sequence* Earlier(Sequence* a, Sequence* b);
  // Of `sets`, const or not, the one where the sequence belongs.
  template <typename Sets>
  static auto& SetOf(Sets& sets, const Sequence& sequence);

  struct Class {
    FitTree preempted;
    FitTree fresh;
  };

  Class oneshot_;
  Class decode_;
};

}  // namespace skein
