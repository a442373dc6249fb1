#include "sched/decode_set/load_estimate.h"

#include <algorithm>

namespace skein {

void LoadEstimate::NoteArrival(int32_t prompt_tokens, int32_t budget, TimeUs now_us) {
  arrivals_us_[num_arrivals_ % kWindow] = now_us;
  const double rate = std::max(kRate, 1.0 / static_cast<double>(++num_arrivals_));
  prompt_tokens_ += rate * (prompt_tokens - prompt_tokens_);
  budget_ += rate * (budget - budget_);
}

void LoadEstimate::NoteEnd(int32_t num_tokens, int32_t budget) {
  if (budget < 1) return;
  const double rate = std::max(kRate, 1.0 / static_cast<double>(++num_ends_));
  output_share_ += rate * (static_cast<double>(num_tokens) / budget - output_share_);
}

double LoadEstimate::ArrivalsPerS(TimeUs now_us) const {
  if (num_arrivals_ < kLeast) return 0;
  const int64_t count = std::min(num_arrivals_, kWindow);
  const TimeUs first_us = arrivals_us_[(num_arrivals_ - count) % kWindow];
  constexpr TimeUs kLeastUs = 1000;  // for requests that arrive together
  return 1e6 * static_cast<double>(count - 1) /
         static_cast<double>(std::max(kLeastUs, now_us - first_us));
}

}  // namespace skein
