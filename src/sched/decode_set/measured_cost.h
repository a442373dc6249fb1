#pragma once

#include <algorithm>
#include <cstdint>

#include "sched/decode_set/decode_cost.h"

namespace skein {

// The time of steps of decodes: a profile's fit, whose cache measured steps may enlarge. On a
// device that reads fewer tokens again than the fit says, batches of many prefixes are faster than
// predicted. Batches whose prefixes fit the cache show nothing of it.
//
// A step tells the size of the cache if the fit predicts many misses for it: its time says how many
// tokens it read again, and these say the size. A step with few misses only shows that its tokens
// fit. If none of the latest kLatestSteps steps missed, the cache counts as kGrowth times as large
// as these tokens: larger batches will tell. The estimate is an exponential mean, never below the
// size in the fit. If steps without predicted misses take less time than by the fit, a step's time
// is first divided by their factor, which is at least 1 / kMaxFactor. Slower steps have no factor:
// misses are never explained away. Deterministic, allocates nothing. Not thread-safe.
class MeasuredCost {
 public:
  static constexpr double kMaxFactor = 2;
  static constexpr double kGrowth = 2;

  explicit MeasuredCost(const DecodeFit& fit) : profile_(fit), fit_(fit) {}

  // The fit with the estimated cache.
  const DecodeFit& fit() const { return fit_; }
  bool known() const { return profile_ != DecodeFit{}; }
  double PredictUs(const DecodeWork& work) const { return skein::PredictUs(fit_, work); }
  // The change of the estimated cache from `tokens`, as a share of these, or of `least` if that is
  // more.
  double CacheChange(double tokens, double least) const {
    return (fit_.cache_tokens - tokens) / std::max({1.0, tokens, least});
  }
  // A step of decodes alone took `us`. REQUIRES: known(), us > 0.
  void Observe(const DecodeWork& work, double us);

 private:
  static constexpr int64_t kLatestSteps = 1000;
  static constexpr double kLeastPart = 0.2;   // of a step's predicted time: its misses
  static constexpr double kMostPart = 0.01;   // the same, of steps whose factor counts
  static constexpr double kFewMisses = 0.25;  // as a share of the predicted ones
  static constexpr double kError = 0.1;       // of a told size, as a share of the step's tokens
  static constexpr double kFactorRate = 1.0 / 16;
  // A told size has this weight for each part of the step's time that is predicted misses, at most
  // kMostRate.
  static constexpr double kCacheRate = 2;
  static constexpr double kMostRate = 0.5;

  // The part of a step's time that the profile gives to misses.
  double MissedPart(const DecodeWork& work) const;
  // The size of the cache that a step tells; `us` is already divided by the factor.
  double CacheBy(const DecodeWork& work, double us);

  DecodeFit profile_;
  DecodeFit fit_;
  double log_factor_ = 0;                // of steps without predicted misses; at most 0
  int64_t num_factors_ = 0;              // steps that it counts
  int64_t since_missed_ = kLatestSteps;  // steps since the latest one with misses
};

}  // namespace skein
