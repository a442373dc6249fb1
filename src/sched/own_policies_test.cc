// A scheduler with policies that this file lists. It proves that a new order and a new batching
// rule need no change elsewhere.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "sched/policies.h"
#include "sched/scheduler.h"
#include "testing/order_scan.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::MakeRequest;
using testing::Repeated;
using testing::RunStep;

constexpr TimeUs kPatienceUs = 1000;

// Last come, first served. But a request that has waited for kPatienceUs goes before all others;
// among several of these, the latest goes first.
class LifoOrder final : public OrderPolicy {
 public:
  Ranking RankArrival(const OrderView& view, TimeUs now_us) override {
    return *Rerank(view, now_us);
  }
  std::optional<Ranking> Rerank(const OrderView& view, TimeUs now_us) const override {
    const TimeUs impatient_us = view.arrival_us + kPatienceUs;
    if (now_us < impatient_us) return Ranking{.rank = -view.arrival_us, .until_us = impatient_us};
    return Ranking{.rank = -view.arrival_us - kFirstImpatient};
  }

 private:
  static constexpr int64_t kFirstImpatient = int64_t{1} << 40;
};

// At most two prompts in a step, and the second is at most as long as the first.
class PairBatching final : public BatchingPolicy {
 public:
  int64_t MaxTokens(const StepSoFar& step) override {
    return step.prefills.size() == 1 ? step.prefills[0].num_tokens : 0;
  }
  bool SkipsToFit() const override { return true; }
};

constexpr auto kLifo = static_cast<Order>(100);
constexpr auto kPairs = static_cast<Batching>(100);
constexpr OrderEntry kOwnOrders[] = {
    {kLifo, [](const SchedulerConfig& /*config*/, const CostModel* /*cost*/) {
       return std::unique_ptr<OrderPolicy>(std::make_unique<LifoOrder>());
     }}};
constexpr BatchingEntry kOwnBatchings[] = {
    {kPairs, [](const SchedulerConfig& /*config*/, const CostModel* /*cost*/) {
       return std::unique_ptr<BatchingPolicy>(std::make_unique<PairBatching>());
     }}};

class OwnPolicies : public ::testing::Test {
 protected:
  OwnPolicies() {
    EngineConfig engine;
    engine.scheduler.policies = {};
    engine.vocab_size = 1000;
    engine.scheduler.max_model_len = 1024;
    engine.scheduler.num_kv_blocks = 200;
    engine.scheduler.max_num_batched_tokens = 1024;
    config_ = MakeSchedulerConfig(engine).value();
    lists_ = BuiltInPolicies();
    lists_.orders = kOwnOrders;
  }
  Scheduler& Make() {
    return scheduler_.emplace(config_, std::vector<SchedulerObserver*>{}, lists_);
  }
  // Runs the next step, which takes a microsecond; returns its requests.
  std::vector<RequestId> Next() { return RunStep(&*scheduler_, &now_us_, 1); }

  SchedulerConfig config_;
  PolicyLists lists_;
  std::optional<Scheduler> scheduler_;
  TimeUs now_us_ = 0;
};

TEST_F(OwnPolicies, AnOrderRanksByArrivalAndByTheClock) {
  config_.policies.order = kLifo;
  config_.policies.batching = Batching::kSingle;
  Scheduler& scheduler = Make();
  scheduler.Arrive(1, MakeRequest({"a"}), 0);
  scheduler.Arrive(2, MakeRequest({"b"}), 10);
  scheduler.Arrive(3, MakeRequest({"c"}), 995);
  EXPECT_EQ(scheduler.NextRoundUs(), 1000);  // then the first request becomes impatient
  now_us_ = 998;
  EXPECT_THAT(Next(), ElementsAre(3));
  scheduler.Arrive(4, MakeRequest({"d"}), 999);
  now_us_ = 1000;
  EXPECT_THAT(Next(), ElementsAre(1));
  EXPECT_THAT(Next(), ElementsAre(4));
  EXPECT_THAT(Next(), ElementsAre(2));
  EXPECT_THAT(Next(), IsEmpty());
  EXPECT_TRUE(scheduler.empty());
}

TEST_F(OwnPolicies, ABatchingRuleSaysWhatSharesAStep) {
  config_.policies.order = kLifo;
  config_.policies.batching = kPairs;
  lists_.batchings = kOwnBatchings;
  Scheduler& scheduler = Make();
  const int num_blocks[] = {2, 1, 5, 3, 1};  // the last request goes first
  for (int i = 0; i < 5; ++i) {
    scheduler.Arrive(i + 1, MakeRequest({Repeated(num_blocks[i], static_cast<char>('a' + i))}), i);
  }
  now_us_ = 10;
  EXPECT_THAT(Next(), ElementsAre(5, 2));  // passes the longer prompts 4 and 3
  EXPECT_THAT(Next(), ElementsAre(4, 1));
  EXPECT_THAT(Next(), ElementsAre(3));
  EXPECT_TRUE(scheduler.empty());
}

// Policies outside the built-in lists need no profile run unless they say so.
TEST_F(OwnPolicies, AreAskedWhetherTheyNeedCosts) {
  EXPECT_FALSE(NeedsCosts(config_));
  config_.policies.batching = Batching::kSloAware;
  EXPECT_TRUE(NeedsCosts(config_));
  config_.policies.order = kLifo;
  config_.policies.batching = kPairs;
  lists_.batchings = kOwnBatchings;
  EXPECT_FALSE(NeedsCosts(config_, lists_));
}

}  // namespace
}  // namespace skein
