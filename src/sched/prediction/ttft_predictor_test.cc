#include "sched/prediction/ttft_predictor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"

namespace skein {
namespace {

constexpr CostFit kLinear = {.step_us = 500, .token_us = 20, .pair_us = 0.001, .row_us = 3};

TEST(TtftPredictor, BeginsWithTheCostModel) {
  const CostModel cost(kLinear);
  const TtftPredictor predictor(&cost);
  for (const int64_t tokens : {1, 77, 4096}) {
    EXPECT_EQ(predictor.PredictUs(WorkOf(tokens, 0), StepKind::kPrefill),
              cost.PredictUs(WorkOf(tokens, 0), StepKind::kPrefill));
  }
}

// On this machine, small steps take half as long again as the formula says, and mixed steps take
// less time.
TEST(TtftPredictor, LearnsWhatTheFormulaMissesBySizeAndKind) {
  const CostModel cost(kLinear);
  TtftPredictor predictor(&cost);
  Random random(3);
  const auto truth = [&](const StepWork& work, StepKind kind) {
    const double wave = 1 + 0.5 / (1 + work.num_tokens / 200);
    return cost.PredictUs(work) * wave * (kind == StepKind::kMixed ? 0.8 : 1);
  };
  const auto work_of = [&] {
    return WorkOf(static_cast<int64_t>(std::exp2(10 * random.Uniform())), 100);
  };
  const auto p95 = [&](const TtftPredictor* asked) {
    std::vector<double> errors;
    for (int i = 0; i < 400; ++i) {
      const StepWork work = work_of();
      const StepKind kind = i % 2 == 0 ? StepKind::kPrefill : StepKind::kMixed;
      errors.push_back(std::abs(asked->PredictUs(work, kind) / truth(work, kind) - 1));
    }
    std::ranges::sort(errors);
    return errors[errors.size() * 95 / 100];
  };
  EXPECT_GT(p95(&predictor), 0.25);
  for (int i = 0; i < 600; ++i) {
    const StepWork work = work_of();
    const StepKind kind = i % 2 == 0 ? StepKind::kPrefill : StepKind::kMixed;
    predictor.Observe(work, kind, truth(work, kind) * (1 + 0.04 * (random.Uniform() - 0.5)));
  }
  EXPECT_LT(p95(&predictor), 0.06);
}

TEST(TtftPredictor, OneDelayedStepSaysLittle) {
  const CostModel cost(kLinear);
  TtftPredictor predictor(&cost);
  const StepWork work = WorkOf(256, 0);
  for (int i = 0; i < 20; ++i) {
    predictor.Observe(work, StepKind::kPrefill, cost.PredictUs(work));
  }
  predictor.Observe(work, StepKind::kPrefill, 1000 * cost.PredictUs(work));
  EXPECT_LT(predictor.PredictUs(work, StepKind::kPrefill), 1.1 * cost.PredictUs(work));
}

}  // namespace
}  // namespace skein
