#pragma once

#include <cstdint>
#include <optional>

#include "sched/config.h"
#include "sched/cost_model.h"
#include "sched/order/order_policy.h"

namespace skein {

// Shortest remaining job first, aged (PrefillOnly, section 6): the score of a waiting request is
//
//   jct(prompt, cached) - lambda * (now - arrival)
//
// and the least score goes first. `now` is the same for all requests, so jct + lambda * arrival
// gives the same order. That sum changes only with the cached share of the request's prompt and
// with the cost model's version. Scores are integers, so ties are exact. Order `srjf` keeps the
// rank of the arrival. Order `srjf-calibrated` follows the cache and the cost model.
//
// The job completion time is the number of missing tokens (the default: the paper's proxy), or the
// cost model's prediction for them, in microseconds. `aging` is lambda as a share of the device's
// speed. After a second of waiting, a request counts as shorter by the work of `aging` seconds of
// the device. Without a fit, the device is assumed to compute kUnknownSpeed tokens per second, so
// an `aging` of 0.1 is the paper's lambda of 500.
class JctOrder final : public OrderPolicy {
 public:
  static constexpr double kUnknownSpeed = 5000;

  // REQUIRES: `config` comes from MakeSchedulerConfig.
  explicit JctOrder(const SchedulerConfig& config);

  Ranking RankArrival(const OrderView& view, TimeUs now_us) override;
  std::optional<Ranking> Rerank(const OrderView& view, TimeUs now_us) const override;
  bool LooksAtCache() const override { return true; }
  bool FollowsCache() const override { return calibrated_; }
  bool NeedsCosts() const override { return true; }
  bool AdoptCosts(const CostFit& fit) override { return calibrated_ && Adopt(fit); }

  // The rank of a request that arrived `arrival_us` after the first request.
  int64_t RankOf(int32_t prompt_len, int32_t num_cached, TimeUs arrival_us) const;
  // Adopts a new version of the cost model. Returns true if earlier ranks are void.
  bool Adopt(const CostFit& fit);

  // With kMissingTokens: tokens per second waited. With kModel: milliseconds per second waited.
  int64_t lambda() const { return lambda_; }

 private:
  const bool calibrated_;
  const Jct jct_;
  const double aging_;
  CostFit fit_;
  int64_t lambda_ = 0;
  std::optional<TimeUs> first_arrival_us_;
};

}  // namespace skein
