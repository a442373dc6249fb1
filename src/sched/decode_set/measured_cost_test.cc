#include "sched/decode_set/measured_cost.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace skein {
namespace {

constexpr DecodeFit kMeasuredFit = {
    .step_us = 17'000, .token_us = 0.16, .arithmetic_share = 0.08, .cache_tokens = 24'000};

// Rows in groups of equal size. The rows of a group share 5,120 tokens, each has 132 of its own.
DecodeWork Work(double groups, double rows) {
  return {.num_rows = rows, .asked = rows * 5252, .unique = groups * 5120 + rows * 132};
}

DecodeFit WithCache(double tokens) {
  DecodeFit fit = kMeasuredFit;
  fit.cache_tokens = tokens;
  return fit;
}

TEST(MeasuredCost, FewStepsShowALargerCache) {
  const DecodeWork step = Work(8, 60), full = Work(8, 500);
  for (const double cache : {1e9, 600'000.0}) {
    MeasuredCost cost(kMeasuredFit);
    const DecodeFit device = WithCache(cache);
    for (int i = 0; i < 8; ++i) cost.Observe(step, PredictUs(device, step));
    EXPECT_NEAR(cost.PredictUs(step) / PredictUs(device, step), 1, 0.01);
    for (int i = 0; i < 8; ++i) cost.Observe(full, PredictUs(device, full));
    EXPECT_NEAR(cost.PredictUs(full) / PredictUs(device, full), 1, 0.01);
  }
}

TEST(MeasuredCost, StepsWithMissesTellTheSize) {
  const DecodeWork full = Work(8, 500);
  for (const double cache : {48'000.0, 80'000.0}) {
    MeasuredCost cost(kMeasuredFit);
    for (int i = 0; i < 20; ++i) cost.Observe(full, PredictUs(WithCache(cache), full));
    EXPECT_NEAR(cost.fit().cache_tokens / cache, 1, 0.2);
  }
}

// Larger batches may refute the size that small ones seem to show.
TEST(MeasuredCost, ALargerCacheIsForgotten) {
  MeasuredCost cost(kMeasuredFit);
  const DecodeWork step = Work(6, 60), full = Work(8, 500);
  const double fast_us = PredictUs(WithCache(1e9), step);
  for (int i = 0; i < 20; ++i) cost.Observe(step, fast_us);
  ASSERT_GT(cost.fit().cache_tokens, 2 * kMeasuredFit.cache_tokens);
  for (int i = 0; i < 20; ++i) cost.Observe(full, PredictUs(kMeasuredFit, full));
  EXPECT_NEAR(cost.PredictUs(full) / PredictUs(kMeasuredFit, full), 1, 0.15);
  // The same small batches again: the size is not taken as more than these show.
  for (int i = 0; i < 20; ++i) cost.Observe(step, fast_us);
  EXPECT_LE(cost.fit().cache_tokens, 1.15 * step.unique);
}

// Neither noise nor a device that is slower or faster in all steps changes the fit.
TEST(MeasuredCost, TheProfileHoldsUnderNoise) {
  for (const uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);
    for (const double factor : {0.7, 1.0, 1.4, 25.0}) {
      Random random(seed);
      MeasuredCost cost(kMeasuredFit);
      for (int i = 0; i < 2000; ++i) {
        const auto groups = static_cast<double>(random.Between(1, 8));
        const DecodeWork step = Work(groups, groups * static_cast<double>(random.Between(1, 60)));
        const double noise = 0.95 + 0.1 * random.Uniform();
        cost.Observe(step, factor * noise * PredictUs(kMeasuredFit, step));
        EXPECT_GE(cost.fit().cache_tokens, kMeasuredFit.cache_tokens);
        if (i >= 100) {
          const DecodeWork full = Work(8, 500);
          EXPECT_GE(cost.PredictUs(full), 0.8 * PredictUs(kMeasuredFit, full))
              << factor << " " << i;
        }
      }
    }
  }
}

TEST(MeasuredCost, StepsWithFewPredictedMissesTellNothing) {
  MeasuredCost cost(kMeasuredFit);
  for (const double groups : {1, 2, 4}) {
    const DecodeWork step = Work(groups, 20);
    for (int i = 0; i < 100; ++i) cost.Observe(step, 0.9 * PredictUs(kMeasuredFit, step));
  }
  EXPECT_EQ(cost.fit(), kMeasuredFit);
}

}  // namespace
}  // namespace skein
