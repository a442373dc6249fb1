#pragma once

#include <cstddef>
#include <cstdint>

#include "sched/batching/fit_tree.h"
#include "sched/sequence.h"

namespace skein {

// The sequences that wait, in four sets. OneShot requests and requests that want decode slots are
// two classes. Each class has a set of new sequences and a set of preempted sequences; the
// preempted ones go before all new ones. Each set is ordered by key; the first sequences of both
// classes compete by key. O(log waiting) per change. Not thread-safe.
class WaitingSets {
 public:
  void Insert(Sequence* sequence);
  // REQUIRES: the sequence is in its set; its key, its state and its tokens to be computed are
  // unchanged since Insert.
  void Erase(Sequence* sequence);
  // REQUIRES: the sequence waits.
  bool Contains(const Sequence& sequence) const;

  // The first sequence, in order, of the wanted classes; null: there is none. While a preempted
  // sequence waits, no new sequence of its class goes before it.
  Sequence* Head(bool want_oneshot, bool want_decode) const;
  // The first new sequence behind `after` (null: from the beginning) with at most `max_tokens`
  // prompt tokens to be computed. Classes are as in Head. O(log waiting).
  Sequence* NextFitting(const SequenceKey* after, int32_t max_tokens, bool want_oneshot,
                        bool want_decode) const;

  bool empty() const { return num_preempted() + num_new() == 0; }
  size_t num_preempted() const { return oneshot_.preempted.size() + decode_.preempted.size(); }
  // Prompt tokens of the class's new sequences.
  int64_t num_new_tokens(ExecutionClass of_class) const {
    return (of_class == ExecutionClass::kOneShot ? oneshot_ : decode_).num_new_tokens;
  }
  // The most tokens of output of new sequences.
  int64_t new_budget() const { return decode_.new_budget; }
  size_t num_new() const { return oneshot_.fresh.size() + decode_.fresh.size(); }

 private:
  // The earlier of two sequences by key; either may be null.
  static Sequence* Earlier(Sequence* a, Sequence* b);
  // The set of `sets`, const or not, to which the sequence belongs.
  template <typename Sets>
  static auto& SetOf(Sets& sets, const Sequence& sequence);
  // If the sequence is new, adds its prompt `times` times to its class's tokens.
  void CountTokens(const Sequence& sequence, int times);

  struct Class {
    FitTree preempted;
    FitTree fresh;
    int64_t num_new_tokens = 0;  // sum of the prompts of `fresh`
    int64_t new_budget = 0;      // sum of its budgets
  };

  Class oneshot_;
  Class decode_;
};

}  // namespace skein
