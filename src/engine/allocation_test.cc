// Counts the scheduler's heap allocations: a steady step makes none, and after a load none remain.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/random.h"
#include "kv/block_pool.h"
#include "sched/decode_set/prefix_groups.h"
#include "sched/scheduler.h"
#include "skein/choice_names.h"
#include "testing/counted_allocations.h"
#include "testing/fake_executor.h"

namespace skein {
namespace {

EngineConfig SomeConfig() {
  EngineConfig config;
  config.scheduler.policies = FindPreset("prelude")->policies;
  config.vocab_size = 100;
  config.scheduler.max_model_len = 400;
  config.scheduler.num_kv_blocks = 256;
  config.scheduler.max_num_seqs = 8;
  config.scheduler.max_num_batched_tokens = 256;
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

// Covers the decode sets `fill` (no stop rule) and `prefix-homogeneous`, while requests wait
// throughout.
TEST(Allocation, SteadyDecodeStepsAllocateNothing) {
  for (const std::string stop : {"", "never", "heuristic", "bandit", "q-learning"}) {
    SCOPED_TRACE(stop);
    EngineConfig config = SomeConfig();
    if (const auto rule = ChoiceOf<StopRule>(stop)) {
      config.scheduler.policies.decode_set = DecodeSet::kPrefixHomogeneous;
      config.scheduler.prefix_groups.stop = {
          .rule = *rule, .small_batch = 0, .max_lost_tokens_peers = 0};
    }
    Scheduler scheduler(MakeSchedulerConfig(config).value());
    // Six requests share a prompt. The heuristic refuses a request with another prompt. Two
    // requests find too few slots.
    for (int i = 0; i < 9; ++i) {
      Request request = SomeRequest(190, 205, i == 6 ? 2 : 1);
      request.generate().num_samples = i > 6 ? 3 : 1;
      scheduler.Arrive(i, std::move(request), 0);
    }
    StepResults results;
    results.draws.reserve(8);
    int64_t before = 0;
    for (int step = 0; step < 200; ++step) {  // several new blocks are filled and published
      const StepPlan* plan = scheduler.Plan(1000 * step);
      ASSERT_NE(plan, nullptr);
      results.draws.resize(NumDraws(*plan));
      TokenId token = step;
      for (DrawResult& result : results.draws) result.token.token = ++token % 90;
      scheduler.Complete(&results, 1000 * step + 900);
      scheduler.TakeOutputs();
      if (step == 10) before = num_allocations;  // the vectors have reached their final size
    }
    EXPECT_EQ(num_allocations - before, 0);
    const EngineStats stats = scheduler.Stats();
    EXPECT_GT(stats.kv_blocks_used, 40);
    EXPECT_EQ(stats.num_requests_waiting, stop == "heuristic" ? 3 : 2);
    if (stop == "heuristic") {
      EXPECT_GE(stats.prefix_groups_stops, 190u);
    }
  }
}

// Requests arrive, are passed over, get other ranks, join and leave. Their number never exceeds its
// first peak.
TEST(Allocation, PrefixGroupsThatChangeAllocateNothing) {
  constexpr int kRequests = 200;
  for (const StopRule rule :
       {StopRule::kNever, StopRule::kHeuristic, StopRule::kBandit, StopRule::kQLearning}) {
    SCOPED_TRACE(NameOf(rule));
    PrefixGroupOptions options;
    options.stop.rule = rule;
    options.stop.max_loss = 1;
    options.max_wait_us = 50;
    PrefixGroups groups(options);
    Random random(1);
    std::vector<std::unique_ptr<RequestRecord>> requests;
    for (int i = 0; i < kRequests; ++i) {
      auto request = std::make_unique<RequestRecord>();
      request->id = request->arrival = i;
      request->urgency.priority = i % 2;
      auto sequence = std::make_unique<Sequence>(request.get(), 0, PrefixScope{});
      sequence->tokens.assign(size_t{kBlockTokens} * random.Between(1, 9), i % 5);
      sequence->tokens.resize(sequence->tokens.size() + random.Between(1, 50), 100 + i);
      request->prompt_len = static_cast<int32_t>(sequence->tokens.size());
      sequence->blocks.Hash(sequence->tokens);
      request->sequences.push_back(std::move(sequence));
      requests.push_back(std::move(request));
    }
    const auto churn = [&](TimeUs now_us) {
      for (int i = 0; i < 20; ++i) {
        RequestRecord* request = requests[random.Between(0, kRequests - 1)].get();
        if (request->decode_set_member == -1) {
          groups.Enter(request->sequences.front().get(), now_us);
        } else if (random.OneIn(2)) {
          groups.Leave(request);
        } else {
          request->urgency.rank = random.Between(-3, 3);
          groups.Rerank(*request);
        }
      }
      while (Sequence* next = groups.Candidate(now_us)) {
        if (random.OneIn(2)) {
          groups.PassOver(now_us);
        } else if (groups.Approves(now_us)) {
          groups.Join(next->request, now_us);
        }
      }
      groups.EndRound();
      groups.ObserveStep(groups.num_active(), 0, 1000);
    };
    // All requests first wait at the same time, and then are in the batch at the same time, so that
    // later states are never larger.
    for (const auto& request : requests) groups.Enter(request->sequences.front().get(), 0);
    for (const auto& request : requests) groups.Join(request.get(), 0);
    for (const auto& request : requests) groups.Leave(request.get());
    for (TimeUs now_us = 0; now_us < 200; ++now_us) churn(now_us);
    const int64_t before = num_allocations;
    for (TimeUs now_us = 200; now_us < 2000; ++now_us) churn(now_us);
    EXPECT_EQ(num_allocations - before, 0);
    EXPECT_GT(groups.counters().joined, 1000u);
    EXPECT_GT(groups.counters().overdue, 0u);
  }
}

TEST(Allocation, TenThousandRequestsLeaveNothingBehind) {
  EngineConfig config = SomeConfig();
  const SchedulerConfig scheduler_config = MakeSchedulerConfig(config).value();
  Scheduler scheduler(scheduler_config);
  FakeExecutor executor(
      {.num_kv_blocks = config.scheduler.num_kv_blocks, .vocab_size = config.vocab_size});
  const std::atomic<bool> never{false};
  Random random(1);
  StepResults results;
  // Serves waves of 50 requests; each wave is served until nothing is left.
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
  // The reused vectors may still grow for a larger step, by a few kilobytes. They must not grow
  // with the number of requests.
  EXPECT_LT(live_bytes - bytes_before, 20000);
  const EngineStats stats = scheduler.Stats();
  EXPECT_EQ(stats.requests_oneshot + stats.requests_decode, 11000u);
  EXPECT_EQ(stats.kv_blocks_used, 0);
  EXPECT_LE(stats.kv_blocks_cached, stats.kv_blocks_total);
  EXPECT_TRUE(scheduler.empty());
}

}  // namespace
}  // namespace skein
