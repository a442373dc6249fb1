#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "engine/engine_core.h"
#include "engine/overload/wait_limits.h"

namespace skein {

// Ends requests that have waited so long that their answers would come too late, before any work is
// done for them. The requests of one arrival end together, and only while none of them has begun:
// else the work that was begun would be lost. Requests that are left of such an arrival end once
// their clients have probably given up. Not thread-safe; of the engine's thread.
class LateRequests {
 public:
  // Requests that arrived together, numbered from `first_id`. REQUIRES: they are not empty.
  void Note(RequestId first_id, TimeUs arrival_us, std::span<const WaitLimits> limits);
  // Ends the requests that are late by now.
  void End(const WaitEstimate& estimate, TimeUs now_us, EngineCore* core);
  void Clear() { entries_.clear(); }
  // Arrivals that may have requests that have not begun.
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    RequestId first_id = 0;
    TimeUs arrival_us = 0;
    std::vector<WaitLimits> limits;  // [requests]
  };
  using Entries = std::multimap<TimeUs, Entry>;  // by the time of the next look

  static TimeUs StartUs(const Entry& entry, const WaitEstimate& estimate);
  static TimeUs EndUs(const Entry& entry);
  static int NumQueued(const Entry& entry, EngineCore* core);
  void Purge(EngineCore* core);

  static constexpr size_t kEntries = 1024;
  Entries entries_;
  size_t limit_ = kEntries;  // at this size, those that have begun are erased
};

}  // namespace skein
