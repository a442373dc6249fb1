#include "sched/cost_model.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace skein {
namespace {

constexpr CostFit kTruth = {.step_us = 300, .token_us = 40, .pair_us = 0.002, .row_us = 25};

std::vector<CostSample> Samples(const CostFit& truth, double noise) {
  Random random(7);
  std::vector<CostSample> samples;
  for (int64_t tokens = 1; tokens <= 8000; tokens += tokens / 4 + 1) {
    for (const int64_t cached : {0, 1000, 7000}) {
      StepWork work;
      const int64_t rows = random.Between(1, 4);
      for (int64_t row = 0; row < rows; ++row) work += WorkOf(tokens, cached);
      samples.push_back({work, PredictUs(truth, work) * (1 + noise * (random.Uniform() - 0.5))});
    }
  }
  return samples;
}

TEST(CostModel, WorkCountsThePairsOfTheCausalMask) {
  const StepWork work = WorkOf(3, 10);  // tokens that attend to 11, 12 and 13 tokens
  EXPECT_EQ(work.num_tokens, 3);
  EXPECT_EQ(work.num_pairs, 36);
  EXPECT_EQ(work.num_rows, 1);
}

TEST(CostModel, WorkOfAPlanAddsUpItsRows) {
  const std::vector<TokenId> tokens = {1, 2, 3};
  MixedPlan plan;
  plan.prefills.push_back({.begin = 10, .tokens = tokens});
  plan.decodes.push_back({.begin = 4, .tokens = std::span(tokens).first(1)});
  const StepWork work = WorkOf(StepPlan(plan));
  EXPECT_EQ(work.num_tokens, 4);
  EXPECT_EQ(work.num_pairs, 41);
  EXPECT_EQ(work.num_rows, 2);
}

TEST(CostModel, FitFindsThePolynomial) {
  const CostFit fit = FitCosts(Samples(kTruth, 0));
  EXPECT_NEAR(fit.step_us, kTruth.step_us, 1e-4 * kTruth.step_us);
  EXPECT_NEAR(fit.token_us, kTruth.token_us, 1e-4 * kTruth.token_us);
  EXPECT_NEAR(fit.pair_us, kTruth.pair_us, 1e-4 * kTruth.pair_us);
  EXPECT_NEAR(fit.row_us, kTruth.row_us, 1e-4 * kTruth.row_us);
}

TEST(CostModel, FitIsNeverNegativeAndPredictsThroughNoise) {
  const CostFit truth = {.step_us = 0, .token_us = 40, .pair_us = 0.002, .row_us = 0};
  const CostFit fit = FitCosts(Samples(truth, 0.2));
  EXPECT_GE(fit.step_us, 0);
  EXPECT_GE(fit.row_us, 0);
  for (const int64_t tokens : {10, 500, 5000}) {
    const StepWork work = WorkOf(tokens, 1000);
    EXPECT_NEAR(PredictUs(fit, work) / PredictUs(truth, work), 1, 0.1);
  }
}

TEST(CostModel, OneSampleFits) {
  const CostFit fit = FitCosts(std::vector<CostSample>{{WorkOf(100, 0), 5000}});
  EXPECT_NEAR(PredictUs(fit, WorkOf(100, 0)), 5000, 1e-6);
}

TEST(CostModel, ANewVersionBeginsWithDriftNotWithNoise) {
  CostModel model(kTruth);
  Random random(5);
  const auto observe = [&](double speed) {
    const StepWork work = WorkOf(random.Between(1, 4000), random.Between(0, 4000));
    const double noise = 1 + 0.1 * (random.Uniform() - 0.5);
    return model.Observe(work, PredictUs(kTruth, work) * speed * noise);
  };
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(observe(1.0));
  EXPECT_EQ(model.version(), 0);
  EXPECT_EQ(model.fit(), kTruth);
  for (int i = 0; i < 1000; ++i) observe(2.0);
  EXPECT_GE(model.version(), 1);
  EXPECT_LE(model.version(), 20);  // each version differs by at least 5 %
  const double predicted = model.PredictUs(WorkOf(1000, 0)) / PredictUs(kTruth, WorkOf(1000, 0));
  EXPECT_NEAR(predicted * model.drift(), 2.0, 0.06);
  const int64_t version = model.version();
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(observe(predicted));
  EXPECT_EQ(model.version(), version);
}

// A kind of step without measurements must not be predicted to take more or less time than it does.
TEST(CostModel, AMixedStepIsTakenForAPrefillUntilOneIsMeasured) {
  CostModel model(kTruth);
  const StepWork work = WorkOf(100, 50);
  const double us = PredictUs(kTruth, work);
  model.ObserveKind(StepKind::kPrefill, work, 1.5 * us);
  EXPECT_NEAR(model.PredictUs(work, StepKind::kPrefill), 1.5 * us, 1e-9 * us);
  EXPECT_NEAR(model.PredictUs(work, StepKind::kMixed), 1.5 * us, 1e-9 * us);
  EXPECT_NEAR(model.PredictUs(work, StepKind::kDecode), us, 1e-9 * us);
  model.ObserveKind(StepKind::kMixed, work, 0.8 * us);
  EXPECT_NEAR(model.PredictUs(work, StepKind::kPrefill), 1.5 * us, 1e-9 * us);
  EXPECT_NEAR(model.PredictUs(work, StepKind::kMixed), 0.8 * us, 1e-9 * us);
}

TEST(CostModel, WhatIsNotKnownIsNotCorrected) {
  CostModel model({});
  EXPECT_FALSE(model.known());
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(model.Observe(WorkOf(10, 0), 1000));
  EXPECT_EQ(model.fit(), CostFit{});
}

TEST(CostModel, AdoptsAnotherFitWithoutTheOldCorrections) {
  CostModel model({.step_us = 100, .token_us = 1});
  const StepWork work = WorkOf(100, 0);
  for (int i = 0; i < 40; ++i) {
    model.ObserveKind(StepKind::kPrefill, work, 400);
    model.Observe(work, 400);
  }
  const int64_t version = model.version();
  model.Adopt({.step_us = 50, .token_us = 2});
  EXPECT_EQ(model.version(), version + 1);
  EXPECT_EQ(model.PredictUs(work), 250);
  EXPECT_EQ(model.PredictUs(work, StepKind::kPrefill), 250);
  EXPECT_EQ(model.drift(), 1);
}

}  // namespace
}  // namespace skein
