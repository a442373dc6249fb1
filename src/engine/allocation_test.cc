// Counts what the scheduler takes from the heap: nothing in a steady step, nothing that stays.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <variant>
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

int64_t NumDraws(const StepPlan& plan) {
  int64_t count = 0;
  const auto add = [&count](const std::vector<PlanRow>& rows) {
    for (const PlanRow& row : rows) count += std::ssize(row.draws);
  };
  if (const auto* oneshot = std::get_if<OneShotPlan>(&plan)) add(oneshot->rows);
  if (const auto* decode = std::get_if<DecodePlan>(&plan)) add(decode->rows);
  if (const auto* mixed = std::get_if<MixedPlan>(&plan)) {
    add(mixed->prefills);
    add(mixed->decodes);
  }
  return count;
}

// With the decode set `fill` (no stop rule) and `flock`, where some wait all the while.
TEST(Allocation, SteadyDecodeStepsAllocateNothing) {
  for (const std::string stop : {"", "never", "heuristic", "bandit", "q-learning"}) {
    SCOPED_TRACE(stop);
    EngineConfig config = SomeConfig();
    if (!stop.empty()) {
      config.decode_set = "flock";
      config.flock_stop = stop;
      config.flock_constants = "small-batch=0,max-lost-peers=0";
    }
    Scheduler scheduler(MakeSchedulerConfig(config).value());
    // Six of one prompt; one of another, which the heuristic refuses; two that find too few slots.
    for (int i = 0; i < 9; ++i) {
      Request request = SomeRequest(190, 205, i == 6 ? 2 : 1);
      request.generate().num_samples = i > 6 ? 3 : 1;
      scheduler.Arrive(i, std::move(request), 0);
    }
    StepResults results;
    results.draws.reserve(8);
    int64_t before = 0;
    for (int step = 0; step < 200; ++step) {  // through several new blocks, each published
      const StepPlan* plan = scheduler.Plan(1000 * step);
      ASSERT_NE(plan, nullptr);
      results.draws.resize(NumDraws(*plan));
      TokenId token = step;
      for (DrawResult& result : results.draws) result.token.token = ++token % 90;
      scheduler.Complete(&results, 1000 * step + 900);
      scheduler.TakeOutputs();
      if (step == 10) before = num_allocations;  // the vectors have found their size
    }
    EXPECT_EQ(num_allocations - before, 0);
    const EngineStats stats = scheduler.Stats();
    EXPECT_GT(stats.kv_blocks_used, 40);
    EXPECT_EQ(stats.num_requests_waiting, stop == "heuristic" ? 3 : 2);
    if (stop == "heuristic") {
      EXPECT_GE(stats.flock_stops, 190u);
    }
  }
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
