// Orders by job completion time, compared with a scan of the waiting queue as the paper describes
// it.

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sched/order/jct_order.h"
#include "skein/choice_names.h"
#include "testing/order_scan.h"

namespace skein {
namespace {

using testing::CompareWithOrder;
using testing::CompareWithScan;
using testing::DriftingCost;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Letters;
using testing::MakeRequest;
using testing::RandomLetters;
using testing::ReferenceCache;
using testing::Repeated;
using testing::RunStep;
using testing::Waiting;

EngineConfig PrefillOnly(int32_t num_kv_blocks) {
  EngineConfig config;
  config.scheduler.policies = FindPreset("prefill-only")->policies;
  config.scheduler.policies.batching = Batching::kSingle;  // as in the scan
  config.vocab_size = 1000;
  config.scheduler.max_model_len = 4096;
  config.scheduler.num_kv_blocks = num_kv_blocks;
  config.scheduler.max_num_batched_tokens = 4096;
  return config;
}

// PrefillOnly's Figure 5: A and D share a prefix, B and C share another, and the cache has room for
// one prefix.
class FigureFive : public ::testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(FigureFive, Hits) {
  EngineConfig config = PrefillOnly(14);
  config.scheduler.policies.order = ChoiceOf<Order>(GetParam().first).value();
  Scheduler scheduler(MakeSchedulerConfig(config).value());
  const std::map<char, Letters> requests = {{'A', {Repeated(8, 'x') + "a"}},
                                            {'B', {Repeated(9, 'y') + "bbbb"}},
                                            {'C', {Repeated(9, 'y') + "c"}},
                                            {'D', {Repeated(8, 'x') + "dddddd"}}};
  for (const auto& [name, letters] : requests) {
    scheduler.Arrive(static_cast<RequestId>(name), MakeRequest(letters), 0);
  }
  TimeUs now_us = 0;
  std::string order;
  std::string hits;
  while (!scheduler.empty()) {
    const uint64_t hits_before = scheduler.Stats().prefix_cache_hits;
    const std::vector<RequestId> step = RunStep(&scheduler, &now_us, 1000);
    ASSERT_EQ(step.size(), 1u);
    order += static_cast<char>(step[0]);
    if (scheduler.Stats().prefix_cache_hits > hits_before) hits += static_cast<char>(step[0]);
  }
  EXPECT_EQ(order + ":" + hits, GetParam().second);
}

INSTANTIATE_TEST_SUITE_P(Orders, FigureFive,
                         ::testing::Values(std::pair("fcfs", "ABCD:C"), std::pair("srjf", "ACBD:B"),
                                           std::pair("srjf-calibrated", "ADCB:DB")));

Waiting RandomWaiting(Random* random) { return {.letters = RandomLetters(random)}; }

TimeUs TokensTimesRandom(const StepWork& work, Random* random) {
  return std::llround(work.num_tokens) * random->Between(1, 100);
}

TEST(SrjfCalibrated, PicksWhatTheScanPicks) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    EngineConfig config = PrefillOnly(static_cast<int32_t>(9 + seed * 3));
    config.scheduler.policies.retention = Retention::kAll;  // as in the reference cache
    config.scheduler.jct.aging = seed % 4 == 0 ? 0 : 0.1 * static_cast<double>(seed * seed * seed);
    const int64_t lambda = JctOrder(MakeSchedulerConfig(config).value()).lambda();
    CompareWithScan(
        config, seed, RandomWaiting,
        [&](const Waiting& request, const ReferenceCache& cache, TimeUs now_us) {
          const int64_t missing =
              request.letters.length() - cache.NumCached(request.letters) * kBlockTokens;
          return missing * 1'000'000 - lambda * (now_us - request.arrival_us);
        },
        TokensTimesRandom);
  }
}

TEST(SrjfCalibrated, PicksWhatTheScanPicksByAModelThatDrifts) {
  for (uint64_t seed = 11; seed <= 14; ++seed) {
    EngineConfig config = PrefillOnly(20);
    config.scheduler.policies.retention = Retention::kAll;
    config.scheduler.jct.by = Jct::kModel;
    config.scheduler.jct.aging = 0.25;
    config.scheduler.cost = {.step_us = 100, .token_us = 10, .pair_us = 0.05, .row_us = 0};
    CostModel model(config.scheduler.cost);
    CompareWithScan(
        config, seed, RandomWaiting,
        [&](const Waiting& request, const ReferenceCache& cache, TimeUs now_us) {
          const int32_t num_cached = cache.NumCached(request.letters) * kBlockTokens;
          const double us =
              model.PredictUs(WorkOf(request.letters.length() - num_cached, num_cached));
          return 1000 * std::llround(us) - 250 * (now_us - request.arrival_us);
        },
        DriftingCost(config.scheduler.cost, &model));
    EXPECT_GT(model.version(), 10);
  }
}

// A new version of the cost model also gives running requests new ranks. An hour of waiting was
// weighted by another speed before. With its old rank, a running request would go behind all new
// requests and lose its blocks.
TEST(SrjfCalibrated, RanksWhoRunsByANewVersion) {
  constexpr TimeUs kHourUs = 3'600'000'000;
  constexpr RequestId kEarly = 100, kLate = 101;
  EngineConfig config = PrefillOnly(8);
  config.scheduler.policies = FindPreset("chunked-fcfs")->policies;
  config.scheduler.policies.order = Order::kSrjfCalibrated;
  config.scheduler.max_num_seqs = 4;
  config.scheduler.jct.aging = 0.1;
  config.scheduler.cost = {.step_us = 500, .token_us = 40};
  Scheduler scheduler(MakeSchedulerConfig(config).value());
  TimeUs now_us = 0;
  std::vector<RequestId> finished;
  const auto arrive = [&](RequestId id, int32_t length, int32_t max_tokens) {
    Request request = MakeRequest({"", length});
    request.prompt[0] = static_cast<TokenId>(id + 2);
    request.generate().max_tokens = max_tokens;
    scheduler.Arrive(id, std::move(request), now_us);
  };
  const auto step = [&](TimeUs duration_us) {
    const StepPlan* plan = scheduler.Plan(now_us);
    ASSERT_NE(plan, nullptr);
    StepResults results;
    const auto answer = [&](std::span<const PlanRow> rows) {
      for (const PlanRow& row : rows) {
        results.draws.resize(results.draws.size() + row.draws.size());
      }
    };
    if (const auto* oneshot = std::get_if<OneShotPlan>(plan)) answer(oneshot->rows);
    if (const auto* mixed = std::get_if<MixedPlan>(plan)) {
      answer(mixed->prefills);
      answer(mixed->decodes);
    }
    if (const auto* decode = std::get_if<DecodePlan>(plan)) answer(decode->rows);
    now_us += duration_us;
    scheduler.Complete(&results, now_us);
    scheduler.CheckIntegrity();
    for (const SampleOutput& output : scheduler.TakeOutputs()) {
      if (output.finish) finished.push_back(output.request);
    }
  };
  arrive(0, 20, 1);
  step(1000);
  now_us = kHourUs;
  arrive(kEarly, 60, 150);
  for (RequestId id = 1; id <= 40; ++id) {  // steps are slower than predicted
    arrive(id, 20, 1);
    step(5000);
  }
  ASSERT_EQ(finished.size(), 41u);
  arrive(kLate, 60, 110);
  while (!scheduler.empty()) step(5000);
  EXPECT_GT(scheduler.Stats().num_preemptions, 0u);
  EXPECT_THAT(std::span(finished).subspan(41), ElementsAre(kEarly, kLate));
}

Waiting RandomWaitingOfTwoPriorities(Random* random) {
  return {.letters = RandomLetters(random),
          .priority = static_cast<int32_t>(random->Between(0, 1))};
}

// The score of a request with `num_cached` cached blocks.
auto AgedScore(const Waiting& request, int32_t num_cached, int64_t lambda, TimeUs now_us) {
  const int64_t missing = request.letters.length() - num_cached * kBlockTokens;
  const int64_t score = missing * 1'000'000 - lambda * (now_us - request.arrival_us);
  return std::pair(request.priority, score);
}

// Retention is that of the preset. The smallest caches have no room for the longest prompts.
TEST(SrjfCalibrated, PicksWhatTheScanPicksWherePrefixesAreKept) {
  for (uint64_t seed = 21; seed <= 28; ++seed) {
    EngineConfig config = PrefillOnly(static_cast<int32_t>(5 + seed % 8));
    config.scheduler.jct.aging = seed % 4 == 0 ? 0 : 0.1 * static_cast<double>(seed % 4);
    const int64_t lambda = JctOrder(MakeSchedulerConfig(config).value()).lambda();
    CompareWithScan(
        config, seed, RandomWaitingOfTwoPriorities,
        [&](const Waiting& request, const ReferenceCache& cache, TimeUs now_us) {
          return AgedScore(request, cache.NumCached(request.letters), lambda, now_us);
        },
        TokensTimesRandom);
  }
}

// Batching is that of the preset: short prompts share a step. Each prompt is the scan's next choice
// when the prompts before it hold their blocks. No prompt waits for the prefix of another one
// (saturation_test.cc).
TEST(SrjfCalibrated, PicksWhatTheScanPicksWhereShortPromptsShareAStep) {
  for (uint64_t seed = 41; seed <= 48; ++seed) {
    EngineConfig config = PrefillOnly(static_cast<int32_t>(5 + seed % 8));
    config.scheduler.policies.batching = Batching::kSaturate;  // as in the preset
    config.scheduler.max_prefix_wait_us = 0;
    config.scheduler.cost = {.step_us = 100, .token_us = 6};  // 150 tokens saturate the device
    config.scheduler.jct.aging = seed % 4 == 0 ? 0 : 0.1 * static_cast<double>(seed % 4);
    const SchedulerConfig scheduler = MakeSchedulerConfig(config).value();
    ASSERT_EQ(scheduler.policies.batching, Batching::kSaturate);
    ASSERT_NEAR(static_cast<double>(SaturationTokens(scheduler.cost)), 150, 1);
    const int64_t lambda = JctOrder(scheduler).lambda();
    CompareWithScan(
        config, seed, RandomWaitingOfTwoPriorities,
        [&](const Waiting& request, const ReferenceCache& cache, TimeUs now_us) {
          return AgedScore(request, cache.NumCached(request.letters), lambda, now_us);
        },
        // Steps take their predicted time, so the weight of a second of waiting follows the
        // device's speed.
        [&](const StepWork& work, Random*) {
          return std::llround(PredictUs(scheduler.cost, work));
        });
  }
}

TEST(Srjf, PicksWhatTheScanPicksByTheJobTimeAtArrival) {
  for (uint64_t seed = 31; seed <= 38; ++seed) {
    EngineConfig config = PrefillOnly(static_cast<int32_t>(5 + seed % 8 * 2));
    config.scheduler.policies.order = Order::kSrjf;
    config.scheduler.policies.retention = seed % 2 == 0 ? Retention::kPrefix : Retention::kAll;
    if (seed % 2 != 0) config.scheduler.num_kv_blocks += 4;  // room for any prompt
    config.scheduler.jct.aging = seed % 4 == 0 ? 0 : 0.1 * static_cast<double>(seed % 4);
    const int64_t lambda = JctOrder(MakeSchedulerConfig(config).value()).lambda();
    CompareWithScan(
        config, seed, RandomWaitingOfTwoPriorities,
        [&](const Waiting& request, const ReferenceCache&, TimeUs now_us) {
          return AgedScore(request, request.num_cached, lambda, now_us);
        },
        TokensTimesRandom);
  }
}

TEST(SrjfCalibrated, ALongWaitGoesFirst) {
  EngineConfig config = PrefillOnly(200);
  const auto first = [&config](TimeUs wait_us) {
    Scheduler scheduler(MakeSchedulerConfig(config).value());
    TimeUs now_us = 5000;
    scheduler.Arrive(1, MakeRequest({Repeated(100, 'a')}), now_us);
    now_us += wait_us;
    scheduler.Arrive(2, MakeRequest({"b"}), now_us);
    return RunStep(&scheduler, &now_us, 10).at(0);
  };
  // The wait in which 500 tokens per second make up for 99 more blocks.
  EXPECT_EQ(first(6'335'999), 2u);
  EXPECT_EQ(first(6'336'000), 1u);
  config.scheduler.jct.aging = 0;
  EXPECT_EQ(first(3'600'000'000), 2u);
}

TEST(SrjfCalibrated, PriorityGoesBeforeTheScore) {
  Scheduler scheduler(MakeSchedulerConfig(PrefillOnly(100)).value());
  Request urgent = MakeRequest({Repeated(50, 'a')});
  urgent.priority = -1;
  scheduler.Arrive(1, MakeRequest({"b"}), 0);
  scheduler.Arrive(2, std::move(urgent), 0);
  TimeUs now_us = 0;
  EXPECT_THAT(RunStep(&scheduler, &now_us, 10), ElementsAre(2));
}

TEST(Batching, SingleTakesOneAndBudgetAsManyAsFit) {
  for (const auto& [batching, expected] :
       {std::pair(Batching::kSingle, 1u), std::pair(Batching::kBudget, 5u)}) {
    EngineConfig config = PrefillOnly(100);
    config.scheduler.policies.batching = batching;
    Scheduler scheduler(MakeSchedulerConfig(config).value());
    for (RequestId id = 0; id < 5; ++id) scheduler.Arrive(id, MakeRequest({"ab", 3}), 0);
    TimeUs now_us = 0;
    EXPECT_EQ(RunStep(&scheduler, &now_us, 10).size(), expected);
  }
}

// A prompt above the token budget is computed in several steps; no other prompt comes between them.
TEST(Batching, SingleEndsWhatItHasStarted) {
  EngineConfig config = PrefillOnly(100);
  config.scheduler.policies.retention = Retention::kAll;  // with other retentions, every prompt
                                                          // takes one step
  config.scheduler.max_num_batched_tokens = 64;
  Scheduler scheduler(MakeSchedulerConfig(config).value());
  scheduler.Arrive(1, MakeRequest({"abcd", 5}), 0);
  std::vector<RequestId> order;
  TimeUs now_us = 0;
  for (RequestId id = 2; id < 6; ++id) {
    const StepPlan* plan = scheduler.Plan(now_us);
    ASSERT_NE(plan, nullptr);
    const auto* oneshot = std::get_if<OneShotPlan>(plan);
    const auto& rows = oneshot ? oneshot->rows : std::get<MixedPlan>(*plan).prefills;
    ASSERT_EQ(rows.size(), 1u);
    order.push_back(RequestOf(rows[0].sequence));
    StepResults results;
    results.draws.resize(rows[0].draws.size());
    scheduler.Complete(&results, ++now_us);
    scheduler.CheckIntegrity();
    scheduler.Arrive(id, MakeRequest({"", 4}), now_us);
  }
  EXPECT_THAT(order, ElementsAre(1, 1, 1, 2));
}

TEST(Orders, BadChoicesAreRefusedByName) {
  const auto error = [](const auto& change) {
    EngineConfig config = PrefillOnly(10);
    change(&config);
    const auto made = MakeSchedulerConfig(config);
    return made.ok() ? std::string("ok") : made.status().param() + ": " + made.status().message();
  };
  EXPECT_THAT(error([](EngineConfig* c) { c->scheduler.jct.aging = -0.5; }),
              HasSubstr("aging is -0.5"));
  EXPECT_THAT(error([](EngineConfig* c) { c->scheduler.jct.aging = NAN; }), HasSubstr("[0, 100]"));
  EXPECT_EQ(error([](EngineConfig* c) { c->scheduler.policies.order = Order::kSrjf; }), "ok");
}

}  // namespace
}  // namespace skein
