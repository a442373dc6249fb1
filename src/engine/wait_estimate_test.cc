#include "engine/wait_estimate.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(WaitEstimate, TheMeasuredRateReplacesTheFirstOne) {
  EXPECT_EQ(WaitEstimate().WaitOf(1000), 0);
  WaitEstimate estimate(100);
  EXPECT_EQ(estimate.WaitOf(1000), 100'000);
  EXPECT_EQ(estimate.WaitOf(0), 0);
  EXPECT_EQ(estimate.WaitOf(-5), 0);
  estimate.Observe(500, 1'000'000);
  EXPECT_EQ(estimate.WaitOf(1000), 2'000'000);
  estimate.Observe(0, 0);  // no time: not a measurement
  EXPECT_EQ(estimate.WaitOf(1000), 2'000'000);
}

// The load changes from prompts of 1 ms a token to prompts of 4 ms, and back.
TEST(WaitEstimate, FollowsTheLoad) {
  WaitEstimate estimate(1);
  const auto observe = [&](int64_t us_per_token, int steps) {
    for (int i = 0; i < steps; ++i) estimate.Observe(100, 100 * us_per_token);
  };
  observe(1000, 200);
  EXPECT_NEAR(static_cast<double>(estimate.WaitOf(1000)), 1e6, 1e4);
  observe(4000, 50);  // 50 steps that take 20 s together
  EXPECT_NEAR(static_cast<double>(estimate.WaitOf(1000)), 4e6, 0.4e6);
  observe(1000, 200);
  EXPECT_NEAR(static_cast<double>(estimate.WaitOf(1000)), 1e6, 0.2e6);
}

// Steps of decodes alone, while prompts wait for a slot, lower the rate of prompt tokens.
TEST(WaitEstimate, CountsStepsThatBeginNoPrompt) {
  WaitEstimate estimate;
  estimate.Observe(100, 100'000);
  for (int i = 0; i < 9; ++i) estimate.Observe(0, 100'000);
  EXPECT_NEAR(static_cast<double>(estimate.WaitOf(100)), 1e6, 0.15e6);
}

}  // namespace
}  // namespace skein
