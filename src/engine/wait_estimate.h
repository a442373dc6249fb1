#pragma once

#include <cstdint>

#include "skein/request.h"

namespace skein {

// Estimates how long new work waits: the prompt tokens that wait, at the measured rate at which the
// engine has lately begun prompts. The rate holds what else the engine does in that time, such as
// decode steps. It is measured over steps during which prompts waited or ran, and older steps count
// for less. Not thread-safe.
class WaitEstimate {
 public:
  // `us_per_token`: the time of a prompt's token before any step was measured; 0: not known, and
  // nothing waits then.
  explicit WaitEstimate(double us_per_token = 0) : first_us_per_token_(us_per_token) {}

  // A step of `busy_us` began or ended with `num_tokens` prompt tokens done, cached ones included.
  void Observe(int64_t num_tokens, TimeUs busy_us);
  TimeUs WaitOf(int64_t num_waiting_tokens) const;

 private:
  static constexpr double kMemoryUs = 5e6;  // busy time after which a step counts 1 / e

  double first_us_per_token_;
  double tokens_ = 0;  // weighted sums
  double busy_us_ = 0;
};

}  // namespace skein
