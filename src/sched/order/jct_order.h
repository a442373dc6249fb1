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
// and the least goes first. `now` is the same for all, so jct + lambda * arrival gives the same
// order. That key changes only with the cached share of the request's prompt and with the cost
// model's version. Scores are integers, so ties are exact. Order `srjf` keeps the rank of the
// arrival, `srjf-calibrated` follows the cache and the cost model.
//
// The job completion time is the number of missing tokens (the default: the paper's proxy), or the
// cost model's prediction for them, in microseconds. `aging` is lambda as a share of the device's
// speed. After a second of waiting, a request counts as shorter by the work of `aging` seconds of
// the device. Without a fit the device is taken for one that computes kUnknownSpeed tokens per
// second, so 0.1 is the paper's 500.
class JctOrder final : public OrderPolicy {
 public:
  static constexpr double kUnknownSpeed = 5000;

  // REQUIRES: as MakeSchedulerConfig makes it.
  explicit JctOrder(const SchedulerConfig& config);

  Ranking RankArrival(const OrderView& view, TimeUs now_us) override;
  std::optional<Ranking> Rerank(const OrderView& view, TimeUs now_us) const override;
  bool LooksAtCache() const override { return true; }
  bool FollowsCache() const override { return calibrated_; }
  bool NeedsCosts() const override { return true; }
  bool AdoptCosts(const CostFit& fit) override { return calibrated_ && Adopt(fit); }

  // The rank of a request that arrived `arrival_us` after the first one.
  int64_t RankOf(int32_t prompt_len, int32_t num_cached, TimeUs arrival_us) const;
  // Takes over a new version. True if ranks made before are void.
  bool Adopt(const CostFit& fit);

  // Proxy: tokens per second waited. Model: thousandths of a second per second.
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
