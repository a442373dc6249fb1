#include "sched/order/auto_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "sched/order/jct_order.h"

namespace skein {
namespace {

constexpr CostFit kOrderFit = {.step_us = 100, .token_us = 10, .pair_us = 0.01, .row_us = 3};

SchedulerConfig AutoConfig() {
  SchedulerConfig config;
  config.policies = FindPreset("auto")->policies;
  config.cost = kOrderFit;
  return config;
}

// An order, and the requests that have arrived.
class AutoOrderTest : public ::testing::Test {
 protected:
  OrderView Arrive(int32_t num_tokens, TimeUs now_us, TimeUs slo_us = 0,
                   const std::string& user = "", int32_t priority = 0, uint64_t group = 0) {
    requests_.push_back(std::make_unique<Request>());
    Request& request = *requests_.back();
    request.group.id = group;
    request.user = user;
    request.priority = priority;
    if (slo_us > 0) request.slo_ttft_us = slo_us;
    OrderView view = {.request = request,
                      .arrival_us = now_us,
                      .deadline_us = now_us + slo_us,
                      .prompt_len = num_tokens,
                      .num_tokens = num_tokens};
    view.memo = order_.RankArrival(view, now_us).memo;
    return view;
  }
  int64_t RankOf(const OrderView& view, TimeUs now_us) const {
    return order_.Rerank(view, now_us)->rank;
  }
  TimeUs TimeOf(int64_t num_tokens) const {
    return std::llround(cost_.PredictUs(WorkOf(num_tokens, 0)));
  }

  const CostModel cost_{kOrderFit};
  AutoOrder order_{AutoConfig(), &cost_};
  std::vector<std::unique_ptr<Request>> requests_;
};

TEST_F(AutoOrderTest, PartsStandEndToEnd) {
  const OrderView in_time = Arrive(100, 0, 1'000'000);
  const OrderView due_first = Arrive(10, 0);
  const OrderView late = Arrive(100'000, 0, 1'000);
  const TimeUs late_us = 1'000'000 - TimeOf(100);
  EXPECT_LT(RankOf(in_time, late_us / 2 + 1), RankOf(due_first, 0));
  EXPECT_LT(RankOf(due_first, 0), RankOf(late, 0));
  // A deadline that cannot be met any more is ignored.
  EXPECT_LT(RankOf(in_time, late_us - 1), OrderPolicy::kFirstLateRank);
  EXPECT_GT(RankOf(in_time, late_us), RankOf(due_first, late_us));
  // A request whose bound has passed goes first, late or not.
  const OrderView served = Arrive(1000, 0);
  order_.OnPrompt(served.request, served.memo, 0);
  EXPECT_LT(RankOf(late, late.memo.overdue_us), RankOf(in_time, 0));
  EXPECT_LT(RankOf(due_first, due_first.memo.overdue_us), RankOf(in_time, 0));
}

// Half of the slack belongs to requests without a deadline, as long as any waits.
TEST_F(AutoOrderTest, ARequestWithSlackIsDueLikeTheOthers) {
  const OrderView in_time = Arrive(100, 0, 1'000'000);
  EXPECT_EQ(RankOf(in_time, 0), in_time.deadline_us);
  const OrderView shorter = Arrive(50, 0), longer = Arrive(200, 0);
  EXPECT_LT(RankOf(shorter, 0), RankOf(in_time, 0));
  EXPECT_LT(RankOf(in_time, 0), RankOf(longer, 0));
  EXPECT_GE(RankOf(in_time, 0), order_.FirstPatientRank());  // no step makes way for it
  const TimeUs presses_us = order_.Rerank(in_time, 0)->until_us;
  EXPECT_NEAR(static_cast<double>(presses_us), 500'000, TimeOf(100));
  EXPECT_EQ(RankOf(in_time, presses_us), in_time.deadline_us);
  order_.OnEnd(shorter.request, 0, shorter.memo);
  order_.OnPrompt(longer.request, longer.memo, 1000);
  EXPECT_EQ(RankOf(in_time, 0), in_time.deadline_us);
}

// In the second half of its bound, a late request has the end of the bound as deadline.
TEST_F(AutoOrderTest, ALateRequestIsInTimeAgainBeforeItIsOverdue) {
  const OrderView late = Arrive(100'000, 0, 1'000);
  const TimeUs overdue_us = late.memo.overdue_us;
  EXPECT_EQ(overdue_us, late.deadline_us + AutoConfig().deadlines.max_late_us);
  const TimeUs returns_us = order_.Rerank(late, 0)->until_us;
  EXPECT_EQ(returns_us, overdue_us / 2);
  EXPECT_EQ(RankOf(late, returns_us), overdue_us);
  const OrderView sooner = Arrive(100, returns_us, overdue_us - returns_us - 1);
  const OrderView later = Arrive(100, returns_us, overdue_us - returns_us + 1);
  EXPECT_LT(RankOf(sooner, returns_us), RankOf(late, returns_us));
  EXPECT_LT(RankOf(late, returns_us), RankOf(later, returns_us));
  EXPECT_LT(RankOf(late, overdue_us), RankOf(sooner, returns_us));
}

// Requests of different clients, without deadlines: the order is that of PrefillOnly's score with
// the predicted time.
TEST_F(AutoOrderTest, WithoutDeadlinesTheShortestAgedJobGoesFirst) {
  SchedulerConfig config = AutoConfig();
  config.policies.order = Order::kSrjfCalibrated;
  config.jct = {.by = Jct::kModel, .aging = AutoOrder::kAging};
  const JctOrder jct(config);
  Random random(5);
  for (int pair = 0; pair < 2000; ++pair) {
    const auto a_tokens = static_cast<int32_t>(random.Between(1, 4000));
    const auto b_tokens = static_cast<int32_t>(random.Between(1, 4000));
    const TimeUs b_us = random.Between(0, 500'000);
    const OrderView a = Arrive(a_tokens, 0), b = Arrive(b_tokens, b_us);
    const int64_t a_score = jct.RankOf(a_tokens, 0, 0), b_score = jct.RankOf(b_tokens, 0, b_us);
    // The due time is rounded to microseconds, the score is not.
    if (std::abs(a_score - b_score) < 200) continue;
    EXPECT_EQ(RankOf(a, b_us) < RankOf(b, b_us), a_score < b_score);
  }
}

TEST_F(AutoOrderTest, AClientsManyRequestsDoNotHoldUpAnothersOne) {
  std::vector<OrderView> flood;
  for (int i = 0; i < 200; ++i) flood.push_back(Arrive(200, 0, 0, "flood"));
  // A tenth of the prompts has been computed when another client's request arrives.
  const TimeUs now_us = 20 * TimeOf(200);
  for (int i = 0; i < 20; ++i) order_.OnPrompt(flood[i].request, flood[i].memo, now_us);
  const OrderView single = Arrive(200, now_us, 0, "single");
  const auto before = std::ranges::count_if(flood.begin() + 20, flood.end(), [&](const auto& view) {
    return RankOf(view, now_us) < RankOf(single, now_us);
  });
  EXPECT_LE(before, 21);  // 1 / kAging and the request itself
  // Computed prompts no longer count.
  for (size_t i = 20; i < flood.size(); ++i) {
    order_.OnPrompt(flood[i].request, flood[i].memo, now_us);
  }
  EXPECT_EQ(Arrive(200, now_us, 0, "flood").memo.stretch, 1 / AutoOrder::kAging);
}

// Each decision has a short and a long question. No decision waits for the short questions of all
// others.
TEST_F(AutoOrderTest, TheReadsOfOneRequestStandTogether) {
  std::vector<OrderView> reads;
  for (uint64_t group = 1; group <= 10; ++group) {
    const auto now_us = static_cast<TimeUs>(group);
    reads.push_back(Arrive(100, now_us, 0, "", 0, group));
    reads.push_back(Arrive(300, now_us, 0, "", 0, group));
  }
  EXPECT_TRUE(
      std::ranges::is_sorted(reads, {}, [&](const auto& read) { return RankOf(read, 20); }));
}

TEST_F(AutoOrderTest, TheBoundIsAMultipleOfTheWaitInLine) {
  EXPECT_EQ(Arrive(2048, 0).memo.overdue_us, AutoOrder::kMaxWaitUs);
  EXPECT_EQ(Arrive(10, 500).memo.overdue_us, 500 + 3 * 2 * TimeOf(1024) + AutoOrder::kMaxWaitUs);
}

// A request that has missed its deadline may wait as long as under the other orders by deadline,
// but not shorter than one without a deadline.
TEST_F(AutoOrderTest, TheBoundOfALateRequestBeginsAtItsDeadline) {
  SchedulerConfig config = AutoConfig();
  for (const TimeUs max_late_us : {TimeUs{0}, TimeUs{1'000}, TimeUs{50'000'000}}) {
    config.deadlines.max_late_us = max_late_us;
    AutoOrder order(config, &cost_);
    const OrderView view = Arrive(10, 500, 40'000);
    const TimeUs overdue_us = order.RankArrival(view, 500).memo.overdue_us;
    if (max_late_us == 0) {
      EXPECT_GT(overdue_us, int64_t{365} * 86'400 * 1'000'000);  // no limit
    } else if (max_late_us == 1'000) {
      EXPECT_EQ(overdue_us, 500 + AutoOrder::kMaxWaitUs);
    } else {
      EXPECT_EQ(overdue_us, view.deadline_us + max_late_us);
    }
  }
}

// Prompts that wait for decode slots begin more slowly than those before them did.
TEST_F(AutoOrderTest, TheBoundAlsoAsksForTheTokensInLine) {
  const OrderView before = Arrive(2048, 0);
  const OrderView view = Arrive(10, 0);
  const TimeUs overdue_us = view.memo.overdue_us;
  const Ranking early = *order_.Rerank(view, overdue_us);
  EXPECT_EQ(early.rank, RankOf(view, 0));
  EXPECT_GT(early.until_us, overdue_us);
  EXPECT_NE(early.until_us, Ranking::kNever);
  order_.OnPrompt(before.request, before.memo, overdue_us);
  const OrderView later = Arrive(4096, overdue_us);
  EXPECT_EQ(RankOf(view, overdue_us), early.rank);
  order_.OnPrompt(later.request, later.memo, overdue_us);
  EXPECT_LT(RankOf(view, overdue_us), RankOf(Arrive(10, 0, 1'000'000), 0));
}

TEST_F(AutoOrderTest, ACachedPrefixAndPriorityShortenTheDueTime) {
  OrderView view = Arrive(1000, 0);
  const int64_t rank = RankOf(view, 0);
  view.num_cached = 900;
  EXPECT_LT(RankOf(view, 0), rank);
  EXPECT_LT(RankOf(Arrive(1000, 0, 0, "", -1), 0), rank);
  EXPECT_GT(RankOf(Arrive(1000, 0, 0, "", 1), 0), rank);
}

// A rank holds exactly until the time that the order names.
TEST_F(AutoOrderTest, RanksHoldUntilTheySay) {
  for (const TimeUs slo_us : {0, 40'000, 90'000, 5'000'000}) {
    const OrderView view = Arrive(4000, 0, slo_us);
    Ranking ranking = *order_.Rerank(view, 0);
    int num_changes = 0;
    for (TimeUs now_us = 0; now_us <= 40'000'000; now_us += 1000) {
      const TimeUs until_us = ranking.until_us;
      if (until_us <= now_us) {
        EXPECT_EQ(order_.Rerank(view, until_us - 1)->rank, ranking.rank);
        const Ranking next = *order_.Rerank(view, until_us);
        EXPECT_NE(next.rank, ranking.rank);
        EXPECT_GT(next.until_us, until_us);
        ranking = next;
        ++num_changes;
      }
      EXPECT_EQ(order_.Rerank(view, now_us)->rank, ranking.rank) << now_us;
    }
    EXPECT_EQ(ranking.until_us, Ranking::kNever);
    EXPECT_GE(num_changes, 1);
    order_.OnPrompt(view.request, view.memo, 0);
  }
}

}  // namespace
}  // namespace skein
