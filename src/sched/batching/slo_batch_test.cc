// SLO-aware batching, compared with the loop of Algorithm 1.

#include "sched/batching/slo_batch.h"

#include <map>
#include <string>
#include <vector>

#include "testing/order_scan.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::MakeRequest;
using testing::RandomLetters;
using testing::RunStep;
using testing::Scan;
using testing::Waiting;

EngineConfig BatchConfig() {
  EngineConfig config;
  config.scheduler.policies = FindPreset("distserve")->policies;
  config.scheduler.policies.order = Order::kSlackEdf;
  config.scheduler.policies.batching = Batching::kSloAware;
  config.vocab_size = 1000;
  config.scheduler.max_model_len = 1024;
  config.scheduler.num_kv_blocks = 2000;
  config.scheduler.max_num_batched_tokens = 4096;
  config.scheduler.prefix_caching = false;
  config.scheduler.deadlines.max_late_us = 0;
  config.scheduler.cost = {.step_us = 100, .token_us = 10, .pair_us = 0.01, .row_us = 3};
  return config;
}

// Returns the most urgent waiting request and, in order, all requests that fit beside it.
std::vector<RequestId> Walk(const CostFit& fit, int32_t token_budget,
                            const std::map<RequestId, Waiting>& waiting, TimeUs now_us) {
  const auto pairs = [](double n) { return n * (n + 1) / 2; };
  const auto own_us = [&](double n) {
    return fit.step_us + fit.token_us * n + fit.pair_us * pairs(n) + fit.row_us;
  };
  const auto deadline_us = [](const Waiting& request) {
    return request.arrival_us + request.slo_us;
  };
  const std::vector<RequestId> order = Scan(waiting, [&](const Waiting& request) {
    const TimeUs slack =
        deadline_us(request) - now_us - std::llround(own_us(request.letters.length()));
    return ((slack < 0) - (slack > 0)) / static_cast<double>(deadline_us(request));
  });
  const Waiting& head = waiting.at(order[0]);
  const double left_us = static_cast<double>(deadline_us(head) - now_us);
  const double head_tokens = head.letters.length();
  std::vector<RequestId> batch = {order[0]};
  double sum = head_tokens;
  for (size_t i = 1; i < order.size(); ++i) {
    const double with = sum + waiting.at(order[i]).letters.length();
    const double others = with - head_tokens;
    const double predicted_us =
        own_us(head_tokens) + fit.token_us * others + fit.pair_us * pairs(others) + fit.row_us;
    if (!(left_us > predicted_us && with < token_budget)) continue;
    batch.push_back(order[i]);
    sum = with;
  }
  return batch;
}

TEST(SloBatch, TakesWhatTheWalkTakes) {
  int64_t num_single = 0, num_several = 0, num_skipped = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    EngineConfig config = BatchConfig();
    config.scheduler.deadlines.slo_batch_tokens = static_cast<int32_t>(random.Between(20, 1200));
    Scheduler scheduler(MakeSchedulerConfig(config).value());
    CostModel model(config.scheduler.cost);
    std::map<RequestId, Waiting> waiting;
    TimeUs now_us = random.Between(0, 1'000'000);
    RequestId next_id = 0;
    for (int round = 0; round < 600; ++round) {
      for (int64_t i = random.Between(0, waiting.size() < 40 ? 12 : 0); i > 0; --i) {
        const Waiting one = {.letters = RandomLetters(&random),
                             .arrival_us = now_us,
                             .slo_us = random.Between(200, 40'000)};
        Request request = MakeRequest(one.letters);
        request.slo_ttft_us = one.slo_us;
        if (random.OneIn(3)) request.generate().max_tokens = 2;  // a Decode-class request
        if (random.OneIn(3)) request.generate().stop_token_ids = {0};
        waiting[next_id] = one;
        scheduler.Arrive(next_id++, std::move(request), now_us);
      }
      if (waiting.empty()) continue;
      const std::vector<RequestId> expected =
          Walk(model.fit(), config.scheduler.deadlines.slo_batch_tokens, waiting, now_us);
      const StepPlan* plan = scheduler.Plan(now_us);
      scheduler.CheckIntegrity();
      std::vector<RequestId> taken;
      StepResults results;
      const auto take = [&](const std::vector<PlanRow>& rows) {
        for (const PlanRow& row : rows) {
          taken.push_back(RequestOf(row.sequence));
          results.draws.resize(results.draws.size() + row.draws.size());
        }
      };
      if (const auto* oneshot = std::get_if<OneShotPlan>(plan)) take(oneshot->rows);
      if (const auto* mixed = std::get_if<MixedPlan>(plan)) take(mixed->prefills);
      ASSERT_THAT(taken, ElementsAreArray(expected)) << "round " << round;
      ++(taken.size() == 1 ? num_single : num_several);
      num_skipped += taken.size() > 1 && taken.size() < waiting.size();
      const TimeUs duration_us = random.Between(1, 3000);
      model.Observe(WorkOf(*plan), static_cast<double>(duration_us));
      now_us += duration_us;
      scheduler.Complete(&results, now_us);
      for (const RequestId id : taken) {
        waiting.erase(id);
        scheduler.Cancel(id, now_us);  // decodes are not part of this test
      }
      scheduler.TakeOutputs();
      scheduler.CheckIntegrity();
    }
  }
  EXPECT_GT(num_single, 200);
  EXPECT_GT(num_several, 1000);
  EXPECT_GT(num_skipped, 1000);
}

TEST(SloBatch, AHeadAboveTheBudgetRunsAlone) {
  EngineConfig config = BatchConfig();
  config.scheduler.deadlines.slo_batch_tokens = 64;
  Scheduler scheduler(MakeSchedulerConfig(config).value());
  TimeUs now_us = 0;
  scheduler.Arrive(1, MakeRequest({"abc"}), now_us);
  scheduler.Arrive(2, MakeRequest({"", 3}), now_us);
  EXPECT_THAT(RunStep(&scheduler, &now_us, 10), ElementsAre(1));
}

TEST(SloBatch, MaxTokensIsWhereTheConditionsEnd) {
  Random random(5);
  for (int i = 0; i < 2000; ++i) {
    SloBatch batch = {.fit = {.step_us = static_cast<double>(random.Between(0, 50)),
                              .token_us = random.Uniform(),
                              .pair_us = random.Uniform() / 100,
                              .row_us = random.Uniform()},
                      .left_us = static_cast<double>(random.Between(-50, 400)),
                      .token_budget = random.Between(1, 500),
                      .num_head_tokens = random.Between(1, 100)};
    batch.head = WorkOf(batch.num_head_tokens, random.Between(0, 100));
    const int64_t others = random.Between(0, 100);
    int64_t most = 0;
    while (batch.left_us > batch.PredictUs(others + most + 1) &&
           batch.num_head_tokens + others + most + 1 < batch.token_budget) {
      ++most;
    }
    ASSERT_EQ(batch.MaxTokens(others), most);
  }
}

}  // namespace
}  // namespace skein
