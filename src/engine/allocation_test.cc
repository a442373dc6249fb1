// Counts what the scheduler takes from the heap: nothing in a steady step, nothing that stays.

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "base/random.h"
#include "engine/fake_executor.h"
#include "sched/scheduler.h"
#include "testing/counted_allocations.h"

namespace skein {
namespace {

EngineConfig SomeConfig() {
  EngineConfig config;
  config.vocab_size = 100;
  config.max_model_len = 400;
  config.num_kv_blocks = 256;
  config.max_num_seqs = 8;
  config.max_num_batched_tokens = 256;
  return config;
}

Request SomeRequest(int32_t prompt_len, int32_t max_tokens, TokenId first) {
  Request request;
  request.prompt.assign(prompt_len, 1);
  request.prompt[0] = first;
  request.generate().max_tokens = max_tokens;
  return request;
}

TEST(Allocation, SteadyDecodeStepsAllocateNothing) {
  Scheduler scheduler(MakeSchedulerConfig(SomeConfig()).value());
  for (int i = 0; i < 8; ++i) scheduler.Arrive(i, SomeRequest(20, 300, i), 0);
  StepResults results;
  results.draws.resize(8);
  int num_steps = 0;
  int64_t before = 0;
  while (num_steps < 200) {  // through several new blocks, each published
    const StepPlan* plan = scheduler.Plan(0);
    ASSERT_NE(plan, nullptr);
    for (DrawResult& result : results.draws) result.token.token = num_steps % 90;
    scheduler.Complete(&results, 0);
    scheduler.TakeOutputs();
    if (++num_steps == 3) before = num_allocations;  // the vectors have found their size
  }
  EXPECT_EQ(num_allocations - before, 0);
  EXPECT_GT(scheduler.Stats().kv_blocks_used, 40);
}

TEST(Allocation, TenThousandRequestsLeaveNothingBehind) {
  EngineConfig config = SomeConfig();
  const SchedulerConfig scheduler_config = MakeSchedulerConfig(config).value();
  Scheduler scheduler(scheduler_config);
  FakeExecutor executor({.num_kv_blocks = config.num_kv_blocks, .vocab_size = config.vocab_size});
  const std::atomic<bool> never{false};
  Random random(1);
  StepResults results;
  // Serves waves of requests, each until nothing is left; one wave is 50 requests.
  const auto serve = [&](int num_waves) {
    static RequestId next_id = 0;
    for (int wave = 0; wave < num_waves; ++wave) {
      for (int i = 0; i < 50; ++i) {
        scheduler.Arrive(next_id++,
                         SomeRequest(static_cast<int32_t>(random.Between(1, 100)),
                                     static_cast<int32_t>(random.Between(0, 6)),
                                     static_cast<TokenId>(random.Between(0, 99))),
                         0);
      }
      while (const StepPlan* plan = scheduler.Plan(0)) {
        const std::unique_ptr<Task> task = executor.Begin(*plan);
        executor.Resume(*task, never);
        results = executor.Results(*task);
        scheduler.Complete(&results, 0);
        scheduler.TakeOutputs();
      }
    }
  };
  serve(20);
  const int64_t bytes_before = live_bytes;
  serve(200);  // 10,000 requests
  // The reused vectors may still find a larger step; a few kilobytes, not a few bytes a request.
  EXPECT_LT(live_bytes - bytes_before, 20000);
  const EngineStats stats = scheduler.Stats();
  EXPECT_EQ(stats.requests_oneshot + stats.requests_decode, 11000u);
  EXPECT_EQ(stats.kv_blocks_used, 0);
  EXPECT_LE(stats.kv_blocks_cached, stats.kv_blocks_total);
  EXPECT_TRUE(scheduler.empty());
}

}  // namespace
}  // namespace skein
