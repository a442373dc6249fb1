#include "sched/decode_set/measured_cost.h"

#include <algorithm>
#include <cmath>

namespace skein {
namespace {

// The time of a step if all of its tokens fit the cache.
double WithoutMissesUs(DecodeFit fit, const DecodeWork& work) {
  fit.cache_tokens = std::max(fit.cache_tokens, work.unique);
  return PredictUs(fit, work);
}

}  // namespace

double MeasuredCost::MissedPart(const DecodeWork& work) const {
  return 1 - WithoutMissesUs(profile_, work) / skein::PredictUs(profile_, work);
}

double MeasuredCost::CacheBy(const DecodeWork& work, double us) {
  const double without_us = WithoutMissesUs(profile_, work);
  const double missed_us = skein::PredictUs(profile_, work) - without_us;
  if (us - without_us <= kFewMisses * missed_us) {
    const double growth = since_missed_ >= kLatestSteps ? kGrowth : 1;
    return std::max(fit_.cache_tokens, growth * work.unique);
  }
  since_missed_ = 0;
  const double hidden = std::max(0.0, profile_.arithmetic_share * work.asked - work.unique);
  const double missed = hidden + (us - without_us) / profile_.token_us;
  return work.unique * (1 - missed / (work.asked - work.unique));
}

void MeasuredCost::Observe(const DecodeWork& work, double us) {
  ++since_missed_;
  const double part = MissedPart(work);
  if (part < kLeastPart) {
    if (part > kMostPart) return;
    const double most = std::log(kMaxFactor);
    const double log_ratio = std::log(us / skein::PredictUs(profile_, work));
    const double rate = std::max(kFactorRate, 1.0 / static_cast<double>(++num_factors_));
    log_factor_ += rate * (std::clamp(log_ratio, -most, 0.0) - log_factor_);
    return;
  }
  const double cache = CacheBy(work, us / std::exp(log_factor_));
  const double change = std::max(profile_.cache_tokens, cache) - fit_.cache_tokens;
  if (std::abs(change) < kError * work.unique) return;
  fit_.cache_tokens += std::min(kMostRate, kCacheRate * part) * change;
}

}  // namespace skein
