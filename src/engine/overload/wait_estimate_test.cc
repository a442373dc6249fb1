#include "engine/overload/wait_estimate.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

constexpr ExecutionClass kOneShot = ExecutionClass::kOneShot;
constexpr ExecutionClass kDecode = ExecutionClass::kDecode;

TEST(WaitEstimate, TheMeasuredRateReplacesTheFirstOne) {
  EXPECT_EQ(WaitEstimate().WaitOf(kOneShot, {.oneshot = 1000}), 0);
  WaitEstimate estimate(100);
  EXPECT_EQ(estimate.WaitOf(kOneShot, {.oneshot = 1000}), 100'000);
  EXPECT_EQ(estimate.WaitOf(kOneShot, {}), 0);
  EXPECT_EQ(estimate.WaitOf(kOneShot, {.oneshot = -5}), 0);
  estimate.Observe({.oneshot = 500}, {}, 1'000'000);
  EXPECT_EQ(estimate.WaitOf(kOneShot, {.oneshot = 1000}), 2'000'000);
  estimate.Observe({}, {}, 0);          // no time: not a measurement
  estimate.Observe({}, {}, 1'000'000);  // nothing waited
  EXPECT_EQ(estimate.WaitOf(kOneShot, {.oneshot = 1000}), 2'000'000);
}

// The load changes from prompts of 1 ms a token to prompts of 4 ms, and back.
TEST(WaitEstimate, FollowsTheLoad) {
  WaitEstimate estimate(1);
  const auto observe = [&](int64_t us_per_token, int steps) {
    for (int i = 0; i < steps; ++i) {
      estimate.Observe({.oneshot = 100}, {.oneshot = 1000}, 100 * us_per_token);
    }
  };
  const auto wait_us = [&] {
    return static_cast<double>(estimate.WaitOf(kOneShot, {.oneshot = 1000}));
  };
  observe(1000, 200);
  EXPECT_NEAR(wait_us(), 1e6, 1e4);
  observe(4000, 50);  // 50 steps that take 20 s together
  EXPECT_NEAR(wait_us(), 4e6, 0.4e6);
  observe(1000, 200);
  EXPECT_NEAR(wait_us(), 1e6, 0.2e6);
}

// Steps of decodes alone, while prompts wait for a slot, lower the rate of prompt tokens.
TEST(WaitEstimate, CountsStepsThatBeginNoPrompt) {
  WaitEstimate estimate;
  estimate.Observe({.decode = 100}, {}, 100'000);
  for (int i = 0; i < 9; ++i) estimate.Observe({}, {.decode = 100}, 100'000);
  EXPECT_NEAR(static_cast<double>(estimate.WaitOf(kDecode, {.decode = 100})), 1e6, 0.15e6);
}

// Both classes wait. Requests that decode wait for slots, and get a tenth of the rate.
TEST(WaitEstimate, TheClassesHaveTheirOwnRates) {
  WaitEstimate estimate;
  const ClassTokens waiting = {.oneshot = 1000, .decode = 1000};
  for (int i = 0; i < 200; ++i) {
    estimate.Observe({.oneshot = 90, .decode = 10}, waiting, 100'000);
  }
  EXPECT_NEAR(static_cast<double>(estimate.WaitOf(kOneShot, waiting)), 2e6, 0.1e6);
  EXPECT_NEAR(static_cast<double>(estimate.WaitOf(kDecode, waiting)), 8e6, 2e6);
  // Many prompts of one class keep the others waiting as well.
  EXPECT_NEAR(static_cast<double>(estimate.WaitOf(kDecode, {.oneshot = 9000})), 9e6, 0.1e6);
}

TEST(WaitEstimate, ARunIsInProportionToItsSize) {
  WaitEstimate estimate;
  EXPECT_EQ(estimate.RunOf(kDecode, 100), 0);
  for (int i = 0; i < 10; ++i) estimate.ObserveRun({.size = 100, .us = 2'000'000});
  EXPECT_EQ(estimate.RunOf(kDecode, 50), 1'000'000);
  EXPECT_EQ(estimate.RunOf(kOneShot, 50), 0);
  estimate.ObserveRun(
      {.size = 100, .us = 1'000'000, .complete = false});  // it might have taken longer
  EXPECT_EQ(estimate.RunOf(kDecode, 50), 1'000'000);
  for (int i = 0; i < 200; ++i)
    estimate.ObserveRun({.size = 100, .us = 4'000'000, .complete = false});
  EXPECT_NEAR(static_cast<double>(estimate.RunOf(kDecode, 50)), 2e6, 1e4);
}

// Runs of 20 ms a token end, with half of the tokens that they might have had. A load begins under
// which a token takes 100 ms.
TEST(WaitEstimate, ALoadThatBeginsMakesRunsLonger) {
  WaitEstimate estimate;
  TimeUs now_us = 0;
  const auto tokens = [&](int count, TimeUs us) {
    for (int i = 0; i < count; ++i) estimate.ObserveToken(us, now_us += us);
  };
  const auto run_us = [&] { return static_cast<double>(estimate.RunOf(kDecode, 200)); };
  tokens(50, 20'000);
  EXPECT_EQ(run_us(), 0);  // how many tokens outputs have is not known
  for (int i = 0; i < 10; ++i) {
    estimate.ObserveRun({.size = 100, .num_tokens = 50, .us = 1'000'000});
    tokens(49, 20'000);
  }
  EXPECT_NEAR(run_us(), 2e6, 1);
  tokens(20, 100'000);  // 2 s
  EXPECT_NEAR(run_us(), 6.5e6, 0.5e6);
  tokens(100, 100'000);
  EXPECT_NEAR(run_us(), 10e6, 0.1e6);
  EXPECT_EQ(estimate.RunOf(kOneShot, 200), 0);
}

// 64 streams get their tokens at the same times: one slow step among many fast ones counts as such.
TEST(WaitEstimate, OneSlowStepIsOneOfMany) {
  WaitEstimate estimate;
  estimate.ObserveRun({.size = 100, .num_tokens = 100, .us = 2'000'000});
  TimeUs now_us = 0;
  const auto step = [&](TimeUs us) {
    now_us += us;
    for (int stream = 0; stream < 64; ++stream) estimate.ObserveToken(us, now_us);
  };
  for (int i = 0; i < 500; ++i) step(20'000);
  step(500'000);
  EXPECT_LT(estimate.RunOf(kDecode, 100), 4'000'000);
}

}  // namespace
}  // namespace skein
