#include "sched/step.h"

#include <gtest/gtest.h>

#include <utility>

namespace skein {
namespace {

class StepTest : public ::testing::Test {
 protected:
  StepTest() {
    for (int i = 0; i < 2; ++i) {
      requests_[i].id = requests_[i].arrival = i;
      sequences_[i].tokens.assign(10, 1);
      sequences_[i].state = SequenceState::kPrefilling;
    }
  }

  RequestRecord requests_[2];
  Sequence sequences_[2] = {{&requests_[0], 0, PrefixScope{}}, {&requests_[1], 0, PrefixScope{}}};
};

TEST_F(StepTest, ClocksCountRunningAndSuspendedTime) {
  Step step;
  step.Begin(100);
  step.state = StepState::kInFlight;
  EXPECT_EQ(step.RanUs(130), 30);
  step.Suspend(130);
  EXPECT_EQ(step.ran_us, 30);
  EXPECT_EQ(step.SuspendedUs(150), 20);
  step.Resume(170);
  EXPECT_EQ(step.RanUs(175), 35);
  step.Suspend(180);
  EXPECT_EQ(step.SuspendedUs(181), 41);  // 40 from the earlier suspension
  EXPECT_EQ(step.ran_us, 40);
}

// Executors point into the plans of a suspended step, so the plans must not move.
TEST_F(StepTest, AMovedStepKeepsItsPlansWhereTheyAre) {
  Step step;
  step.Begin(0);
  step.prefills.push_back({&sequences_[0], 10});
  step.plan = &step.plans->mixed;
  const StepPlan* plan = step.plan;
  const Step moved = std::move(step);
  EXPECT_EQ(moved.plan, plan);
  EXPECT_EQ(&moved.plans->mixed, plan);
  EXPECT_EQ(moved.NumPrefillTokens(), 10);
}

TEST_F(StepTest, IsAsUrgentAsItsMostUrgentLivePrompt) {
  Step step;
  step.Begin(0);
  EXPECT_EQ(step.Key(), Step::kLastKey);
  EXPECT_TRUE(step.IsDead());
  step.prefills = {{&sequences_[0], 10}, {&sequences_[1], 10}};
  requests_[1].urgency.rank = -1;
  EXPECT_EQ(step.Key(), sequences_[1].key());
  sequences_[1].state = SequenceState::kFinished;
  EXPECT_EQ(step.Key(), sequences_[0].key());
  EXPECT_FALSE(step.IsDead());
  sequences_[0].state = SequenceState::kFailed;
  EXPECT_TRUE(step.IsDead());
}

TEST_F(StepTest, MembersOfASharedPrefixWaitForItsRow) {
  SharedPrefix prefix(PrefixScope{});
  prefix.members = {&sequences_[0], &sequences_[1]};
  Step step;
  step.Begin(0);
  step.prefills.push_back({.num_tokens = 5, .prefix = &prefix});
  requests_[1].urgency.priority = -1;
  EXPECT_EQ(step.Key(), sequences_[1].key());
  sequences_[1].state = SequenceState::kFinished;
  EXPECT_FALSE(step.IsDead());
  sequences_[0].state = SequenceState::kFinished;
  EXPECT_TRUE(step.IsDead());
}

TEST_F(StepTest, KeepsATpotWhileADecodeThatAskedForOneLives) {
  Step step;
  step.Begin(0);
  step.decodes = {{&sequences_[0], 1}, {&sequences_[1], 1}};
  EXPECT_FALSE(step.KeepsTpot());
  requests_[1].decodes_in_own_steps = true;
  EXPECT_TRUE(step.KeepsTpot());
  sequences_[1].state = SequenceState::kFinished;
  EXPECT_FALSE(step.KeepsTpot());
}

}  // namespace
}  // namespace skein
