#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "sched/sequence.h"

namespace skein {

// The times at which ranks change by the clock alone. A request has at most one timer; its time is
// in RequestRecord::rank_until_us. O(log requests) a change. Not thread-safe.
class RankTimers {
 public:
  static constexpr TimeUs kNever = std::numeric_limits<TimeUs>::max();

  // Sets the time at which the rank of the sequence's request changes. Replaces an earlier time.
  void Set(Sequence* sequence, TimeUs until_us);
  void Clear(Sequence* sequence) { Set(sequence, kNever); }
  // Removes the earliest timer that is due and returns its sequence; null: none is due.
  Sequence* TakeDue(TimeUs now_us);
  // The time of the earliest timer; nullopt: there is none.
  std::optional<TimeUs> Next() const;
  size_t size() const { return timers_.size(); }

 private:
  std::map<std::pair<TimeUs, uint64_t>, Sequence*> timers_;  // by time and arrival
};

}  // namespace skein
