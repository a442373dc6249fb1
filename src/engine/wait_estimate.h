#pragma once

#include <cstdint>

#include "skein/request.h"

namespace skein {

// Estimates how long new work waits: the time of the waiting prompt tokens, at the measured rate at
// which the engine has lately begun prompts. The rate includes other work of that time, such as
// decode steps. It is measured over steps during which prompts waited or ran. Older steps count
// less. Not thread-safe.
class WaitEstimate {
 public:
  // `us_per_token`: the time of a prompt token before any step was measured. 0: not known; the
  // estimated wait is then 0.
  explicit WaitEstimate(double us_per_token = 0) : first_us_per_token_(us_per_token) {}

  // A step that took `busy_us` has computed `num_tokens` prompt tokens, including cached ones.
  void Observe(int64_t num_tokens, TimeUs busy_us);
  TimeUs WaitOf(int64_t num_waiting_tokens) const;

 private:
  static constexpr double kMemoryUs = 5e6;  // after this busy time, a step counts 1 / e

  double first_us_per_token_;
  double tokens_ = 0;  // weighted sums
  double busy_us_ = 0;
};

}  // namespace skein
