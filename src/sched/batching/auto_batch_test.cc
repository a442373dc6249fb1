#include "sched/batching/auto_batch.h"

#include <vector>

#include "testing/order_scan.h"

namespace skein {
namespace {

using testing::MakeRequest;
using testing::RunStep;

constexpr CostFit kStepFit = {.step_us = 500, .token_us = 10, .pair_us = 0.001, .row_us = 3};

// The number of requests in the first step, if ten requests of 96 tokens wait and the first one has
// a deadline of `head_slo_us`.
size_t StepSize(TimeUs head_slo_us, const CostFit& fit = kStepFit) {
  EngineConfig config;
  config.scheduler.policies = FindPreset("auto")->policies;
  config.vocab_size = 1000;
  config.scheduler.max_model_len = 1024;
  config.scheduler.num_kv_blocks = 2000;
  config.scheduler.max_num_batched_tokens = 4096;
  config.scheduler.prefix_caching = false;
  config.scheduler.cost = fit;
  Scheduler scheduler(MakeSchedulerConfig(config).value());
  for (RequestId id = 0; id < 10; ++id) {
    Request request = MakeRequest({std::string(3, static_cast<char>('a' + id)), 0});
    if (id == 0 && head_slo_us > 0) request.slo_ttft_us = head_slo_us;
    if (id > 0) request.priority = 1;
    scheduler.Arrive(id, std::move(request), 0);
  }
  TimeUs now_us = 0;
  return RunStep(&scheduler, &now_us, 1).size();
}

TEST(AutoBatch, WithoutADeadlineAStepKeepsTheDeviceBusy) {
  EXPECT_EQ(2 * SaturationTokens(kStepFit), 900);
  EXPECT_EQ(StepSize(0), 9u);
}

TEST(AutoBatch, ADeadlineThatCanBeMetLimitsTheStep) {
  const auto step_us = [](int64_t num_others) {
    StepWork work = WorkOf(96, 0);
    if (num_others > 0) work += WorkOf(96 * num_others, 0);
    return static_cast<TimeUs>(PredictUs(kStepFit, work));
  };
  EXPECT_EQ(StepSize(step_us(0) + 2), 1u);
  EXPECT_EQ(StepSize(step_us(3) + 2), 4u);
  EXPECT_EQ(StepSize(10'000'000), 9u);
}

// The first request of the step is late already, so it is ranked behind all others. A small step
// would gain nothing.
TEST(AutoBatch, ALateHeadLimitsNothing) { EXPECT_EQ(StepSize(1), 9u); }

TEST(AutoBatch, WithoutACostModelTheTokenBudgetIsFilled) { EXPECT_EQ(StepSize(0, {}), 10u); }

}  // namespace
}  // namespace skein
