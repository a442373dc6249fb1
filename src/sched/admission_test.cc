#include "sched/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/scheduler_parts.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::PartsConfig;
using testing::PromptOf;
using testing::SchedulerParts;

SchedulerConfig WithBlocks(int32_t num_blocks) {
  SchedulerConfig config = PartsConfig();
  config.num_kv_blocks = num_blocks;
  return config;
}

int64_t NumBlocks(const Sequence& sequence) { return std::ssize(sequence.blocks.table()); }

TEST(Admission, ASequenceRunsWithItsSlotAndTheBlocksOfItsPrompt) {
  SchedulerParts parts;
  Sequence* sequence = parts.Arrive(3 * kBlockTokens + 1);
  EXPECT_TRUE(parts.admission.CouldBegin(*sequence));
  ASSERT_TRUE(parts.admission.Admit(sequence));
  EXPECT_EQ(sequence->state, SequenceState::kPrefilling);
  EXPECT_EQ(NumBlocks(*sequence), 4);
  EXPECT_EQ(parts.admission.NumFreeSlots(), 3);
  EXPECT_THAT(parts.table.running(), ElementsAre(sequence));
  EXPECT_TRUE(parts.table.waiting().empty());
  parts.CheckIntegrity();
}

TEST(Admission, ASequenceWithoutBlocksGoesOnWaiting) {
  SchedulerParts parts(WithBlocks(5));
  ASSERT_TRUE(parts.admission.Admit(parts.Arrive(3 * kBlockTokens)));
  Sequence* second = parts.Arrive(3 * kBlockTokens);
  EXPECT_FALSE(parts.admission.CouldBegin(*second));
  EXPECT_FALSE(parts.admission.Admit(second));
  EXPECT_EQ(second->state, SequenceState::kWaiting);
  EXPECT_TRUE(parts.table.waiting().Contains(*second));
  EXPECT_EQ(parts.blocks.num_available(), 2);
  parts.CheckIntegrity();
}

TEST(Admission, EachSampleNeedsASlotAndAOneShotRequestNone) {
  SchedulerParts parts;
  Request three = PromptOf(10, 10, 1);
  three.generate().num_samples = 3;
  ASSERT_TRUE(parts.admission.Admit(parts.Arrive(std::move(three))));
  EXPECT_EQ(parts.admission.NumFreeSlots(), 1);
  Request two = PromptOf(10, 10, 2);
  two.generate().num_samples = 2;
  EXPECT_FALSE(parts.admission.CouldBegin(*parts.Arrive(std::move(two))));
  Sequence* oneshot = parts.Arrive(10, 1);
  EXPECT_TRUE(oneshot->oneshot());
  ASSERT_TRUE(parts.admission.Admit(oneshot));
  EXPECT_EQ(parts.admission.NumFreeSlots(), 1);
  EXPECT_EQ(parts.stats.decode_slots_taken, 3u);
}

TEST(Admission, BlocksOfAnEarlierPromptAreAttached) {
  SchedulerParts parts;
  parts.Arrive(PromptOf(100, 1, 7));
  parts.RunPrompts({5});
  Sequence* second = parts.Arrive(PromptOf(100, 10, 7));
  EXPECT_EQ(parts.admission.NumMissing(*second), 100 - 3 * kBlockTokens);
  ASSERT_TRUE(parts.admission.Admit(second));
  EXPECT_EQ(second->num_computed, 3 * kBlockTokens);
  EXPECT_EQ(second->request->cached_tokens, 3 * kBlockTokens);
  EXPECT_EQ(parts.stats.prefix_cache_hits, uint64_t{3} * kBlockTokens);
}

// Two continuations fill the pool, and each needs another block.
class AdmissionOfDecodes : public ::testing::Test {
 protected:
  AdmissionOfDecodes() : parts_(WithBlocks(4)) {
    older_ = parts_.Arrive(2 * kBlockTokens);
    younger_ = parts_.Arrive(2 * kBlockTokens);
    parts_.RunPrompts({5, 6});
    parts_.BeginRound();
  }

  SchedulerParts parts_;
  Sequence* older_ = nullptr;
  Sequence* younger_ = nullptr;
};

TEST_F(AdmissionOfDecodes, TheYoungestGivesItsBlocksToAnOlderOne) {
  EXPECT_TRUE(parts_.admission.FindDecodeBlock(older_));
  EXPECT_EQ(NumBlocks(*older_), 3);
  EXPECT_EQ(younger_->state, SequenceState::kPreempted);
  EXPECT_THAT(younger_->blocks.table(), IsEmpty());
  EXPECT_EQ(younger_->num_computed, 0);
  EXPECT_TRUE(parts_.table.waiting().Contains(*younger_));
  EXPECT_THAT(parts_.table.running(), ElementsAre(older_));
  EXPECT_TRUE(parts_.admission.preempted_in_round());
  EXPECT_EQ(parts_.stats.num_preemptions, 1u);
  parts_.CheckIntegrity();
  parts_.BeginRound();
  EXPECT_FALSE(parts_.admission.preempted_in_round());
}

TEST_F(AdmissionOfDecodes, TheYoungestItselfWaits) {
  EXPECT_FALSE(parts_.admission.FindDecodeBlock(younger_));
  EXPECT_EQ(younger_->state, SequenceState::kPreempted);
  EXPECT_EQ(older_->state, SequenceState::kDecoding);
  EXPECT_EQ(parts_.admission.NumFreeSlots(), 3);
  parts_.CheckIntegrity();
}

TEST(Admission, OneShotWorkLeavesTheBlocksOfTheNextDecode) {
  SchedulerParts parts(WithBlocks(8));
  parts.BeginRound();
  Sequence* oneshot = parts.Arrive(5 * kBlockTokens, 1);
  EXPECT_EQ(parts.admission.DecodeReserve(), 0);  // no decode waits
  Sequence* decode = parts.Arrive(4 * kBlockTokens);
  parts.BeginRound();
  EXPECT_EQ(parts.admission.DecodeReserve(), 4);
  EXPECT_FALSE(parts.admission.Admit(oneshot));
  ASSERT_TRUE(parts.admission.Admit(decode));
  EXPECT_FALSE(parts.admission.Admit(oneshot));  // 4 blocks are left
}

TEST(Admission, ANextDecodeTakesTheBlocksOfAPartlyComputedPrompt) {
  SchedulerParts parts(WithBlocks(8));
  Sequence* oneshot = parts.Arrive(6 * kBlockTokens, 1);
  parts.BeginRound();
  parts.builder.LimitTokens(3 * kBlockTokens);
  parts.builder.AddPrompts();
  parts.BeginStep();
  parts.EndStep({});
  ASSERT_EQ(oneshot->num_computed, 3 * kBlockTokens);
  parts.BeginRound();
  parts.admission.ReclaimForDecodes();
  EXPECT_EQ(oneshot->state, SequenceState::kPrefilling);  // no decode lacks blocks
  Sequence* decode = parts.Arrive(4 * kBlockTokens);
  parts.BeginRound();
  parts.admission.ReclaimForDecodes();
  EXPECT_EQ(oneshot->state, SequenceState::kPreempted);
  EXPECT_TRUE(parts.admission.Admit(decode));
  parts.CheckIntegrity();
}

TEST(Admission, ARequestLevelBatchKeepsTheSlotsOfEndedSamples) {
  SchedulerConfig config = PartsConfig();
  config.policies = FindPreset("request-level")->policies;
  SchedulerParts parts(config);
  Sequence* sequence = parts.Arrive(10);
  ASSERT_TRUE(parts.admission.Admit(sequence));
  parts.admission.ReleaseSlots(sequence, 1);
  EXPECT_EQ(parts.admission.num_idle_slots(), 1);
  EXPECT_EQ(parts.admission.NumFreeSlots(), 3);
  parts.admission.EndBatch();
  EXPECT_EQ(parts.admission.num_idle_slots(), 0);
  EXPECT_EQ(parts.admission.NumFreeSlots(), 4);
}

}  // namespace
}  // namespace skein
