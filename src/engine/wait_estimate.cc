#include "engine/wait_estimate.h"

#include <algorithm>
#include <cmath>

namespace skein {

void WaitEstimate::Observe(int64_t num_tokens, TimeUs busy_us) {
  if (busy_us <= 0) return;
  const double weight = std::exp(-static_cast<double>(busy_us) / kMemoryUs);
  tokens_ = weight * tokens_ + static_cast<double>(num_tokens);
  busy_us_ = weight * busy_us_ + static_cast<double>(busy_us);
}

TimeUs WaitEstimate::WaitOf(int64_t num_waiting_tokens) const {
  constexpr double kMaxUs = 1e15;
  // A measured rate needs at least one token, and says little if it was measured for less than a
  // step.
  const double us_per_token = tokens_ >= 1 ? busy_us_ / tokens_ : first_us_per_token_;
  return std::llround(std::min(
      kMaxUs, us_per_token * static_cast<double>(std::max<int64_t>(0, num_waiting_tokens))));
}

}  // namespace skein
