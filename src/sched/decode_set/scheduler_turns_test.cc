// The stop rule `model` in a scheduler: turns of groups (sched/decode_set/group_turns.h).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sched/scheduler.h"
#include "testing/prefix_group_load.h"

namespace skein {
namespace {

using testing::ConfigOf;
using ::testing::ElementsAre;
using testing::World;

// A device whose cache holds one prefix of 24 blocks and the own tokens of 16 requests, not two.
constexpr DecodeFit kSlowFit = {.step_us = 100'000, .token_us = 1000, .cache_tokens = 2200};

constexpr CostFit kAutoCost = {.step_us = 2000, .token_us = 20, .row_us = 100};

EngineConfig AutoTurnsConfig() {
  EngineConfig config = ConfigOf(DecodeSet::kPrefixHomogeneous, StopRule::kModel);
  config.scheduler.policies = FindPreset("auto")->policies;
  config.scheduler.max_num_seqs = 16;
  config.scheduler.cost = kAutoCost;
  config.scheduler.decode_cost = kSlowFit;
  return config;
}

// Arrivals of two groups, more than there are slots; most are of group 1 first.
void ArriveInGroups(World* world) {
  for (const int group : {1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2}) {
    world->Arrive(group, 60, 24);
    world->now_us += 10'000'000;
  }
}

// The costs may be those of a profile that is taken once the scheduler runs. Without costs, the
// groups join together.
TEST(SchedulerTurns, FollowAProfileThatIsTakenLate) {
  for (const bool taken : {false, true}) {
    EngineConfig config = AutoTurnsConfig();
    config.scheduler.cost = {.step_us = 1};
    config.scheduler.decode_cost = {};
    World world(config);
    if (taken) world.scheduler().AdoptProfile(kAutoCost, kSlowFit, world.now_us);
    ArriveInGroups(&world);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(world.Step());
    EXPECT_EQ(world.GroupsOf(world.decoding).size(), taken ? 1u : 2u);
  }
}

// Under `auto`, a request that waits for the turn of its group stops no step, even if it is overdue
// by the order: the decode set bounds its wait.
TEST(SchedulerTurns, NoStepMakesWayForAGroupThatWaitsForItsTurn) {
  World world(AutoTurnsConfig());
  ArriveInGroups(&world);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(world.Step());
  EXPECT_THAT(world.GroupsOf(world.decoding), ElementsAre(1));
  const RequestId joins = world.Arrive(1, 60, 24, 5);
  ASSERT_TRUE(world.Plan());
  EXPECT_THAT(world.prefilling, ElementsAre(joins));
  world.now_us += 60'000'000;  // the first of group 2 is long overdue by the order
  EXPECT_EQ(world.scheduler().Reconsider(world.now_us), StepFate::kGoesOn);
  world.Finish();
  ASSERT_TRUE(world.Step());
  EXPECT_THAT(world.GroupsOf(world.decoding), ElementsAre(1));
  while (world.Step()) {
  }
  EXPECT_EQ(world.num_unfinished(), 0u);
}

}  // namespace
}  // namespace skein
