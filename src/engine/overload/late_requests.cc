#include "engine/overload/late_requests.h"

#include <algorithm>
#include <utility>

namespace skein {
namespace {

constexpr TimeUs kLookUs = 250'000;  // between two looks at an arrival that is soon late

// Sums of times may exceed the largest time.
TimeUs After(TimeUs begin_us, TimeUs us) {
  return us < WaitLimits::kNever - begin_us ? begin_us + us : WaitLimits::kNever;
}

}  // namespace

TimeUs LateRequests::StartUs(const Entry& entry, const WaitEstimate& estimate) {
  TimeUs start_us = WaitLimits::kNever;
  for (const WaitLimits& limits : entry.limits) {
    start_us = std::min(start_us, limits.StartUs(estimate));
  }
  return After(entry.arrival_us, start_us);
}

TimeUs LateRequests::EndUs(const Entry& entry) {
  TimeUs end_us = WaitLimits::kNever;
  for (const WaitLimits& limits : entry.limits) end_us = std::min(end_us, limits.end_us);
  return After(entry.arrival_us, end_us);
}

int LateRequests::NumQueued(const Entry& entry, EngineCore* core) {
  int count = 0;
  for (size_t i = 0; i < entry.limits.size(); ++i) count += core->IsQueued(entry.first_id + i);
  return count;
}

void LateRequests::Note(RequestId first_id, TimeUs arrival_us, std::span<const WaitLimits> limits) {
  if (std::ranges::none_of(limits, &WaitLimits::bounded)) return;
  Entry entry = {first_id, arrival_us, {limits.begin(), limits.end()}};
  // The first look is as early as any estimate can make it.
  TimeUs least_us = WaitLimits::kNever;
  for (const WaitLimits& of_one : limits) {
    least_us =
        std::min({least_us, of_one.least_start_us, of_one.slo_ttft_us.value_or(least_us) / 2});
  }
  entries_.emplace(After(arrival_us, least_us), std::move(entry));
}

void LateRequests::End(const WaitEstimate& estimate, TimeUs now_us, EngineCore* core) {
  while (!entries_.empty() && entries_.begin()->first <= now_us) {
    auto node = entries_.extract(entries_.begin());
    const Entry& entry = node.mapped();
    const int num_queued = NumQueued(entry, core);
    if (num_queued == 0) continue;
    const bool begun = num_queued < std::ssize(entry.limits);
    const TimeUs late_us = begun ? EndUs(entry) : StartUs(entry, estimate);
    if (now_us >= late_us) {
      for (size_t i = 0; i < entry.limits.size(); ++i) {
        core->EndQueued(entry.first_id + i,
                        Status(StatusCode::kResourceExhausted,
                               "the request has waited too long without being begun"));
      }
    } else if (late_us != WaitLimits::kNever) {
      // A longer expected run makes it late earlier.
      node.key() = std::min(late_us, now_us + kLookUs);
      entries_.insert(std::move(node));
    }
  }
  if (entries_.size() >= limit_) Purge(core);
}

void LateRequests::Purge(EngineCore* core) {
  std::erase_if(entries_, [core](const auto& entry) { return NumQueued(entry.second, core) == 0; });
  limit_ = 2 * entries_.size() + kEntries;
}

}  // namespace skein
