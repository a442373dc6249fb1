#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"

namespace skein {

// Estimates the rate of arrivals and the mean size of requests from the latest requests. Not
// thread-safe.
class LoadEstimate {
 public:
  // A request with this prompt and at most `budget` tokens of output has arrived.
  void NoteArrival(int32_t prompt_tokens, int32_t budget, TimeUs now_us);
  // A request has ended after `num_tokens` of output.
  void NoteEnd(int32_t num_tokens, int32_t budget);

  // Arrivals per second, over the latest kWindow arrivals and the time since the last one. 0 before
  // kLeast arrivals.
  double ArrivalsPerS(TimeUs now_us) const;
  double prompt_tokens() const { return prompt_tokens_; }
  // The expected output of a request.
  double output_tokens() const { return budget_ * output_share_; }
  double output_share() const { return output_share_; }  // as a share of its budget

 private:
  static constexpr int64_t kWindow = 32;
  static constexpr int64_t kLeast = 8;
  static constexpr double kRate = 1.0 / 32;  // weight of a new value in the exponential means

  std::array<TimeUs, kWindow> arrivals_us_{};  // a ring buffer
  int64_t num_arrivals_ = 0;
  int64_t num_ends_ = 0;
  double prompt_tokens_ = 0;
  double budget_ = 0;
  double output_share_ = 1;  // output over budget
};

}  // namespace skein
