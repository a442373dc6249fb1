#include "model/forward/expert_routes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "base/fp_mode.h"
#include "base/random.h"

namespace skein {
namespace {

ModelConfig Config(int32_t num_experts, int32_t per_token, bool norm) {
  ModelConfig config;
  config.num_experts = num_experts;
  config.experts_per_token = per_token;
  config.norm_expert_weights = norm;
  return config;
}

class ExpertRoutesTest : public ::testing::Test {
 protected:
  void Choose(ExpertRoutes* routes, int32_t token, const std::vector<float>& logits) {
    const ScopedFpMode mode;
    std::vector<float> scratch(logits.size());
    routes->Choose(token, logits.data(), scratch.data(), *kernels_);
  }

  std::unique_ptr<Kernels> kernels_ = MakeKernels(Isa::kScalar).value();
};

// Compares routes with the definition in docs/numerics.md. The logits have many ties.
TEST_F(ExpertRoutesTest, RandomLogitsAgreeWithTheDefinition) {
  Random random(1);
  for (int round = 0; round < 500; ++round) {
    const auto num_experts = static_cast<int32_t>(random.Between(1, 20));
    const auto per_token = static_cast<int32_t>(random.Between(1, num_experts));
    const bool norm = random.OneIn(2);
    ExpertRoutes routes(Config(num_experts, per_token, norm), 3);
    std::vector<float> logits(num_experts);
    for (float& logit : logits) logit = static_cast<float>(random.Between(-4, 4));
    Choose(&routes, 2, logits);
    std::vector<int32_t> order(num_experts);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater<>(), [&](int32_t e) { return logits[e]; });
    std::set<int32_t> best(order.begin(), order.begin() + per_token);
    std::vector<float> exps(num_experts);
    kernels_->ExpShifted(logits.data(), logits[order[0]], num_experts, exps.data());
    float sum = 0;
    for (int32_t e = 0; e < num_experts; ++e) {
      if (!norm || best.contains(e)) sum += exps[e];
    }
    auto expert = best.begin();
    for (const ExpertRoutes::Route& route : routes.routes(2)) {
      ASSERT_EQ(route.expert, *expert++);
      EXPECT_EQ(route.weight, exps[route.expert] / sum);
    }
  }
}

TEST_F(ExpertRoutesTest, SlotsAreGroupedByExpertThenToken) {
  Random random(2);
  constexpr int32_t kTokens = 50, kExperts = 7, kPerToken = 3;
  ExpertRoutes routes(Config(kExperts, kPerToken, true), kTokens);
  for (const int32_t num_tokens : {kTokens, 1, 20}) {
    for (int32_t token = 0; token < num_tokens; ++token) {
      std::vector<float> logits(kExperts);
      for (float& logit : logits) logit = static_cast<float>(random.Uniform());
      Choose(&routes, token, logits);
    }
    routes.Group(num_tokens);
    std::vector<std::pair<int32_t, int32_t>> by_slot(num_tokens * kPerToken, {-1, -1});
    for (int32_t token = 0; token < num_tokens; ++token) {
      for (const ExpertRoutes::Route& route : routes.routes(token)) {
        ASSERT_GE(route.slot, routes.first_slot(route.expert));
        ASSERT_LT(route.slot, routes.first_slot(route.expert) + routes.num_slots(route.expert));
        by_slot[route.slot] = {route.expert, token};
      }
    }
    EXPECT_TRUE(std::ranges::is_sorted(by_slot));
    EXPECT_NE(by_slot.front().first, -1);
  }
}

// If a token's router overflows, the token still has experts, and their weights are NaN.
TEST_F(ExpertRoutesTest, NotANumberStaysOne) {
  ExpertRoutes routes(Config(4, 2, true), 1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Choose(&routes, 0, {nan, nan, nan, nan});
  EXPECT_EQ(routes.routes(0)[0].expert, 0);
  EXPECT_EQ(routes.routes(0)[1].expert, 1);
  EXPECT_TRUE(std::isnan(routes.routes(0)[0].weight));
}

}  // namespace
}  // namespace skein
