#include "sched/batching/mixed_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace skein {
namespace {

constexpr CostFit kFit = {.step_us = 90'000, .token_us = 1400, .pair_us = 0.1, .row_us = 0};

StepWork Decodes(int count) {
  StepWork work;
  for (int i = 0; i < count; ++i) work += WorkOf(1, 500);
  return work;
}

TEST(MixedSteps, TheLongestChunkThatKeepsTheRate) {
  Random random(7);
  for (int i = 0; i < 500; ++i) {
    const CostModel cost({.step_us = 1e5 * random.Uniform(),
                          .token_us = 10 + 1000 * random.Uniform(),
                          .pair_us = 0.1 * random.Uniform(),
                          .row_us = 100 * random.Uniform()});
    const int64_t tokens = random.Between(1, 5000), cached = random.Between(0, 3000);
    const StepWork decodes = Decodes(static_cast<int>(random.Between(1, 20)));
    const double rate_us = 1000 + 4e5 * random.Uniform();
    const int64_t most = random.Between(1, 6000);
    const DecodeSharing sharing =
        CompareDecodeSharing(cost, tokens, cached, most, decodes, rate_us);
    const auto last_us = [&](int64_t chunk) {
      StepWork work = WorkOf(chunk, cached + tokens - chunk);
      work += decodes;
      return cost.PredictUs(work);
    };
    const int64_t chunk = sharing.chunk_tokens;
    EXPECT_LE(chunk, std::min(tokens, most));
    if (chunk < std::min(tokens, most)) {
      EXPECT_GT(last_us(chunk + 1), rate_us);
    }
    EXPECT_GE(sharing.step_tokens, chunk);
    if (chunk == 0) continue;
    EXPECT_LE(last_us(chunk), rate_us);
    // Other prompts follow a complete prompt as far as the rate and the step's tokens allow.
    const auto with_us = [&](int64_t others) {
      StepWork work = WorkOf(tokens, cached);
      work += WorkOf(others, 0);
      work += decodes;
      return cost.PredictUs(work);
    };
    const int64_t others = sharing.step_tokens - chunk;
    if (others > 0) {
      EXPECT_EQ(chunk, tokens);
      EXPECT_LE(sharing.step_tokens, most);
      EXPECT_LE(with_us(others), rate_us);
    }
    if (chunk == tokens && sharing.step_tokens < most) {
      EXPECT_GT(with_us(others + 1), rate_us);
    }
    // The sum over the mixed steps, and over further decode steps that the rate needs.
    double sum_us = 0;
    int64_t num_steps = 0;
    for (int64_t begin = 0; begin < tokens; begin += chunk, ++num_steps) {
      StepWork work = WorkOf(std::min(chunk, tokens - begin), cached + begin);
      work += decodes;
      sum_us += cost.PredictUs(work);
    }
    const double decode_us = cost.PredictUs(decodes);
    const double prefill_us = cost.PredictUs(WorkOf(tokens, cached));
    const auto num_inserted = std::llround((sharing.inserted_us - prefill_us) / decode_us);
    EXPECT_GE(num_inserted, num_steps);
    sum_us += static_cast<double>(num_inserted - num_steps) * decode_us;
    EXPECT_NEAR(sharing.mixed_us, sum_us, 1e-6 * sum_us);
  }
}

// The number of decode steps is the number of mixed steps, or the number that the rate needs if
// that is larger. Decodes take at most half of the device.
TEST(MixedSteps, BothGiveEachDecodeAsManyTokens) {
  const CostModel cost(kFit);
  const double prefill_us = cost.PredictUs(WorkOf(2000, 0));
  const double decode_us = cost.PredictUs(Decodes(4));
  struct Case {
    double rate;  // in times of a decode step
    int num_mixed;
    int num_inserted;
  };
  for (const Case& c : {Case{10, 4, 4}, Case{2.2, 28, 28}, Case{1, 0, 33}}) {
    const DecodeSharing sharing =
        CompareDecodeSharing(cost, 2000, 0, 8192, Decodes(4), c.rate * decode_us);
    EXPECT_NEAR(sharing.inserted_us, prefill_us + c.num_inserted * decode_us, 1) << c.rate;
    const int32_t chunk = sharing.chunk_tokens;
    EXPECT_EQ(chunk == 0 ? 0 : (2000 + chunk - 1) / chunk, c.num_mixed) << c.rate;
  }
}

// The measured times of each kind of step decide which way is taken.
TEST(MixedSteps, MeasurementsDecide) {
  const auto compare = [](const CostModel& cost) {
    return CompareDecodeSharing(cost, 2000, 0, 8192, Decodes(4), 400'000);
  };
  CostModel cost(kFit);
  EXPECT_TRUE(compare(cost).mixes());
  StepWork mixed = WorkOf(128, 0);
  mixed += Decodes(4);
  for (int i = 0; i < 50; ++i) {
    cost.ObserveKind(StepKind::kMixed, mixed, 1.1 * cost.PredictUs(mixed));
  }
  EXPECT_FALSE(compare(cost).mixes());
  for (int i = 0; i < 50; ++i) {
    cost.ObserveKind(StepKind::kDecode, Decodes(4), 1.6 * cost.PredictUs(Decodes(4)));
  }
  EXPECT_TRUE(compare(cost).mixes());
}

TEST(MixedSteps, WhereNotOneTokenFitsNothingIsMixed) {
  const CostModel cost(kFit);
  const DecodeSharing sharing = CompareDecodeSharing(cost, 2000, 0, 8192, Decodes(4), 50'000);
  EXPECT_EQ(sharing.chunk_tokens, 0);
  EXPECT_FALSE(sharing.mixes());
}

}  // namespace
}  // namespace skein
