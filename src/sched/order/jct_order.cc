#include "sched/order/jct_order.h"

#include <algorithm>
#include <cmath>

namespace skein {
namespace {

// The bound of lambda. With it, ranks stay below 2^63 for years of microseconds.
constexpr double kMaxLambda = 100'000;

// The device's speed for prompts of middle length, which take most of the time.
double TokensPerSecond(const CostFit& fit) {
  constexpr int64_t kTokens = 1024;
  if (fit == CostFit{}) return JctOrder::kUnknownSpeed;
  return 1e6 * kTokens / PredictUs(fit, WorkOf(kTokens, 0));
}

}  // namespace

JctOrder::JctOrder(const SchedulerConfig& config)
    : calibrated_(config.policies.order == Order::kSrjfCalibrated),
      jct_(config.cost == CostFit{} ? Jct::kMissingTokens : config.jct.by),
      aging_(config.jct.aging) {
  Adopt(config.cost);
}

bool JctOrder::Adopt(const CostFit& fit) {
  fit_ = fit;
  const int64_t old_lambda = lambda_;
  const double lambda = jct_ == Jct::kModel ? aging_ * 1000 : aging_ * TokensPerSecond(fit);
  lambda_ = std::llround(std::min(lambda, kMaxLambda));
  return jct_ == Jct::kModel || lambda_ != old_lambda;
}

int64_t JctOrder::RankOf(int32_t prompt_len, int32_t num_cached, TimeUs arrival_us) const {
  const int64_t missing = prompt_len - num_cached;
  // The cost, in nanoseconds with kModel, else in millionths of a token.
  const int64_t cost = jct_ == Jct::kModel
                           ? 1000 * std::llround(PredictUs(fit_, WorkOf(missing, num_cached)))
                           : 1'000'000 * missing;
  return cost + lambda_ * arrival_us;
}

Ranking JctOrder::RankArrival(const OrderView& view, TimeUs now_us) {
  if (!first_arrival_us_) first_arrival_us_ = now_us;
  return {.rank = RankOf(view.prompt_len, view.num_cached, now_us - *first_arrival_us_)};
}

std::optional<Ranking> JctOrder::Rerank(const OrderView& view, TimeUs /*now_us*/) const {
  if (!calibrated_) return std::nullopt;
  return Ranking{.rank = RankOf(view.prompt_len, view.num_cached,
                                view.arrival_us - first_arrival_us_.value_or(view.arrival_us))};
}

}  // namespace skein
