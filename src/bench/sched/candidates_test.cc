// Tests the baselines of the decode set `prefix-homogeneous` in the scheduler.

#include "bench/sched/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "testing/prefix_group_load.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using testing::World;

EngineConfig ConfigWith(StopRule stop) {
  return testing::ConfigOf(DecodeSet::kPrefixHomogeneous, stop);
}

// Runs the same load each time. Returns the requests that decoded in each step.
std::vector<std::vector<RequestId>> Decoding(StopRule stop, Candidates candidates) {
  World world(ConfigWith(stop), {}, PoliciesWith(candidates));
  std::vector<std::vector<RequestId>> steps;
  for (int i = 0; i < 60; ++i) world.Arrive(i % 4, 3 + i % 11, 1 + i % 8, 1 + i % 3);
  while (world.Step()) steps.push_back(world.decoding);
  EXPECT_EQ(world.num_unfinished(), 0u);
  return steps;
}

TEST(Candidates, TheRadixTreeGivesTheSamePlans) {
  for (const StopRule stop :
       {StopRule::kNever, StopRule::kHeuristic, StopRule::kBandit, StopRule::kQLearning}) {
    EXPECT_EQ(Decoding(stop, Candidates::kRadix), Decoding(stop, Candidates::kPrefix))
        << NameOf(stop);
  }
}

TEST(Candidates, TheOracleIsToldTheGroups) {
  EngineConfig config = ConfigWith(StopRule::kHeuristic);
  StopOptions& stop = config.scheduler.prefix_groups.stop;
  stop.max_lost_tokens = stop.small_batch = stop.max_lost_tokens_peers = 0;
  World world(config, {}, PoliciesWith(Candidates::kUser));
  // The requests have only the user in common.
  for (int i = 0; i < 32; ++i) world.Arrive(i % 4, 5 + i % 7, 0, 2);
  while (world.Step()) EXPECT_LE(world.GroupsOf(world.decoding).size(), 1u);
  EXPECT_EQ(world.num_unfinished(), 0u);
  EXPECT_EQ(world.scheduler().Stats().prefix_groups_shared_tokens, 0);
}

TEST(Candidates, TheRadixTreeCountsTheSharedTokens) {
  World world(ConfigWith(StopRule::kNever), {}, PoliciesWith(Candidates::kRadix));
  for (int i = 0; i < 4; ++i) world.Arrive(1);
  world.Step();
  world.Step();  // the first request has now computed the shared prefix
  EXPECT_EQ(world.scheduler().Stats().prefix_groups_shared_tokens, 8 * kBlockTokens);
  world.Arrive(2);
  world.Step();
  EXPECT_EQ(world.scheduler().Stats().prefix_groups_shared_tokens, 0);
}

TEST(Candidates, AColdPrefixIsComputedOnce) {
  for (const Candidates candidates : {Candidates::kRadix, Candidates::kUser}) {
    World world(ConfigWith(StopRule::kNever), {}, PoliciesWith(candidates));
    for (int i = 0; i < 32; ++i) world.Arrive(i % 4);
    world.Step();
    EXPECT_THAT(world.prefilling, ElementsAre(0, 1, 2, 3)) << NameOf(candidates);
    while (world.Step()) {
    }
    EXPECT_EQ(world.num_prefill_tokens, (4 * 8 + 32) * kBlockTokens) << NameOf(candidates);
  }
}

}  // namespace
}  // namespace skein
