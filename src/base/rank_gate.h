#pragma once

#include <atomic>
#include <cstdint>

namespace skein {

// Where the ranks of a tensor-parallel task may be suspended. All ranks run the same operators, and
// some of those wait for all ranks (an all-reduce): a rank that stopped before one that another has
// begun would keep that one waiting for ever. So ranks stop at the same operator or not at all
// (FlowPrefill, section 4: they share an iteration counter).
//
//   highest: the number of operators that some rank has begun
//
//   Enter(i), going on:   i < highest: another rank is ahead, begin; i == highest: raise it, begin
//   Enter(i), stopping:   i < highest: another rank has begun i, so begin, too; i == highest: stop
//
// `highest` and whether the ranks are to stop are one word: from the moment of Stop no rank raises
// it, so it names the operator at which all of them meet. A rank that is ahead pays one exchange
// for an operator, the others one load. Thread-safe.
class RankGate {
 public:
  // Before operator `i` of the task, i = 0, 1, 2, ...: true if the rank is to begin it; false if it
  // is to stand still, as every other rank will before the same operator. What has been told once
  // holds until GoOn.
  bool Enter(int64_t i);

  // From anywhere, at any time: the ranks are to stand still soon. Ranks that have begun the task's
  // last operator end it instead, all of them.
  void Stop() { word_.fetch_or(kStopping, std::memory_order_relaxed); }

  // The ranks may enter again, before the operator at which they stopped. REQUIRES: every rank
  // stands still or has ended the task. A signal that came since is lost.
  void GoOn() { word_.fetch_and(~kStopping, std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kStopping = 1;
  static constexpr int kHighestShift = 1;

  std::atomic<uint64_t> word_{0};  // highest, and kStopping
};

}  // namespace skein
