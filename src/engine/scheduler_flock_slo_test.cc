// The decode set `flock` beside deadlines: SLO-aware batching, preemption and orders by deadline.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing_flock.h"
#include "sched/scheduler.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;
using testing::ConfigOf;
using testing::World;

EngineConfig FlowPrefillConfig() {
  EngineConfig config = ConfigOf("flock", "never");
  config.preset = "flow-prefill";  // s-edf, slo-aware, preempt-op
  return config;
}

TEST(SchedulerFlockSlo, ABatchTakesAllCompanionsThatFit) {
  EngineConfig config = FlowPrefillConfig();
  config.slo_batch_tokens = 256;
  World world(config);
  world.Arrive(1, 2);  // the prefix is cached
  while (world.Step()) {
  }
  const RequestId first = world.Arrive(1), large = world.Arrive(1, 20, 8, 10);
  const RequestId second = world.Arrive(1), third = world.Arrive(1);
  world.Step();  // 32 tokens each, but of the large one 320
  EXPECT_THAT(world.prefilling, UnorderedElementsAre(first, second, third));
  world.Step();
  EXPECT_THAT(world.prefilling, ElementsAre(large));
  while (world.Step()) {
  }
  for (int i = 0; i < 7; ++i) world.Arrive(1);
  world.Step();
  EXPECT_EQ(world.prefilling.size(), 7u);  // fewer than 256 tokens
  while (world.Step()) {
  }
  EXPECT_EQ(world.num_unfinished(), 0u);
}

// The companion heads the step; what the order has before it is in the batch all the same.
TEST(SchedulerFlockSlo, ACompanionHidesNoOneShotWork) {
  EngineConfig config = FlowPrefillConfig();
  config.max_num_seqs = 2;
  World world(config);
  world.Arrive(1, 50);
  world.Step();
  const RequestId foreign = world.Arrive(2);
  const RequestId read = world.Arrive(3, 1);
  const RequestId companion = world.Arrive(1);
  world.Step();
  EXPECT_THAT(world.prefilling, ElementsAre(companion, read));
  EXPECT_FALSE(world.waited_us.contains(foreign));
  while (world.Step()) {
  }
  EXPECT_EQ(world.num_unfinished(), 0u);
}

// A prompt runs. Who is more urgent arrives, with a prefix of its own, and beside it a companion of
// the batch, which is not.
TEST(SchedulerFlockSlo, ForWhomAStepHasStoppedBegins) {
  World world(FlowPrefillConfig());
  for (int i = 0; i < 3; ++i) world.Arrive(1, 50);
  world.Step();
  world.Step();  // the first has computed what they share
  world.now_us += 1000;
  const RequestId prompt = world.Arrive(3, 1, 20);
  world.Plan();
  EXPECT_THAT(world.prefilling, ElementsAre(prompt));
  world.now_us += 1000;
  const RequestId companion = world.Arrive(1);
  EXPECT_EQ(world.scheduler().Reconsider(world.now_us), StepFate::kGoesOn);
  world.priority = -6;  // a 64th of the time
  const RequestId urgent = world.Arrive(2);
  EXPECT_EQ(world.scheduler().Reconsider(world.now_us), StepFate::kSuspended);
  world.Plan();
  EXPECT_THAT(world.prefilling, ElementsAre(urgent));
  world.Finish();
  world.Plan();
  EXPECT_THAT(world.prefilling, ElementsAre(prompt));  // goes on
  world.Finish();
  world.Step();
  EXPECT_THAT(world.prefilling, ElementsAre(companion));
  while (world.Step()) {
  }
  EXPECT_EQ(world.num_unfinished(), 0u);
  EXPECT_EQ(world.scheduler().Stats().steps_preempted, 1u);
}

// What the stop rule refuses stops no prefill by having come earlier.
TEST(SchedulerFlockSlo, ArrivalAloneStopsNoPrefill) {
  for (const int32_t priority : {0, -1}) {
    EngineConfig config = ConfigOf("flock", "heuristic");
    config.sharing = "preempt-op";
    config.flock_constants = "small-batch=0";
    World world(config);
    for (int i = 0; i < 3; ++i) world.Arrive(1, 50);
    world.Step();
    world.Step();
    world.priority = priority;
    const RequestId foreign = world.Arrive(2);
    world.priority = 0;
    const RequestId prompt = world.Arrive(3, 1, 20);
    world.Plan();
    EXPECT_THAT(world.prefilling, ElementsAre(prompt));  // the foreigner was refused
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

}  // namespace
}  // namespace skein
