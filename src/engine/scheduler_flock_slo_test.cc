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

}  // namespace
}  // namespace skein
