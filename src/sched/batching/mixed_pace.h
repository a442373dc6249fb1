#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "skein/request.h"

namespace skein {

// Bounds the time of steps that compute prompts beside decodes. Each decode gets only one token
// from such a step. On a slow device, full steps therefore make a short answer take minutes. The
// time per prompt token is measured; the latest steps weigh the most. Not thread-safe.
class MixedPace {
 public:
  // A step with fewer prompt tokens would hardly take less time.
  static constexpr int64_t kMinTokens = 64;

  // Sets the most time that a step with prompts and decodes may take; 0: no bound.
  void set_bound_us(TimeUs us) { bound_us_ = us; }
  // The most prompt tokens that a step with decodes may have; nullopt: any number.
  std::optional<int64_t> PromptTokens() const {
    if (bound_us_ == 0 || num_tokens_ == 0) return std::nullopt;
    const double tokens = static_cast<double>(bound_us_) * num_tokens_ / us_;
    return std::max(kMinTokens, static_cast<int64_t>(std::min(tokens, 1e9)));
  }
  // Notes that a step with `num_prompt_tokens` has taken `us`.
  void Observe(int64_t num_prompt_tokens, TimeUs us) {
    if (num_prompt_tokens == 0 || us <= 0) return;
    num_tokens_ = kKept * num_tokens_ + static_cast<double>(num_prompt_tokens);
    us_ = kKept * us_ + static_cast<double>(us);
  }

 private:
  static constexpr double kKept = 0.75;  // share of the weight that earlier steps keep

  TimeUs bound_us_ = 0;
  double num_tokens_ = 0;  // weighted sums
  double us_ = 0;
};

}  // namespace skein
