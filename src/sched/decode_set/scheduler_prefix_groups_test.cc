// The decode set `prefix-homogeneous` in the scheduler, with the fake executor and a virtual clock.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "sched/scheduler.h"
#include "skein/choice_names.h"
#include "testing/prefix_group_load.h"

namespace skein {
namespace {

using testing::ConfigOf;
using ::testing::ElementsAre;
using testing::World;

TEST(SchedulerPrefixGroups, BatchesAreOfOneGroupWhereFillMixesThem) {
  for (const DecodeSet decode_set : {DecodeSet::kFill, DecodeSet::kPrefixHomogeneous}) {
    World world(ConfigOf(decode_set, StopRule::kHeuristic));
    for (int group = 0; group < 4; ++group) {  // caches the prefixes of the groups
      world.Arrive(group, 2);
      while (world.Step()) {
      }
    }
    for (int i = 0; i < 32; ++i) world.Arrive(i % 4);
    int num_steps = 0, num_mixed = 0;
    while (world.Step()) {
      ++num_steps;
      num_mixed += world.GroupsOf(world.decoding).size() > 1;
    }
    EXPECT_EQ(world.num_unfinished(), 0u);
    const EngineStats stats = world.scheduler().Stats();
    if (decode_set == DecodeSet::kPrefixHomogeneous) {
      EXPECT_EQ(num_mixed, 0);  // eight slots, eight requests in a group
      EXPECT_EQ(stats.prefix_groups_joined, 36u);
      EXPECT_EQ(stats.prefix_groups_overdue, 0u);
    } else {
      EXPECT_GT(num_mixed, num_steps / 2);
      EXPECT_EQ(stats.prefix_groups_joined, 0u);
    }
  }
}

// Both groups would bring the same number of chunks to an empty batch. The order decides, by cached
// tokens. If the order knows only arrivals, the set itself compares cached tokens.
TEST(SchedulerPrefixGroups, TheOrderBreaksTies) {
  const std::map<Order, int> firsts = {{Order::kFcfs, 2}, {Order::kSrjf, 2}, {Order::kLpm, 2}};
  for (const auto& [order, first] : firsts) {
    EngineConfig config = ConfigOf(DecodeSet::kPrefixHomogeneous, StopRule::kNever);
    config.scheduler.policies.order = order;
    config.scheduler.max_num_seqs = 1;
    World world(config);
    world.Arrive(2, 2);
    while (world.Step()) {
    }
    std::map<int, RequestId> ids;
    for (const int group : {1, 2}) ids[group] = world.Arrive(group);
    world.Step();
    EXPECT_THAT(world.prefilling, ElementsAre(ids.at(first))) << NameOf(order);
    while (world.Step()) {
    }
    EXPECT_EQ(world.num_unfinished(), 0u);
  }
}

// The order follows the present cache: the prefix of one request is cached while the request waits.
TEST(SchedulerPrefixGroups, TheOrderBreaksTiesAnew) {
  for (const Order order : {Order::kLpm, Order::kSrjfCalibrated}) {
    EngineConfig config = ConfigOf(DecodeSet::kPrefixHomogeneous, StopRule::kNever);
    config.scheduler.policies.order = order;
    config.scheduler.jct.aging = 0;
    config.scheduler.max_num_seqs = 1;
    World world(config);
    world.Arrive(1, 10);
    world.Step();
    const RequestId early = world.Arrive(2);
    world.Arrive(2, 1);  // takes no slot
    world.Step();
    const RequestId late = world.Arrive(2);
    std::vector<RequestId> order_of_start;
    while (world.Step()) {
      order_of_start.insert(order_of_start.end(), world.prefilling.begin(), world.prefilling.end());
    }
    EXPECT_THAT(order_of_start, ElementsAre(early, late)) << NameOf(order);
    EXPECT_EQ(world.num_unfinished(), 0u);
  }
}

// The order goes depth first: the heavier branch goes first.
TEST(SchedulerPrefixGroups, TheOrderOfEachRoundBreaksTies) {
  EngineConfig config = ConfigOf(DecodeSet::kPrefixHomogeneous, StopRule::kNever);
  config.scheduler.policies.order = Order::kDfsWeight;
  config.scheduler.max_num_seqs = 1;
  World world(config);
  for (const int group : {1, 2}) {  // caches the prefixes of both groups
    world.Arrive(group, 2);
    while (world.Step()) {
    }
  }
  world.Arrive(1);
  const RequestId heavy = world.Arrive(2);
  world.Arrive(2);
  world.Step();
  EXPECT_THAT(world.prefilling, ElementsAre(heavy));
  while (world.Step()) {
  }
  EXPECT_EQ(world.num_unfinished(), 0u);
}

// Each of several cold prefixes is computed once; the prefixes of several groups are computed in
// one step.
TEST(SchedulerPrefixGroups, AColdPrefixIsComputedOnce) {
  World world(ConfigOf(DecodeSet::kPrefixHomogeneous, StopRule::kNever));
  for (int i = 0; i < 32; ++i) world.Arrive(i % 4);
  world.Step();
  EXPECT_THAT(world.prefilling, ElementsAre(0, 1, 2, 3));
  world.Step();
  EXPECT_EQ(world.prefilling.size(), 4u);
  while (world.Step()) {
  }
  EXPECT_EQ(world.num_prefill_tokens, (4 * 8 + 32) * kBlockTokens);
  EXPECT_EQ(world.num_unfinished(), 0u);
}

// An overdue request waits for its prefix, too, and no request passes it meanwhile.
TEST(SchedulerPrefixGroups, WhoWaitsForAPrefixIsNextWhenOverdue) {
  EngineConfig config = ConfigOf(DecodeSet::kPrefixHomogeneous, StopRule::kNever);
  config.scheduler.prefix_groups.max_wait_us = 1000;
  World world(config);
  for (int i = 0; i < 3; ++i) world.Arrive(1);
  world.Arrive(2);
  world.now_us = 2000;
  world.Step();
  EXPECT_THAT(world.prefilling, ElementsAre(0));
  world.scheduler().Cancel(0, world.now_us);
  world.Step();
  EXPECT_THAT(world.prefilling, ElementsAre(1, 2, 3));
}

TEST(SchedulerPrefixGroups, TheSharedPrefixIsAGauge) {
  World world(ConfigOf(DecodeSet::kPrefixHomogeneous, StopRule::kNever));
  for (int i = 0; i < 4; ++i) world.Arrive(1);
  world.Step();
  world.Step();  // the first one has computed the shared prefix
  EXPECT_EQ(world.scheduler().Stats().prefix_groups_shared_tokens, 8 * kBlockTokens);
  world.Arrive(2);
  world.Step();
  EXPECT_EQ(world.scheduler().Stats().prefix_groups_shared_tokens, 0);
}

// A request with a prefix of its own waits beside a stream of requests that share theirs.
TEST(SchedulerPrefixGroups, NobodyStarves) {
  for (const bool bounded : {false, true}) {
    EngineConfig config = ConfigOf(DecodeSet::kPrefixHomogeneous, StopRule::kHeuristic);
    config.scheduler.prefix_groups.max_wait_us = TimeUs{1000} * (bounded ? 100 : 3'600'000);
    World world(config);
    for (int i = 0; i < 8; ++i) world.Arrive(1, 5 + i);
    world.Step();
    world.Step();  // the first one has computed the shared prefix
    const RequestId lonely = world.Arrive(2);
    for (int step = 0; step < 300; ++step) {
      while (world.scheduler().num_queued() < 8) world.Arrive(1, 5 + step % 8);
      ASSERT_TRUE(world.Step());
    }
    ASSERT_EQ(world.waited_us.contains(lonely), bounded);
    if (bounded) {
      // The wait is at most the bound, plus the time until the next of eight rows ends.
      EXPECT_LT(world.waited_us.at(lonely), 100'000 + 13 * 5'000);
      EXPECT_GE(world.scheduler().Stats().prefix_groups_overdue, 1u);
    }
    while (world.Step()) {
    }
    EXPECT_EQ(world.num_unfinished(), 0u);
  }
}

TEST(SchedulerPrefixGroups, OneShotWorkGoesOnWhileTheBatchIsClosed) {
  // With fewer than eight requests, the batch would take the request of group 2.
  EngineConfig config = ConfigOf(DecodeSet::kPrefixHomogeneous, StopRule::kHeuristic);
  config.scheduler.max_num_seqs = 12;
  config.scheduler.max_num_batched_tokens = 4096;
  World world(config);
  for (int i = 0; i < 8; ++i) world.Arrive(1, 50);
  world.Step();
  world.Step();
  const RequestId foreign = world.Arrive(2);
  world.Step();
  EXPECT_THAT(world.prefilling, ElementsAre());  // 256 tokens would be lost, and group 2 has no
                                                 // other request
  const RequestId read = world.Arrive(3, 1);
  world.Step();
  EXPECT_THAT(world.prefilling, ElementsAre(read));
  EXPECT_GE(world.scheduler().Stats().prefix_groups_stops, 2u);
  const RequestId candidate = world.Arrive(1);
  world.Step();
  EXPECT_THAT(world.prefilling, ElementsAre(candidate));
  while (world.Step()) {
  }
  EXPECT_TRUE(world.waited_us.contains(foreign));
}

// If KV blocks are scarce, smaller requests pass a large one until it is overdue.
TEST(SchedulerPrefixGroups, WhatDoesNotFitIsPassedUntilItIsOverdue) {
  for (const bool bounded : {false, true}) {
    EngineConfig config = ConfigOf(DecodeSet::kPrefixHomogeneous, StopRule::kNever);
    config.scheduler.num_kv_blocks = 34;
    config.scheduler.prefix_groups.max_wait_us = TimeUs{1000} * (bounded ? 50 : 3'600'000);
    World world(config);
    for (int i = 0; i < 3; ++i) world.Arrive(1, 40);
    world.Step();
    world.Step();
    const RequestId large = world.Arrive(1, 20, 8, 22);  // shares 8 blocks and needs 22 more
    for (int step = 0; step < 400; ++step) {
      if (world.scheduler().num_queued() < 2) world.Arrive(1, 20 + step % 20);
      ASSERT_TRUE(world.Step());
      EXPECT_TRUE(bounded || !world.waited_us.contains(large));
    }
    EXPECT_EQ(world.waited_us.contains(large), bounded);
    while (world.Step()) {
    }
    EXPECT_EQ(world.num_unfinished(), 0u);
  }
}

// Less urgent requests never pass a request that does not fit.
TEST(SchedulerPrefixGroups, WhatDoesNotFitIsPassedByNobodyLessUrgent) {
  EngineConfig config = ConfigOf(DecodeSet::kPrefixHomogeneous, StopRule::kNever);
  config.scheduler.num_kv_blocks = 34;
  World world(config);
  world.priority = 1;
  for (int i = 0; i < 3; ++i) world.Arrive(1, 40);
  world.Step();
  world.Step();
  world.priority = 0;
  const RequestId large = world.Arrive(1, 20, 8, 22);  // shares 8 blocks and needs 22 more
  world.priority = 1;
  for (int step = 0; step < 100; ++step) {
    if (world.scheduler().num_queued() < 2) world.Arrive(1, 20 + step % 20);
    ASSERT_TRUE(world.Step());
  }
  EXPECT_TRUE(world.waited_us.contains(large));
  while (world.Step()) {
  }
  EXPECT_EQ(world.num_unfinished(), 0u);
}

// The request cannot be admitted, even with the blocks of a OneShot prompt that is computed in
// chunks.
TEST(SchedulerPrefixGroups, TheStopRuleIsAskedAboutNobodyWhoCannotBeAdmitted) {
  EngineConfig config = ConfigOf(DecodeSet::kPrefixHomogeneous, StopRule::kHeuristic);
  config.scheduler.prefix_groups.stop.small_batch = 0;
  config.scheduler.num_kv_blocks = 40;
  config.scheduler.max_num_batched_tokens = 64;
  World world(config);
  for (int i = 0; i < 3; ++i) world.Arrive(1, 80);
  while (world.decoding.size() < 3) ASSERT_TRUE(world.Step());
  const RequestId foreign = world.Arrive(2, 20, 8, 22);
  const RequestId read = world.Arrive(3, 1, 17);
  for (int step = 0; step < 8; ++step) {
    ASSERT_TRUE(world.Step());
    ASSERT_THAT(world.prefilling, ElementsAre(read));
  }
  EXPECT_EQ(world.scheduler().Stats().prefix_groups_stops, 0u);
  while (world.Step()) {
  }
  EXPECT_TRUE(world.waited_us.contains(foreign));
  EXPECT_EQ(world.num_unfinished(), 0u);
}

// The best candidate may not take the blocks that prompts leave free for preempting requests. A
// request that needs fewer blocks joins.
TEST(SchedulerPrefixGroups, WhoNeedsBlocksThatAreKeptFreeIsPassed) {
  EngineConfig config = ConfigOf(DecodeSet::kPrefixHomogeneous, StopRule::kNever);
  config.scheduler.policies.sharing = Sharing::kPreemptOp;
  config.scheduler.num_kv_blocks = 40;  // an eighth of them is kept free
  config.scheduler.max_model_len = 1100;
  World world(config);
  for (int i = 0; i < 3; ++i) world.Arrive(1, 40);
  world.Step();
  world.Step();
  const RequestId large = world.Arrive(1, 20, 8, 24);  // 26 to 28 blocks are free
  const RequestId small = world.Arrive(2, 20, 0, 1);
  world.Step();
  EXPECT_THAT(world.prefilling, ElementsAre(small));
  while (world.Step()) {
  }
  EXPECT_TRUE(world.waited_us.contains(large));
  EXPECT_EQ(world.num_unfinished(), 0u);
}

TEST(SchedulerPrefixGroups, CancelledRequestsLeaveTheTree) {
  World world(ConfigOf(DecodeSet::kPrefixHomogeneous, StopRule::kBandit));
  std::vector<RequestId> ids;
  for (int i = 0; i < 30; ++i) ids.push_back(world.Arrive(i % 3));
  world.Step();
  for (const RequestId id : ids) {
    if (id % 2 == 0) world.scheduler().Cancel(id, world.now_us);
    world.scheduler().CheckIntegrity();
  }
  while (world.Step()) {
  }
  EXPECT_EQ(world.scheduler().Stats().prefix_groups_shared_tokens, 0);
  EXPECT_TRUE(world.scheduler().empty());
}

// Tokens per second of virtual time in the second half of a long run at full load.
double Throughput(DecodeSet decode_set, StopRule stop, int num_groups, double mixed_row_us) {
  World world(ConfigOf(decode_set, stop));
  world.mixed_row_us = mixed_row_us;
  world.checks = false;  // there are thousands of steps
  Random random(1);
  int64_t half_tokens = 0;
  TimeUs half_us = 0;
  constexpr int kSteps = 6000;
  for (int step = 0; step < kSteps; ++step) {
    while (world.scheduler().num_queued() < 40) {
      world.Arrive(static_cast<int>(random.Between(0, num_groups - 1)),
                   static_cast<int32_t>(random.Between(5, 30)));
    }
    if (step == kSteps / 2) {
      half_tokens = world.num_tokens;
      half_us = world.now_us;
    }
    world.Step();
  }
  return static_cast<double>(world.num_tokens - half_tokens) * 1e6 /
         static_cast<double>(world.now_us - half_us);
}

// Measured after a warm-up of 3,000 steps, on a machine that gains nothing from shared prefixes.
TEST(SchedulerPrefixGroups, IsNotSlowerThanFillWhereSharingDoesNotPay) {
  for (const int num_groups : {4, 4000}) {  // with 4,000 groups, requests share nothing
    const double fill = Throughput(DecodeSet::kFill, {}, num_groups, 0);
    for (const StopRule stop : {StopRule::kNever, StopRule::kBandit, StopRule::kQLearning}) {
      EXPECT_GT(Throughput(DecodeSet::kPrefixHomogeneous, stop, num_groups, 0), 0.98 * fill)
          << NameOf(stop) << num_groups;
    }
  }
}

// Measured on a machine that reads a shared prefix once if all requests of the batch share it.
TEST(SchedulerPrefixGroups, IsFasterThanFillWhereSharingPays) {
  const double fill = Throughput(DecodeSet::kFill, {}, 4, 1000);
  for (const StopRule stop :
       {StopRule::kNever, StopRule::kHeuristic, StopRule::kBandit, StopRule::kQLearning}) {
    EXPECT_GT(Throughput(DecodeSet::kPrefixHomogeneous, stop, 4, 1000), 1.3 * fill) << NameOf(stop);
  }
}

class TableKeeper final : public SchedulerObserver {
 public:
  void OnEnd(const StopTable* learned) override {
    if (learned != nullptr) json = learned->ToJson();
  }
  std::string json;
};

TEST(SchedulerPrefixGroups, WhatWasLearnedIsKept) {
  TableKeeper first, second;
  EngineConfig config = ConfigOf(DecodeSet::kPrefixHomogeneous, StopRule::kQLearning);
  {
    World world(config, {&first});
    for (int i = 0; i < 100; ++i) world.Arrive(i % 3);
    while (world.Step()) {
    }
  }
  ASSERT_FALSE(first.json.empty());
  EXPECT_GT(StopTable::FromJson(first.json)->num_batches, 10);
  config.scheduler.prefix_groups.learned =
      std::make_shared<const StopTable>(StopTable::FromJson(first.json).value());
  { World world(config, {&second}); }
  EXPECT_EQ(first.json, second.json);
  config.scheduler.prefix_groups.stop.rule = StopRule::kBandit;
  EXPECT_EQ(MakeSchedulerConfig(config).status().message(),
            "stop_table was learned by 'q-learning', stop_rule is 'bandit'");
}

TEST(SchedulerPrefixGroups, WrongChoicesAreRefused) {
  EngineConfig config = ConfigOf(DecodeSet::kPrefixHomogeneous);
  config.scheduler.prefix_groups.max_wait_us = 0;
  EXPECT_EQ(MakeSchedulerConfig(config).status().param(), "stop_max_wait_us");
  config = ConfigOf(DecodeSet::kDynamic);
  config.scheduler.dynamic_step_us = -1;
  EXPECT_EQ(MakeSchedulerConfig(config).status().param(), "dynamic_step_us");
  const auto refused = [](const EngineConfig& other, const std::string& message) {
    const Status status = MakeSchedulerConfig(other).status();
    EXPECT_EQ(status.message(), message);
    EXPECT_EQ(status.param(), message.substr(0, message.find(' ')));
  };
  const std::string learns =
      "stop_table needs decode_set prefix-homogeneous and a stop_rule that learns: bandit or "
      "q-learning";
  config = ConfigOf(DecodeSet::kPrefixHomogeneous, StopRule::kNever);
  EXPECT_TRUE(MakeSchedulerConfig(config).ok());
  config.scheduler.prefix_groups.learned = std::make_shared<const StopTable>();
  refused(config, learns);
  config.scheduler.prefix_groups.stop.rule = StopRule::kBandit;
  EXPECT_TRUE(MakeSchedulerConfig(config).ok());
  EXPECT_TRUE(CheckStopRuleLearns(config.scheduler).ok());
  config.scheduler.policies.decode_set = DecodeSet::kFill;
  refused(config, learns);
  config.scheduler.prefix_groups.learned = nullptr;
  EXPECT_EQ(CheckStopRuleLearns(config.scheduler).message(), learns);  // nor may a table be written
  config.scheduler.dynamic_step_us = 1000;
  refused(config, "dynamic_step_us needs decode_set dynamic");
}

// The order in which requests of three groups are prefilled. The prefixes of groups 1 and 2 are
// cached, that of group 3 is not. There are two slots.
std::vector<int> OrderOfGroups(Order order, const std::vector<int>& arrivals) {
  EngineConfig config = ConfigOf(DecodeSet::kFill);
  config.scheduler.policies.order = order;
  config.scheduler.max_num_seqs = 2;
  World world(config);
  world.Arrive(1, 2, 4);
  world.Arrive(2, 2, 8);
  while (world.Step()) {
  }
  std::map<RequestId, int> groups;
  for (const int group : arrivals) groups[world.Arrive(group, 2, group == 1 ? 4 : 8)] = group;
  std::vector<int> seen;
  do {
    for (const RequestId id : world.prefilling) seen.push_back(groups.at(id));
  } while (world.Step());
  return seen;
}

TEST(SchedulerBaselines, CacheAwareOrders) {
  const std::vector<int> arrivals = {3, 1, 2, 1, 1};
  EXPECT_THAT(OrderOfGroups(Order::kFcfs, arrivals), ElementsAre(3, 1, 2, 1, 1));
  EXPECT_THAT(OrderOfGroups(Order::kLpm, arrivals), ElementsAre(2, 1, 1, 1, 3));
  // When two of its requests are gone, group 1 is no heavier than group 2. Group 2 then goes first,
  // since its request came before the third of group 1.
  EXPECT_THAT(OrderOfGroups(Order::kDfsWeight, arrivals), ElementsAre(1, 1, 2, 1, 3));
}

TEST(SchedulerBaselines, DynamicAimsAtTheTimeOfAStep) {
  EngineConfig config = ConfigOf(DecodeSet::kDynamic);
  config.scheduler.max_num_seqs = 100;
  config.scheduler.dynamic_step_us = 4000;
  World world(config);
  world.checks = false;
  double sum = 0;
  for (int step = 0; step < 1200; ++step) {
    while (world.scheduler().num_queued() < 100) world.Arrive(step % 4);
    world.Step();
    if (step >= 600) sum += static_cast<double>(world.decoding.size());
  }
  // A step takes 2 ms and 0.1 ms for each row. In every 20th step of each row, a prompt of 33
  // tokens of 0.02 ms joins.
  EXPECT_NEAR(sum / 600, 15, 4);
}

// The limit falls below the number of running requests. OneShot work still goes on.
TEST(SchedulerBaselines, DynamicWithALowLimitStopsNoOneShotWork) {
  EngineConfig config = ConfigOf(DecodeSet::kDynamic);
  config.scheduler.dynamic_step_us = 1000;  // less than any step takes
  config.scheduler.max_num_seqs = 40;
  World world(config);
  for (int i = 0; i < 40; ++i) world.Arrive(i % 4, 60);
  for (int step = 0; step < 30; ++step) world.Step();
  ASSERT_GT(world.decoding.size(), 10u);  // of 40; the limit begins in the middle of its range
  const RequestId decode = world.Arrive(1, 60);
  const RequestId read = world.Arrive(1, 1);
  world.Step();
  EXPECT_THAT(world.prefilling, ElementsAre(read));
  while (world.Step()) {
  }
  EXPECT_TRUE(world.waited_us.contains(decode));
  EXPECT_EQ(world.num_unfinished(), 0u);
}

TEST(SchedulerBaselines, DynamicLeavesMemoryToThoseWhoRun) {
  for (const DecodeSet decode_set : {DecodeSet::kFill, DecodeSet::kDynamic}) {
    EngineConfig config = ConfigOf(decode_set);
    config.scheduler.policies = FindPreset("vllm-fcfs")->policies;
    config.scheduler.policies.decode_set = decode_set;
    config.scheduler.max_num_seqs = 64;
    config.scheduler.num_kv_blocks = 100;
    World world(config);
    world.checks = false;
    uint64_t warm = 0;
    for (int step = 0; step < 2000; ++step) {
      while (world.scheduler().num_queued() < 20) world.Arrive(step % 4, 150, 0, 1);
      world.Step();
      if (step == 1000) warm = world.scheduler().Stats().num_preemptions;
    }
    const uint64_t preemptions = world.scheduler().Stats().num_preemptions - warm;
    if (decode_set == DecodeSet::kFill) {
      EXPECT_GT(preemptions, 20u);
    } else {
      EXPECT_LT(preemptions, 5u);
    }
  }
}

}  // namespace
}  // namespace skein
