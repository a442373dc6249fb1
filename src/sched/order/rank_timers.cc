#include "sched/order/rank_timers.h"

#include "base/check.h"

namespace skein {

void RankTimers::Set(Sequence* sequence, TimeUs until_us) {
  RequestRecord* request = sequence->request;
  if (request->rank_until_us == until_us) return;
  if (request->rank_until_us != kNever) {
    SKEIN_CHECK(timers_.erase({request->rank_until_us, request->arrival}) == 1);
  }
  request->rank_until_us = until_us;
  if (until_us == kNever) return;
  SKEIN_CHECK(timers_.emplace(std::pair(until_us, request->arrival), sequence).second);
}

Sequence* RankTimers::TakeDue(TimeUs now_us) {
  if (timers_.empty() || timers_.begin()->first.first > now_us) return nullptr;
  Sequence* sequence = timers_.begin()->second;
  Clear(sequence);
  return sequence;
}

std::optional<TimeUs> RankTimers::Next() const {
  if (timers_.empty()) return std::nullopt;
  return timers_.begin()->first.first;
}

}  // namespace skein
