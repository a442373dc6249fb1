// Orders by deadline, compared with the formulas of the paper.

#include "sched/order/slack_order.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <map>
#include <string>
#include <vector>

#include "skein/choice_names.h"
#include "testing/order_scan.h"

namespace skein {
namespace {

using testing::CompareWithScan;
using testing::DriftingCost;
using ::testing::ElementsAre;
using testing::MakeRequest;
using testing::RandomLetters;
using testing::ReferenceCache;
using testing::Repeated;
using testing::RunStep;
using testing::Scan;
using testing::Waiting;

int Sign(TimeUs value) { return (value > 0) - (value < 0); }

// The priority by the formula: the request with the highest priority goes first.
double Priority(Order order, TimeUs deadline_us, TimeUs remaining_us, TimeUs now_us) {
  const double share = 1 / static_cast<double>(deadline_us);
  if (order == Order::kEdf) return share;
  if (order == Order::kDeadlineEdf) return Sign(deadline_us - now_us) * share;
  return Sign(deadline_us - now_us - remaining_us) * share;
}

constexpr Order kOrders[] = {Order::kEdf, Order::kDeadlineEdf, Order::kSlackEdf};

TEST(SlackOrder, RanksAreTheFormulasPriorities) {
  for (const Order order : kOrders) {
    const SlackOrder slack({.policies = {.order = order}, .deadlines = {.max_late_us = 0}},
                           nullptr);
    for (TimeUs now_us = 0; now_us <= 14; ++now_us) {
      for (TimeUs a = 1; a <= 12; ++a) {
        for (TimeUs a_left = 0; a_left <= 6; ++a_left) {
          const int64_t a_rank = slack.RankOf(a, a_left, now_us).rank;
          for (TimeUs b = 1; b <= 12; ++b) {
            for (TimeUs b_left = 0; b_left <= 6; ++b_left) {
              ASSERT_EQ(a_rank <=> slack.RankOf(b, b_left, now_us).rank,
                        Priority(order, b, b_left, now_us) <=> Priority(order, a, a_left, now_us))
                  << now_us << ": " << a << " " << a_left << ", " << b << " " << b_left;
            }
          }
        }
      }
    }
  }
}

// A rank holds exactly until the time that the order names. Requests beyond the bound go first, in
// order.
TEST(SlackOrder, RanksHoldUntilTheySay) {
  for (const Order order : kOrders) {
    for (const TimeUs bound_us : {0, 1, 5}) {
      const SlackOrder slack({.policies = {.order = order}, .deadlines = {.max_late_us = bound_us}},
                             nullptr);
      for (TimeUs deadline_us = 1; deadline_us <= 12; ++deadline_us) {
        for (TimeUs left_us = 0; left_us <= 6; ++left_us) {
          Ranking place = slack.RankOf(deadline_us, left_us, -20);
          for (TimeUs now_us = -19; now_us <= 40; ++now_us) {
            const Ranking next = slack.RankOf(deadline_us, left_us, now_us);
            EXPECT_GT(next.until_us, now_us);
            EXPECT_EQ(next.rank != place.rank, now_us == place.until_us);
            place = next;
          }
          EXPECT_EQ(place.until_us, SlackOrder::kNever);
          EXPECT_EQ(place.rank < 0, order != Order::kEdf && bound_us > 0);
        }
      }
    }
  }
  const SlackOrder slack(
      {.policies = {.order = Order::kDeadlineEdf}, .deadlines = {.max_late_us = 100}}, nullptr);
  EXPECT_LT(slack.RankOf(10, 0, 500).rank, slack.RankOf(11, 0, 500).rank);
}

TEST(SlackOrder, PriorityShiftsTheClass) {
  const auto deadline = [](std::optional<TimeUs> slo_us, int32_t priority) {
    Request request;
    request.slo_ttft_us = slo_us;
    request.priority = priority;
    return SlackOrder::DeadlineOf(request, 7, 1'000'000);
  };
  EXPECT_EQ(deadline(std::nullopt, 0), 1'000'007);
  EXPECT_EQ(deadline(4000, 0), 4007);
  EXPECT_EQ(deadline(4000, -1), 2007);
  EXPECT_EQ(deadline(4000, 3), 32'007);
  EXPECT_EQ(deadline(4000, -1000), 8);
  EXPECT_EQ(deadline(int64_t{1} << 40, 1'000'000), 7 + 1'000'000'000'000'000);
}

EngineConfig SlackConfig(Order order, int32_t num_kv_blocks) {
  EngineConfig config;
  config.scheduler.policies = FindPreset("distserve")->policies;
  config.scheduler.policies.order = order;
  config.scheduler.policies.batching = Batching::kSingle;
  config.vocab_size = 1000;
  config.scheduler.max_model_len = 4096;
  config.scheduler.num_kv_blocks = num_kv_blocks;
  config.scheduler.max_num_batched_tokens = 4096;
  config.scheduler.deadlines.max_late_us = 0;  // as in the formula
  return config;
}

Waiting RandomWaitingWithDeadline(Random* random) {
  return {.letters = RandomLetters(random),
          .slo_us = random->OneIn(10) ? 0 : 16 * random->Between(10, 2500),
          .priority = static_cast<int32_t>(random->OneIn(3) ? random->Between(-2, 2) : 0)};
}

TEST(SlackOrder, PicksWhatTheScanPicksAsTheCacheAndTheModelMove) {
  for (size_t which = 0; which < std::size(kOrders); ++which) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(NameOf(kOrders[which]));
      EngineConfig config = SlackConfig(kOrders[which], static_cast<int32_t>(9 + seed * 4));
      config.scheduler.deadlines.default_slo_us = 16'000;
      config.scheduler.cost = {.step_us = 100, .token_us = 10, .pair_us = 0.05, .row_us = 0};
      CostModel model(config.scheduler.cost);
      int64_t num_with_slack = 0, num_without = 0;
      CompareWithScan(
          config, seed, RandomWaitingWithDeadline,
          [&](const Waiting& request, const ReferenceCache& cache, TimeUs now_us) {
            const int32_t num_cached = cache.NumCached(request.letters) * kBlockTokens;
            const TimeUs left_us = std::llround(
                model.PredictUs(WorkOf(request.letters.length() - num_cached, num_cached)));
            const TimeUs slo_us = request.slo_us == 0 ? 16'000 : request.slo_us;
            const auto deadline_us =
                request.arrival_us + static_cast<TimeUs>(std::ldexp(slo_us, request.priority));
            const double priority = Priority(kOrders[which], deadline_us, left_us, now_us);
            ++(priority > 0 ? num_with_slack : num_without);
            return -priority;
          },
          DriftingCost(config.scheduler.cost, &model));
      EXPECT_GT(model.version(), 5);
      EXPECT_GT(num_with_slack, 1000);
      EXPECT_GE(num_without, kOrders[which] == Order::kEdf ? 0 : 1000);
    }
  }
}

// One request has missed its deadline, and further requests that can meet theirs keep coming.
TEST(SlackOrder, NobodyStarvesWhereTheWaitIsBounded) {
  const auto steps_until_served = [](int32_t max_late_ms) {
    EngineConfig config = SlackConfig(Order::kDeadlineEdf, 100);
    config.scheduler.deadlines.max_late_us = TimeUs{1000} * max_late_ms;
    Scheduler scheduler(MakeSchedulerConfig(config).value());
    TimeUs now_us = 1000;
    Request late = MakeRequest({"abc"});
    late.slo_ttft_us = 1;
    scheduler.Arrive(0, std::move(late), now_us);
    now_us += 2;
    for (RequestId id = 1; id <= 200; ++id) {
      Request request = MakeRequest({"b"});
      request.slo_ttft_us = 1'000'000;
      scheduler.Arrive(id, std::move(request), now_us);
      const TimeUs planned_us = now_us;
      if (RunStep(&scheduler, &now_us, 1000).at(0) == 0) return static_cast<int>(id);
      EXPECT_EQ(scheduler.NextRoundUs().has_value(), max_late_ms > 0);
      EXPECT_GT(scheduler.NextRoundUs().value_or(SlackOrder::kNever), planned_us);
    }
    return 0;
  };
  EXPECT_EQ(steps_until_served(0), 0);
  EXPECT_EQ(steps_until_served(50), 51);
}

// A partly computed prompt stops for an urgent request at the next chunk.
TEST(SlackOrder, ChunksMakeWayForTheUrgent) {
  EngineConfig config = SlackConfig(Order::kEdf, 100);
  config.scheduler.policies = FindPreset("distserve-cp2k")->policies;
  config.scheduler.max_num_seqs = 4;
  config.scheduler.policies.chunk_tokens = 64;
  Scheduler scheduler(MakeSchedulerConfig(config).value());
  TimeUs now_us = 0;
  Request file = MakeRequest({Repeated(6, 'f')});
  file.slo_ttft_us = 1'000'000;
  scheduler.Arrive(1, std::move(file), now_us);
  EXPECT_THAT(RunStep(&scheduler, &now_us, 10), ElementsAre(1));
  Request text = MakeRequest({"t"});
  text.slo_ttft_us = 1000;
  scheduler.Arrive(2, std::move(text), now_us);
  EXPECT_THAT(RunStep(&scheduler, &now_us, 10), ElementsAre(2, 1));
  EXPECT_THAT(RunStep(&scheduler, &now_us, 10), ElementsAre(1));
  EXPECT_FALSE(scheduler.empty());
}

// Orders by slack, with a sharing rule that stops steps. A token takes ten microseconds.
SchedulerConfig StoppingConfig() {
  EngineConfig config = SlackConfig(Order::kEdf, 100);
  config.scheduler.policies = FindPreset("flow-prefill")->policies;
  config.scheduler.cost = {.step_us = 0, .token_us = 10, .pair_us = 0, .row_us = 0};
  return MakeSchedulerConfig(config).value();
}

void ArriveWithin(Scheduler* scheduler, RequestId id, int32_t num_tokens, TimeUs slo_us,
                  TimeUs now_us) {
  Request request = MakeRequest({"", num_tokens});
  request.slo_ttft_us = slo_us;
  scheduler->Arrive(id, std::move(request), now_us);
}

// The remaining time of a running step falls with the clock, so the slack of its requests stays.
// When the step is suspended, their slack falls.
TEST(SlackOrder, WhatRunsKeepsItsSlack) {
  Scheduler scheduler(StoppingConfig());
  ArriveWithin(&scheduler, 1, 200, 2500, 0);
  ASSERT_NE(scheduler.Plan(0), nullptr);
  EXPECT_EQ(scheduler.NextRoundUs(), std::nullopt);
  ArriveWithin(&scheduler, 2, 20, 100'000, 1000);
  EXPECT_EQ(scheduler.Reconsider(1000), StepFate::kGoesOn);
  ArriveWithin(&scheduler, 3, 20, 300, 1000);
  EXPECT_EQ(scheduler.Reconsider(1000), StepFate::kSuspended);
  scheduler.CheckIntegrity();
  const int64_t stopped = scheduler.step_id();
  const StepPlan* plan = scheduler.Plan(1000);
  ASSERT_NE(plan, nullptr);
  const std::vector<PlanRow>& rows = std::get<OneShotPlan>(*plan).rows;
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(RequestOf(rows[0].sequence), 3u);
  EXPECT_EQ(scheduler.NextRoundUs(), 1500);  // of request 1: 2500 - (2000 - 1000)
  StepResults results;
  results.draws.resize(1);
  scheduler.Complete(&results, 1200);
  ASSERT_NE(scheduler.Plan(1200), nullptr);
  EXPECT_EQ(scheduler.step_id(), stopped);
  scheduler.CheckIntegrity();
}

// A suspended step ends for all of its rows at the same time, so each row needs the remaining time
// of the whole step.
TEST(SlackOrder, WhatIsSuspendedNeedsTheRestOfItsStep) {
  Scheduler scheduler(StoppingConfig());
  ArriveWithin(&scheduler, 1, 100, 2500, 0);
  ArriveWithin(&scheduler, 2, 100, 2600, 0);
  const StepPlan* plan = scheduler.Plan(0);
  ASSERT_NE(plan, nullptr);
  ASSERT_EQ(std::get<OneShotPlan>(*plan).rows.size(), 2u);  // the step takes 2 ms
  ArriveWithin(&scheduler, 3, 20, 300, 1500);
  EXPECT_EQ(scheduler.Reconsider(1500), StepFate::kSuspended);
  ASSERT_NE(scheduler.Plan(1500), nullptr);
  EXPECT_EQ(scheduler.NextRoundUs(), 2000);  // of request 1: 2500 - (2000 - 1500)
  scheduler.CheckIntegrity();
}

// Errors of requests that ran alone are errors of the model. They are counted apart from the errors
// of other requests.
TEST(SlackOrder, ErrorsOfPredictionsAreCounted) {
  EngineConfig config = SlackConfig(Order::kSlackEdf, 100);
  config.scheduler.policies.batching = Batching::kBudget;
  config.scheduler.cost = {.step_us = 0, .token_us = 10, .pair_us = 0, .row_us = 0};
  Scheduler scheduler(MakeSchedulerConfig(config).value());
  TimeUs now_us = 0;
  scheduler.Arrive(1, MakeRequest({"", 20}), now_us);
  EXPECT_THAT(RunStep(&scheduler, &now_us, 250), ElementsAre(1));  // 200 us were predicted: an
                                                                   // error of 0.2
  scheduler.Arrive(2, MakeRequest({"", 20}), now_us);
  scheduler.Arrive(3, MakeRequest({"", 20}), now_us);
  EXPECT_EQ(RunStep(&scheduler, &now_us, 400).size(), 2u);
  const EngineStats stats = scheduler.Stats();
  const auto& bounds = EngineStats::kErrorBounds;
  const auto place = [&bounds](double error) {
    return std::ranges::lower_bound(bounds, error) - bounds.begin();
  };
  EXPECT_NEAR(stats.ttft_error_alone.sum, 0.2, 1e-9);
  EXPECT_EQ(stats.ttft_error_alone.counts[place(0.199)], 1u);
  // After the first request, the device counts as 1.25 times slower than the fit. So 500 us were
  // predicted for the step of the two other requests.
  EXPECT_NEAR(stats.ttft_error_shared.sum, 2 * 0.25, 1e-9);
  EXPECT_EQ(stats.ttft_error_shared.counts[place(0.249)], 2u);
}

// The device is slower than its profile, by much, or by too little for a new version of the cost
// model. Predictions follow the device's speed from the second request on, long before the 16 steps
// that a new version takes.
TEST(SlackOrder, WhatIsForetoldFollowsTheSpeedOfTheLatestSteps) {
  for (const double slower : {1.5, 1.04}) {
    constexpr int kRequests = 12;
    EngineConfig config = SlackConfig(Order::kSlackEdf, 100);
    config.scheduler.cost = {.step_us = 100, .token_us = 10, .pair_us = 0, .row_us = 0};
    Scheduler scheduler(MakeSchedulerConfig(config).value());
    TimeUs now_us = 0;
    for (int i = 0; i < kRequests; ++i) {
      const int32_t num_tokens = 10 + 5 * (i % 4);
      scheduler.Arrive(i, MakeRequest({"", num_tokens}), now_us);
      const TimeUs real_us = std::llround(slower * (100 + 10 * num_tokens));
      EXPECT_EQ(RunStep(&scheduler, &now_us, real_us).size(), 1u);
    }
    const ErrorHistogram errors = scheduler.Stats().ttft_error_alone;
    const auto& bounds = EngineStats::kErrorBounds;
    const double first = 1 - 1 / slower;
    EXPECT_EQ(errors.counts[std::ranges::lower_bound(bounds, first) - bounds.begin()], 1u);
    EXPECT_EQ(errors.counts[0], kRequests - 1u);
    EXPECT_NEAR(errors.sum, first, 1e-9);
  }
}

}  // namespace
}  // namespace skein
