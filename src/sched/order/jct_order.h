#pragma once

#include <cstdint>

#include "sched/config.h"
#include "sched/cost_model.h"

namespace skein {

// Shortest remaining job first, aged (PrefillOnly, section 6): the score of a waiting request is
//
//   jct(prompt, cached) - lambda * (now - arrival)
//
// and the least goes first. `now` is the same for all, so the order is that of
// jct + lambda * arrival: a key that changes only with the request's own share of the cache and
// with the cost model's version. Integers, so equal scores are equal.
//
// The job completion time is the number of missing tokens (the default: the paper's proxy), or what
// the cost model predicts for them, in microseconds. `aging` is lambda as a share of the device's
// speed: after waiting for a second a request counts as shorter by what the device does in `aging`
// seconds. Without a fit the device is taken for one that computes kUnknownSpeed tokens per second,
// so 0.1 is the paper's 500.
class JctOrder {
 public:
  static constexpr double kUnknownSpeed = 5000;

  // REQUIRES: as MakeSchedulerConfig makes it.
  explicit JctOrder(const SchedulerConfig& config);

  // The rank of a request; `cost` is the model whose version is in force.
  int64_t RankOf(int32_t prompt_len, int32_t num_cached, TimeUs arrival_us) const;
  // Takes over a new version. True if ranks made before are void.
  bool Adopt(const CostFit& fit);

  // Proxy: tokens per second waited. Model: thousandths of a second per second.
  int64_t lambda() const { return lambda_; }

 private:
  Jct jct_;
  double aging_;
  CostFit fit_;
  int64_t lambda_ = 0;
};

}  // namespace skein
