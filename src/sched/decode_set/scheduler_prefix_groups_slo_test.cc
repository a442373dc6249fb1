// The decode set `prefix-homogeneous` together with deadlines: SLO-aware batching, preemption and
// orders by deadline.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sched/scheduler.h"
#include "skein/choice_names.h"
#include "testing/prefix_group_load.h"

namespace skein {
namespace {

using testing::ConfigOf;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;
using testing::World;

EngineConfig FlowPrefillConfig() {
  EngineConfig config = ConfigOf(DecodeSet::kPrefixHomogeneous, StopRule::kNever);
  config.scheduler.policies = FindPreset("flow-prefill")->policies;  // s-edf, slo-aware, preempt-op
  config.scheduler.policies.decode_set = DecodeSet::kPrefixHomogeneous;
  return config;
}

TEST(SchedulerPrefixGroupsSlo, ABatchTakesAllOfTheGroupThatFit) {
  EngineConfig config = FlowPrefillConfig();
  config.scheduler.deadlines.slo_batch_tokens = 256;
  World world(config);
  world.Arrive(1, 2);  // puts the prefix into the cache
  while (world.Step()) {
  }
  const RequestId first = world.Arrive(1), large = world.Arrive(1, 20, 8, 10);
  const RequestId second = world.Arrive(1), third = world.Arrive(1);
  world.Step();  // 32 tokens of each request, but 320 of the large one
  EXPECT_THAT(world.prefilling, UnorderedElementsAre(first, second, third));
  world.Step();
  EXPECT_THAT(world.prefilling, ElementsAre(large));
  while (world.Step()) {
  }
  for (int i = 0; i < 7; ++i) world.Arrive(1);
  world.Step();
  EXPECT_EQ(world.prefilling.size(), 7u);  // together they have fewer than 256 tokens
  while (world.Step()) {
  }
  EXPECT_EQ(world.num_unfinished(), 0u);
}

// The candidate is first in the step. OneShot work before it in the order still joins the step.
TEST(SchedulerPrefixGroupsSlo, ACandidateHidesNoOneShotWork) {
  EngineConfig config = FlowPrefillConfig();
  config.scheduler.max_num_seqs = 2;
  World world(config);
  world.Arrive(1, 50);
  world.Step();
  const RequestId foreign = world.Arrive(2);
  const RequestId read = world.Arrive(3, 1);
  const RequestId candidate = world.Arrive(1);
  world.Step();
  EXPECT_THAT(world.prefilling, ElementsAre(candidate, read));
  EXPECT_FALSE(world.waited_us.contains(foreign));
  while (world.Step()) {
  }
  EXPECT_EQ(world.num_unfinished(), 0u);
}

// A prompt runs. Then two requests arrive: a less urgent candidate, and a more urgent request with
// a prefix of its own.
TEST(SchedulerPrefixGroupsSlo, ForWhomAStepHasStoppedBegins) {
  World world(FlowPrefillConfig());
  for (int i = 0; i < 3; ++i) world.Arrive(1, 50);
  world.Step();
  world.Step();  // the first one has computed the shared prefix
  world.now_us += 1000;
  const RequestId prompt = world.Arrive(3, 1, 20);
  world.Plan();
  EXPECT_THAT(world.prefilling, ElementsAre(prompt));
  world.now_us += 1000;
  const RequestId candidate = world.Arrive(1);
  EXPECT_EQ(world.scheduler().Reconsider(world.now_us), StepFate::kGoesOn);
  world.priority = -6;  // with a 64th of the time to its deadline
  const RequestId urgent = world.Arrive(2);
  EXPECT_EQ(world.scheduler().Reconsider(world.now_us), StepFate::kSuspended);
  world.Plan();
  EXPECT_THAT(world.prefilling, ElementsAre(urgent));
  world.Finish();
  world.Plan();
  EXPECT_THAT(world.prefilling, ElementsAre(prompt));  // its step goes on
  world.Finish();
  world.Step();
  EXPECT_THAT(world.prefilling, ElementsAre(candidate));
  while (world.Step()) {
  }
  EXPECT_EQ(world.num_unfinished(), 0u);
  EXPECT_EQ(world.scheduler().Stats().steps_preempted, 1u);
}

// A request that the stop rule refuses stops no prefill merely because it arrived earlier.
TEST(SchedulerPrefixGroupsSlo, ArrivalAloneStopsNoPrefill) {
  for (const int32_t priority : {0, -1}) {
    EngineConfig config = ConfigOf(DecodeSet::kPrefixHomogeneous, StopRule::kHeuristic);
    config.scheduler.policies.sharing = Sharing::kPreemptOp;
    config.scheduler.prefix_groups.stop.small_batch = 0;
    World world(config);
    for (int i = 0; i < 3; ++i) world.Arrive(1, 50);
    world.Step();
    world.Step();
    world.priority = priority;
    const RequestId foreign = world.Arrive(2);
    world.priority = 0;
    const RequestId prompt = world.Arrive(3, 1, 20);
    world.Plan();
    EXPECT_THAT(world.prefilling, ElementsAre(prompt));  // the request of group 2 was refused
    const StepFate fate = world.scheduler().Reconsider(world.now_us);
    EXPECT_EQ(fate, priority == 0 ? StepFate::kGoesOn : StepFate::kSuspended);
    if (fate == StepFate::kSuspended) {
      world.Plan();
      EXPECT_THAT(world.prefilling, ElementsAre(foreign));
    }
    world.Finish();
    while (world.Step()) {
    }
    EXPECT_EQ(world.num_unfinished(), 0u);
  }
}

// In an order by deadline, a request with a deadline of its own goes before candidates.
TEST(SchedulerPrefixGroupsSlo, AnOwnDeadlineGoesBeforeTheGroup) {
  for (const Order order : {Order::kFcfs, Order::kEdf, Order::kDeadlineEdf, Order::kSlackEdf}) {
    for (const bool own : {false, true}) {
      SCOPED_TRACE(std::string(NameOf(order)) + (own ? ", with a deadline" : ""));
      EngineConfig config = ConfigOf(DecodeSet::kPrefixHomogeneous, StopRule::kNever);
      config.scheduler.policies.order = order;
      config.scheduler.max_num_seqs = 4;
      World world(config);
      for (int i = 0; i < 3; ++i) world.Arrive(1, 50);
      world.Step();
      world.Step();  // the first one has computed the shared prefix
      if (own) world.slo_ttft_us = 100'000;
      const RequestId foreign = world.Arrive(2);
      world.slo_ttft_us.reset();
      const RequestId candidate = world.Arrive(1);
      world.Step();  // leaves one slot
      EXPECT_THAT(world.prefilling,
                  ElementsAre(own && order != Order::kFcfs ? foreign : candidate));
      while (world.Step()) {
      }
      EXPECT_EQ(world.num_unfinished(), 0u);
    }
  }
}

// The same holds in a batch. The request waits for a row that computes its prefix, and blocks no
// other request.
TEST(SchedulerPrefixGroupsSlo, WithAnOwnDeadlineInABatchAndBehindALeader) {
  EngineConfig config = FlowPrefillConfig();
  config.scheduler.max_num_seqs = 3;
  World world(config);
  world.Arrive(1, 50);
  world.Step();
  world.slo_ttft_us = 100'000;
  const RequestId first = world.Arrive(2), second = world.Arrive(3);
  world.slo_ttft_us.reset();
  world.Arrive(1);
  world.Step();
  EXPECT_THAT(world.prefilling, ElementsAre(first, second));
  while (world.Step()) {
  }

  config = ConfigOf(DecodeSet::kPrefixHomogeneous, StopRule::kNever);
  config.scheduler.policies = FindPreset("prelude")->policies;
  config.scheduler.policies.decode_set = DecodeSet::kPrefixHomogeneous;
  config.scheduler.policies.order = Order::kEdf;
  World forest(config);
  forest.Arrive(1, 50);
  forest.Step();
  forest.slo_ttft_us = 100'000;
  const RequestId leader = forest.Arrive(2), follower = forest.Arrive(2, 20, 8, 3);
  forest.slo_ttft_us.reset();
  const RequestId candidate = forest.Arrive(1);
  forest.Step();
  EXPECT_THAT(forest.prefilling, ElementsAre(leader, candidate));
  forest.Step();
  EXPECT_THAT(forest.prefilling, ElementsAre(follower));
  while (forest.Step()) {
  }
  EXPECT_EQ(world.num_unfinished() + forest.num_unfinished(), 0u);
}

}  // namespace
}  // namespace skein
