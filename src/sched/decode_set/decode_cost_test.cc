#include "sched/decode_set/decode_cost.h"

#include <gtest/gtest.h>

#include <vector>

namespace skein {
namespace {

// The rows are in groups of equal size. The rows of a group share `shared` tokens, and each row has
// 40 of its own.
DecodeWork Work(double groups, double rows, double shared) {
  return {.num_rows = rows, .asked = rows * (shared + 40), .unique = groups * shared + rows * 40};
}

std::vector<DecodeSample> SamplesOf(const DecodeFit& truth) {
  std::vector<DecodeSample> samples;
  for (const double rows : {1, 4, 16, 64, 256}) {
    for (double groups = 1; groups <= rows && groups <= 16; groups *= 4) {
      for (const double shared : {512, 2048, 8192}) {
        const DecodeWork work = Work(groups, rows, shared);
        samples.push_back({work, PredictUs(truth, work)});
      }
    }
  }
  return samples;
}

// Three forms of a device: its cache holds some prefixes; every row reads its own keys; or a kernel
// reads shared tokens once and then computes.
TEST(FitDecodes, PredictsStepsThatItHasNotSeen) {
  const DecodeFit truths[] = {{.step_us = 17'000,
                               .row_us = 20,
                               .free_rows = 60,
                               .token_us = 0.16,
                               .arithmetic_share = 0.08,
                               .cache_tokens = 24'000},
                              {.step_us = 17'000, .row_us = 20, .token_us = 0.16},
                              {.step_us = 5000,
                               .row_us = 50,
                               .token_us = 0.1,
                               .arithmetic_share = 0.02,
                               .cache_tokens = 1e9}};
  for (const DecodeFit& truth : truths) {
    const DecodeFit fit = FitDecodes(SamplesOf(truth));
    for (const double rows : {8, 100, 200}) {
      for (const double groups : {1, 3, 5}) {
        const DecodeWork work = Work(groups, rows, 5120);
        EXPECT_NEAR(PredictUs(fit, work) / PredictUs(truth, work), 1, 0.1)
            << truth.cache_tokens << ": " << rows << " rows, " << groups << " groups";
      }
    }
  }
}

TEST(FitDecodes, KnowsNothingWithoutSamples) {
  EXPECT_EQ(FitDecodes({}), DecodeFit{});
  const std::vector<DecodeSample> two = {{Work(1, 1, 32), 10}, {Work(1, 2, 32), 12}};
  EXPECT_EQ(FitDecodes(two), DecodeFit{});
}

TEST(PredictUs, AStepWithinTheCacheMissesNothing) {
  const DecodeFit fit{.token_us = 1, .cache_tokens = 1000};
  EXPECT_EQ(PredictUs(fit, {.num_rows = 2, .asked = 1500, .unique = 800}), 800);
  // Half of the 2,000 unique tokens fit the cache, so half of the 1,000 repeated tokens are missed.
  EXPECT_EQ(PredictUs(fit, {.num_rows = 2, .asked = 3000, .unique = 2000}), 2500);
}

}  // namespace
}  // namespace skein
