#include "base/rank_gate.h"

#include "base/check.h"

namespace skein {

bool RankGate::Enter(int64_t i) {
  const auto operator_number = static_cast<uint64_t>(i);
  uint64_t word = word_.load(std::memory_order_relaxed);
  for (;;) {
    const uint64_t highest = word >> kHighestShift;
    SKEIN_CHECK(i >= 0 && operator_number <= highest);
    if (operator_number < highest) return true;
    if (word & kStopping) return false;
    const uint64_t raised = (highest + 1) << kHighestShift;
    if (word_.compare_exchange_weak(word, raised, std::memory_order_relaxed)) return true;
  }
}

}  // namespace skein
