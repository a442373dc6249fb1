#include "sched/batching/mixed_pace.h"

#include <gtest/gtest.h>

#include "sched/scheduler.h"

namespace skein {
namespace {

TEST(MixedPace, AsManyTokensAsTheTimeAllows) {
  MixedPace pace;
  pace.Observe(2000, 1'000'000);
  EXPECT_EQ(pace.PromptTokens(), std::nullopt);  // no bound
  pace.set_bound_us(100'000);
  EXPECT_EQ(pace.PromptTokens(), 200);
  for (int step = 0; step < 40; ++step) pace.Observe(100, 25'000);  // half the time per token
  EXPECT_NEAR(static_cast<double>(*pace.PromptTokens()), 400, 4);
  for (int step = 0; step < 40; ++step) pace.Observe(100, 1'000'000);
  EXPECT_EQ(pace.PromptTokens(), MixedPace::kMinTokens);
}

Request PromptOf(int32_t num_tokens, int32_t max_tokens) {
  Request request;
  request.prompt.assign(static_cast<size_t>(num_tokens), 7);
  request.generate().max_tokens = max_tokens;
  return request;
}

int64_t NumPromptTokens(const StepPlan& plan) {
  const auto* mixed = std::get_if<MixedPlan>(&plan);
  int64_t count = 0;
  if (mixed == nullptr) return count;
  for (const PlanRow& row : mixed->prefills) count += std::ssize(row.tokens);
  return count;
}

TEST(MixedPace, ADecodeDoesNotWaitForFullSteps) {
  EngineConfig config;
  config.vocab_size = 10;
  config.scheduler.policies = FindPreset("chunked-fcfs")->policies;
  config.scheduler.max_model_len = 4096;
  config.scheduler.num_kv_blocks = 400;
  config.scheduler.max_num_batched_tokens = 1024;
  config.scheduler.prefix_caching = false;
  Scheduler scheduler(MakeSchedulerConfig(config).value());
  scheduler.set_mixed_step_us(100'000);
  scheduler.Arrive(1, PromptOf(1000, 50), 0);
  TimeUs now_us = 0;
  const auto run = [&](TimeUs us) {
    StepResults results;
    results.draws.emplace_back();
    now_us += us;
    scheduler.Complete(&results, now_us);
    scheduler.CheckIntegrity();
  };
  ASSERT_NE(scheduler.Plan(now_us), nullptr);
  run(500'000);  // half a millisecond a token
  scheduler.Arrive(2, PromptOf(3000, 50), now_us);
  for (int step = 0; step < 3; ++step) {
    const StepPlan* plan = scheduler.Plan(now_us);
    ASSERT_NE(plan, nullptr);
    EXPECT_NEAR(static_cast<double>(NumPromptTokens(*plan)), 200, 1);
    run(100'000);
  }
  // Without a decode in the step, the prompt takes whole steps.
  scheduler.Cancel(1, now_us);
  EXPECT_GT(NumPromptTokens(*scheduler.Plan(now_us)), 1000);
}

}  // namespace
}  // namespace skein
