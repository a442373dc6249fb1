#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "skein/request.h"

namespace skein {

// Bounds the time of steps that compute prompts beside decodes. Each decode gets one token of such
// a step, so that full steps of a slow device make a short answer take minutes. The time of a token
// is measured, by the latest steps the most. Not thread-safe.
class MixedPace {
 public:
  // A smaller step would hardly be shorter.
  static constexpr int64_t kMinTokens = 64;

  // 0: no bound.
  void set_bound_us(TimeUs us) { bound_us_ = us; }
  // The most prompt tokens of a step with decodes; nullopt: any number.
  std::optional<int64_t> PromptTokens() const {
    if (bound_us_ == 0 || num_tokens_ == 0) return std::nullopt;
    const double tokens = static_cast<double>(bound_us_) * num_tokens_ / us_;
    return std::max(kMinTokens, static_cast<int64_t>(std::min(tokens, 1e9)));
  }
  // A step with so many prompt tokens has taken `us`.
  void Observe(int64_t num_prompt_tokens, TimeUs us) {
    if (num_prompt_tokens == 0 || us <= 0) return;
    num_tokens_ = kKept * num_tokens_ + static_cast<double>(num_prompt_tokens);
    us_ = kKept * us_ + static_cast<double>(us);
  }

 private:
  static constexpr double kKept = 0.75;  // of the weight of the steps before

  TimeUs bound_us_ = 0;
  double num_tokens_ = 0;  // weighted sums
  double us_ = 0;
};

}  // namespace skein
