// Orders by job completion time, against the literal scan of the waiting queue.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "sched/scheduler.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

EngineConfig PrefillOnly(int32_t num_kv_blocks) {
  EngineConfig config;
  config.preset = "prefill-only";
  config.vocab_size = 1000;
  config.max_model_len = 4096;
  config.num_kv_blocks = num_kv_blocks;
  config.max_num_batched_tokens = 4096;
  return config;
}

// A prompt whose blocks are letters, and `tail` further tokens.
struct Letters {
  std::string blocks;
  int32_t tail = 0;

  int32_t length() const { return static_cast<int32_t>(blocks.size()) * kBlockTokens + tail; }
};

Request MakeRequest(const Letters& letters) {
  Request request;
  for (const char letter : letters.blocks) {
    request.prompt.insert(request.prompt.end(), kBlockTokens, letter);
  }
  request.prompt.insert(request.prompt.end(), letters.tail, 1);
  request.generate().max_tokens = 1;
  return request;
}

std::string Repeated(int count, char letter) { return std::string(count, letter); }

// Steps the scheduler; the requests of the step, none when there was nothing to do.
std::vector<RequestId> Step(Scheduler* scheduler, TimeUs* now_us, TimeUs duration_us) {
  const StepPlan* plan = scheduler->Plan(*now_us);
  scheduler->CheckIntegrity();
  *now_us += duration_us;
  std::vector<RequestId> ids;
  if (plan == nullptr) return ids;
  StepResults results;
  for (const PlanRow& row : std::get<OneShotPlan>(*plan).rows) {
    ids.push_back(RequestOf(row.sequence));
    results.draws.resize(results.draws.size() + row.draws.size());
  }
  scheduler->Complete(&results, *now_us);
  scheduler->TakeOutputs();
  scheduler->CheckIntegrity();
  return ids;
}

// PrefillOnly's Figure 5: A and D share a prefix, so do B and C, and there is room for one.
class FigureFive : public ::testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(FigureFive, Hits) {
  EngineConfig config = PrefillOnly(14);
  config.order = GetParam().first;
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
    const std::vector<RequestId> step = Step(&scheduler, &now_us, 1000);
    ASSERT_EQ(step.size(), 1u);
    order += static_cast<char>(step[0]);
    if (scheduler.Stats().prefix_cache_hits > hits_before) hits += static_cast<char>(step[0]);
  }
  EXPECT_EQ(order + ":" + hits, GetParam().second);
}

INSTANTIATE_TEST_SUITE_P(Orders, FigureFive,
                         ::testing::Values(std::pair("fcfs", "ABCD:C"), std::pair("srjf", "ACBD:B"),
                                           std::pair("srjf-calibrated", "ADCB:DB")));

// The prefix cache by its definition: what was released last is evicted last, and of one sequence
// the last block first. Blocks are named by all letters up to their end.
class ReferenceCache {
 public:
  explicit ReferenceCache(size_t num_blocks) : num_blocks_(num_blocks) {}

  int32_t NumCached(const Letters& letters) const {
    const int32_t most = (letters.length() - 1) / kBlockTokens;
    int32_t count = 0;
    while (count < most && Find(letters.blocks.substr(0, count + 1)) != cached_.end()) ++count;
    return count;
  }

  void Run(const Letters& letters) {
    const int32_t num_cached = NumCached(letters);
    for (int32_t i = 1; i <= num_cached; ++i) cached_.erase(Find(letters.blocks.substr(0, i)));
    const auto num_held = static_cast<size_t>(BlocksFor(letters.length()));
    while (cached_.size() + num_held > num_blocks_) cached_.pop_front();
    for (size_t i = letters.blocks.size(); i > 0; --i) {
      const auto found = Find(letters.blocks.substr(0, i));
      if (found != cached_.end()) cached_.erase(found);
      cached_.push_back(letters.blocks.substr(0, i));
    }
  }

 private:
  std::list<std::string>::const_iterator Find(const std::string& block) const {
    return std::ranges::find(cached_, block);
  }

  size_t num_blocks_;
  std::list<std::string> cached_;  // the next to be evicted first
};

struct Waiting {
  Letters letters;
  TimeUs arrival_us = 0;
};

// Algorithm 1: scores every waiting request and takes the least, of equal ones the earliest.
template <typename Score>
RequestId Scan(const std::map<RequestId, Waiting>& waiting, const Score& score) {
  auto best = waiting.begin();
  for (auto it = waiting.begin(); it != waiting.end(); ++it) {
    if (score(it->second) < score(best->second)) best = it;
  }
  return best->first;
}

Letters RandomLetters(Random* random) {
  Letters letters;
  const int64_t length = random->Between(0, 8);
  while (std::ssize(letters.blocks) < length) {
    letters.blocks += static_cast<char>('a' + random->Between(0, random->OneIn(4) ? 3 : 0));
  }
  letters.tail = static_cast<int32_t>(random->Between(letters.blocks.empty() ? 1 : 0, 31));
  return letters;
}

// Runs a random load and compares each choice with the scan under `score(waiting, now)`. The time
// of a step is `duration(letters, cached blocks)`.
template <typename Score, typename Duration>
void CompareWithScan(const EngineConfig& config, uint64_t seed, const Score& score,
                     const Duration& duration) {
  SCOPED_TRACE(seed);
  Random random(seed);
  Scheduler scheduler(MakeSchedulerConfig(config).value());
  ReferenceCache cache(config.num_kv_blocks);
  std::map<RequestId, Waiting> waiting;
  TimeUs now_us = random.Between(0, 1'000'000'000);
  RequestId next_id = 0;
  int32_t num_hits = 0;
  for (int round = 0; round < 1500; ++round) {
    for (int64_t i = random.Between(0, waiting.size() < 30 ? 3 : 1); i > 0; --i) {
      const Letters letters = RandomLetters(&random);
      waiting[next_id] = {letters, now_us};
      scheduler.Arrive(next_id++, MakeRequest(letters), now_us);
      if (random.OneIn(2)) now_us += random.Between(0, 2000);
    }
    if (random.OneIn(8) && !waiting.empty()) {
      const auto victim = std::next(waiting.begin(), random.Between(0, std::ssize(waiting) - 1));
      scheduler.Cancel(victim->first, now_us);
      waiting.erase(victim);
    }
    if (waiting.empty()) continue;
    const RequestId expected =
        Scan(waiting, [&](const Waiting& request) { return score(request, cache, now_us); });
    const Letters letters = waiting[expected].letters;
    const int32_t num_cached = cache.NumCached(letters);
    num_hits += num_cached > 0;
    const std::vector<RequestId> step =
        Step(&scheduler, &now_us, duration(letters, num_cached, &random));
    ASSERT_THAT(step, ElementsAre(expected)) << "round " << round;
    cache.Run(letters);
    waiting.erase(expected);
  }
  EXPECT_GT(num_hits, 300);
}

TEST(SrjfCalibrated, PicksWhatTheScanPicks) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    EngineConfig config = PrefillOnly(static_cast<int32_t>(9 + seed * 3));
    config.retention = "all";  // as the reference cache has it
    config.aging = seed % 4 == 0 ? 0 : 0.1 * static_cast<double>(seed * seed * seed);
    const int64_t lambda = JctOrder(MakeSchedulerConfig(config).value()).lambda();
    CompareWithScan(
        config, seed,
        [&](const Waiting& request, const ReferenceCache& cache, TimeUs now_us) {
          const int64_t missing =
              request.letters.length() - cache.NumCached(request.letters) * kBlockTokens;
          return missing * 1'000'000 - lambda * (now_us - request.arrival_us);
        },
        [](const Letters& letters, int32_t, Random* random) {
          return letters.length() * random->Between(1, 100);
        });
  }
}

TEST(SrjfCalibrated, PicksWhatTheScanPicksByAModelThatDrifts) {
  for (uint64_t seed = 11; seed <= 14; ++seed) {
    EngineConfig config = PrefillOnly(20);
    config.retention = "all";
    config.jct = "model";
    config.aging = 0.25;
    config.cost = {.step_us = 100, .token_us = 10, .pair_us = 0.05, .row_us = 0};
    CostModel model(config.cost);
    double speed = 1;
    CompareWithScan(
        config, seed,
        [&](const Waiting& request, const ReferenceCache& cache, TimeUs now_us) {
          const int32_t num_cached = cache.NumCached(request.letters) * kBlockTokens;
          const double us =
              model.PredictUs(WorkOf(request.letters.length() - num_cached, num_cached));
          return 1000 * std::llround(us) - 250 * (now_us - request.arrival_us);
        },
        [&](const Letters& letters, int32_t num_cached, Random* random) {
          if (random->OneIn(100)) speed = 0.5 + random->Uniform();
          const StepWork work =
              WorkOf(letters.length() - num_cached * kBlockTokens, num_cached * kBlockTokens);
          const auto us = static_cast<TimeUs>(PredictUs(config.cost, work) * speed) + 1;
          model.Observe(work, static_cast<double>(us));
          return us;
        });
    EXPECT_GT(model.version(), 10);
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
    return Step(&scheduler, &now_us, 10).at(0);
  };
  // 99 blocks more at 500 tokens per second.
  EXPECT_EQ(first(6'335'999), 2u);
  EXPECT_EQ(first(6'336'000), 1u);
  config.aging = 0;
  EXPECT_EQ(first(3'600'000'000), 2u);
}

TEST(SrjfCalibrated, PriorityGoesBeforeTheScore) {
  Scheduler scheduler(MakeSchedulerConfig(PrefillOnly(100)).value());
  Request urgent = MakeRequest({Repeated(50, 'a')});
  urgent.priority = -1;
  scheduler.Arrive(1, MakeRequest({"b"}), 0);
  scheduler.Arrive(2, std::move(urgent), 0);
  TimeUs now_us = 0;
  EXPECT_THAT(Step(&scheduler, &now_us, 10), ElementsAre(2));
}

TEST(Batching, SingleTakesOneAndBudgetAsManyAsFit) {
  for (const auto& [batching, expected] : {std::pair("single", 1u), std::pair("budget", 5u)}) {
    EngineConfig config = PrefillOnly(100);
    config.batching = batching;
    Scheduler scheduler(MakeSchedulerConfig(config).value());
    for (RequestId id = 0; id < 5; ++id) scheduler.Arrive(id, MakeRequest({"ab", 3}), 0);
    TimeUs now_us = 0;
    EXPECT_EQ(Step(&scheduler, &now_us, 10).size(), expected);
  }
}

// A prompt above the token budget is computed in pieces; nothing slips in between.
TEST(Batching, SingleEndsWhatItHasBegun) {
  EngineConfig config = PrefillOnly(100);
  config.retention = "all";  // else every prompt takes one step
  config.max_num_batched_tokens = 64;
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
  EXPECT_THAT(error([](EngineConfig* c) { c->order = "shortest"; }),
              HasSubstr("order: order is 'shortest', must be one of: fcfs, fair, srjf"));
  EXPECT_THAT(error([](EngineConfig* c) { c->batching = "all"; }), HasSubstr("single, budget"));
  EXPECT_THAT(error([](EngineConfig* c) { c->jct = "x"; }), HasSubstr("proxy, model"));
  EXPECT_THAT(error([](EngineConfig* c) { c->aging = -0.5; }), HasSubstr("aging is -0.5"));
  EXPECT_THAT(error([](EngineConfig* c) { c->aging = NAN; }), HasSubstr("[0, 100]"));
  EXPECT_EQ(error([](EngineConfig* c) { c->order = "srjf"; }), "ok");
}

}  // namespace
}  // namespace skein
