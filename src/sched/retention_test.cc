// Retention: the blocks that OneShot requests hold, and the blocks that they leave in the cache.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sched/scheduler.h"

namespace skein {
namespace {

using ::testing::HasSubstr;

EngineConfig Config(Retention retention = Retention::kPrefix) {
  EngineConfig config;
  config.scheduler.policies = FindPreset("prefill-only")->policies;
  config.scheduler.policies.retention = retention;
  config.scheduler.policies.order = Order::kFcfs;
  config.scheduler.policies.batching = Batching::kBudget;
  config.vocab_size = 1000;
  config.scheduler.max_model_len = 1024;
  config.scheduler.num_kv_blocks = 4;
  config.scheduler.max_num_seqs = 4;
  config.scheduler.max_num_batched_tokens = 64;
  return config;
}

Request MakeRequest(int32_t prompt_len, int32_t max_tokens = 1, TokenId first_token = 1) {
  Request request;
  request.prompt.assign(prompt_len, 1);
  request.prompt[0] = first_token;
  request.generate().max_tokens = max_tokens;
  return request;
}

class RetentionTest : public ::testing::Test {
 protected:
  // Plans the next step, which must have OneShot rows alone.
  const std::vector<PlanRow>& Rows(Scheduler& scheduler) {
    const StepPlan* plan = scheduler.Plan(++now_us_);
    scheduler.CheckIntegrity();
    EXPECT_NE(plan, nullptr);
    EXPECT_TRUE(std::holds_alternative<OneShotPlan>(*plan));
    return std::get<OneShotPlan>(*plan).rows;
  }
  void Complete(Scheduler& scheduler, size_t num_draws) {
    StepResults results;
    results.draws.resize(num_draws);
    scheduler.Complete(&results, ++now_us_);
    scheduler.CheckIntegrity();
  }

  TimeUs now_us_ = 0;
};

TEST_F(RetentionTest, NoneTakesNoBlockHoweverLongThePrompt) {
  Scheduler scheduler(MakeSchedulerConfig(Config(Retention::kNone)).value());
  scheduler.Arrive(1, MakeRequest(1000), 0);
  scheduler.Arrive(2, MakeRequest(40), 0);
  scheduler.Arrive(3, MakeRequest(20), 0);
  // A prompt longer than the budget of 64 tokens runs alone, in one step.
  const std::vector<PlanRow>& alone = Rows(scheduler);
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].tokens.size(), 1000u);
  EXPECT_TRUE(alone[0].block_table.empty());
  EXPECT_EQ(scheduler.Stats().kv_blocks_used, 0);
  Complete(scheduler, 1);
  EXPECT_EQ(Rows(scheduler).size(), 2u);
  Complete(scheduler, 2);
  EXPECT_EQ(scheduler.Stats().kv_blocks_cached, 0);
  EXPECT_TRUE(scheduler.empty());
}

TEST_F(RetentionTest, PrefixKeepsTheLongestLeadingPartThatFits) {
  Scheduler scheduler(MakeSchedulerConfig(Config()).value());
  scheduler.Arrive(1, MakeRequest(300), 0);
  const std::vector<PlanRow>& rows = Rows(scheduler);
  EXPECT_EQ(rows[0].block_table.size(), 4u);
  Complete(scheduler, 1);
  EXPECT_EQ(scheduler.Stats().kv_blocks_cached, 4);
  scheduler.Arrive(2, MakeRequest(310), 0);
  const std::vector<PlanRow>& again = Rows(scheduler);
  EXPECT_EQ(again[0].begin, 128);
  EXPECT_EQ(again[0].tokens.size(), 182u);
  EXPECT_EQ(again[0].block_table.size(), 4u);
  Complete(scheduler, 1);
  // Another prompt keeps only its three full blocks. They evict the last blocks of the first
  // prompt.
  scheduler.Arrive(3, MakeRequest(100, 1, 2), 0);
  EXPECT_EQ(Rows(scheduler)[0].block_table.size(), 3u);
  Complete(scheduler, 1);
  scheduler.Arrive(4, MakeRequest(300), 0);
  EXPECT_EQ(Rows(scheduler)[0].begin, 32);
  Complete(scheduler, 1);
}

TEST_F(RetentionTest, ValueEvictsOnlyForWhatOthersShare) {
  EngineConfig config = Config(Retention::kValue);
  config.scheduler.num_kv_blocks = 8;
  Scheduler scheduler(MakeSchedulerConfig(config).value());
  // No other prompt shares the first one's tokens, but blocks are free.
  scheduler.Arrive(1, MakeRequest(200), 0);
  EXPECT_EQ(Rows(scheduler)[0].block_table.size(), 6u);
  Complete(scheduler, 1);
  // The second prompt shares nothing, so it keeps only as many blocks as are free.
  scheduler.Arrive(2, MakeRequest(300, 1, 2), 0);
  EXPECT_EQ(Rows(scheduler)[0].block_table.size(), 2u);
  Complete(scheduler, 1);
  EXPECT_EQ(scheduler.Stats().kv_blocks_cached, 8);
  // A third prompt like the second finds two blocks and shares five. Three blocks of the first
  // prompt are evicted.
  Request third = MakeRequest(300, 1, 2);
  third.prompt[160] = 7;
  scheduler.Arrive(3, third, 0);
  const std::vector<PlanRow>& rows = Rows(scheduler);
  EXPECT_EQ(rows[0].begin, 64);
  EXPECT_EQ(rows[0].block_table.size(), 5u);
  Complete(scheduler, 1);
  scheduler.Arrive(4, MakeRequest(200), 0);
  EXPECT_EQ(Rows(scheduler)[0].begin, 3 * kBlockTokens);
  Complete(scheduler, 1);
}

TEST_F(RetentionTest, ValueCountsWhoIsStillWaiting) {
  EngineConfig config = Config(Retention::kValue);
  config.scheduler.policies.batching = Batching::kSingle;
  Scheduler scheduler(MakeSchedulerConfig(config).value());
  scheduler.Arrive(1, MakeRequest(300), 0);
  EXPECT_EQ(Rows(scheduler)[0].block_table.size(), 4u);
  Complete(scheduler, 1);
  // Both requests wait. The first one already evicts blocks for the prefix that the second one will
  // attach.
  scheduler.Arrive(2, MakeRequest(100, 1, 2), 0);
  scheduler.Arrive(3, MakeRequest(100, 1, 2), 0);
  EXPECT_EQ(Rows(scheduler)[0].block_table.size(), 3u);
  Complete(scheduler, 1);
  EXPECT_EQ(Rows(scheduler)[0].begin, 96);
  Complete(scheduler, 1);
}

TEST_F(RetentionTest, WithoutACacheNothingIsKept) {
  EngineConfig config = Config();
  config.scheduler.prefix_caching = false;
  Scheduler scheduler(MakeSchedulerConfig(config).value());
  scheduler.Arrive(1, MakeRequest(300), 0);
  EXPECT_TRUE(Rows(scheduler)[0].block_table.empty());
  Complete(scheduler, 1);
}

TEST_F(RetentionTest, OnlyWhatIsKeptMustFitTheBlocks) {
  const SchedulerConfig keeps_all = MakeSchedulerConfig(Config(Retention::kAll)).value();
  const SchedulerConfig keeps_none = MakeSchedulerConfig(Config(Retention::kNone)).value();
  const Status refused = Scheduler::CheckFits(keeps_all, MakeRequest(300));
  EXPECT_EQ(refused.param(), "prompt");
  EXPECT_THAT(refused.message(), HasSubstr("128 tokens together would fit"));
  EXPECT_TRUE(Scheduler::CheckFits(keeps_none, MakeRequest(300)).ok());
  EXPECT_EQ(Scheduler::CheckFits(keeps_none, MakeRequest(300, 2)).param(), "prompt");
  const Status too_long = Scheduler::CheckFits(keeps_none, MakeRequest(1024));
  EXPECT_EQ(too_long.param(), "prompt");
  EXPECT_THAT(too_long.message(), HasSubstr("1024 tokens"));
}

}  // namespace
}  // namespace skein
