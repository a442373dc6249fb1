#include "sched/step_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "testing/scheduler_parts.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing::PartsConfig;
using testing::PromptOf;
using testing::SchedulerParts;

// The sequences of the rows, with their numbers of tokens.
std::vector<std::pair<Sequence*, int32_t>> Rows(const std::vector<StepRow>& rows) {
  std::vector<std::pair<Sequence*, int32_t>> pairs;
  for (const StepRow& row : rows) pairs.emplace_back(row.sequence, row.num_tokens);
  return pairs;
}

SequenceKey KeyBehind(const Sequence& sequence) {
  SequenceKey key = sequence.key();
  ++key.sample;
  return key;
}

TEST(StepBuilder, DecodesTakeATokenEachAndPromptsTheRestOfTheBudget) {
  SchedulerParts parts;
  Sequence* a = parts.Arrive(10);
  Sequence* b = parts.Arrive(10);
  parts.RunPrompts({5, 6});
  Sequence* shorter = parts.Arrive(100);
  Sequence* longer = parts.Arrive(300);
  parts.BeginRound();
  parts.builder.AddDecodes(true);
  parts.builder.AddPrompts();
  EXPECT_THAT(Rows(parts.step.decodes), ElementsAre(Pair(a, 1), Pair(b, 1)));
  EXPECT_THAT(Rows(parts.step.prefills), ElementsAre(Pair(shorter, 100), Pair(longer, 26)));
}

TEST(StepBuilder, AStartedPromptGoesBeforeThoseThatWait) {
  SchedulerParts parts;
  Sequence* started = parts.Arrive(150);
  parts.RunPrompts({});
  Sequence* waiting = parts.Arrive(50);
  parts.BeginRound();
  parts.builder.AddPrompts();
  EXPECT_THAT(Rows(parts.step.prefills), ElementsAre(Pair(started, 22), Pair(waiting, 50)));
}

TEST(StepBuilder, ALimitIsThatOfThisStepAlone) {
  SchedulerParts parts;
  Sequence* prompt = parts.Arrive(100);
  parts.BeginRound();
  parts.builder.LimitTokens(30);
  parts.builder.AddPrompts();
  EXPECT_THAT(Rows(parts.step.prefills), ElementsAre(Pair(prompt, 30)));
  parts.BeginStep();
  parts.EndStep({});
  parts.BeginRound();
  parts.builder.AddPrompts();
  EXPECT_THAT(Rows(parts.step.prefills), ElementsAre(Pair(prompt, 70)));
}

TEST(StepBuilder, WithoutChunksAPromptThatFollowsIsNotSplit) {
  SchedulerConfig config = PartsConfig();
  config.policies.sharing = Sharing::kWhole;
  SchedulerParts parts(config);
  Sequence* first = parts.Arrive(100);
  parts.Arrive(100);
  parts.BeginRound();
  parts.builder.AddPrompts();
  EXPECT_THAT(Rows(parts.step.prefills), ElementsAre(Pair(first, 100)));
}

TEST(StepBuilder, AWholePromptBeyondTheBudgetHasAStepWithoutOtherPrompts) {
  SchedulerConfig config = PartsConfig();
  config.max_whole_prompt_len = 300;
  const auto text_of = [](int32_t num_tokens, TokenId content) {
    Request request = PromptOf(num_tokens, 0, content);
    request.output = EmbedSpec{};
    return request;
  };
  SchedulerParts behind(config);
  Sequence* first = behind.Arrive(text_of(50, 1));
  behind.Arrive(text_of(300, 2));
  behind.BeginRound();
  behind.builder.AddPrompts();
  EXPECT_THAT(Rows(behind.step.prefills), ElementsAre(Pair(first, 50)));
  SchedulerParts alone(config);
  Sequence* only = alone.Arrive(text_of(300, 2));
  alone.BeginRound();
  alone.builder.AddPrompts();
  EXPECT_THAT(Rows(alone.step.prefills), ElementsAre(Pair(only, 300)));
}

Request DecisionOf(int32_t num_tokens, int32_t first_read, TokenId content) {
  Request request = PromptOf(num_tokens, 0, content);
  request.output = DecideSpec{.markers = {first_read}, .summary = num_tokens - 1};
  return request;
}

TEST(StepBuilder, ThePartThatADecisionReadsIsNotCut) {
  SchedulerParts parts;
  Sequence* decision = parts.Arrive(DecisionOf(150, 120, 1));
  EXPECT_EQ(decision->max_cached_tokens(), 120);
  parts.BeginRound();
  parts.builder.AddPrompts();
  EXPECT_THAT(Rows(parts.step.prefills), ElementsAre(Pair(decision, 120)));
  parts.BeginStep();
  parts.EndStep({});
  // The prompt goes on, even if the step is limited to fewer tokens.
  parts.BeginRound();
  parts.builder.LimitTokens(10);
  parts.builder.AddPrompts();
  EXPECT_THAT(Rows(parts.step.prefills), ElementsAre(Pair(decision, 30)));
}

TEST(StepBuilder, ThePartThatADecisionReadsWaitsForAStepWithRoom) {
  SchedulerParts parts;
  Sequence* first = parts.Arrive(100);
  Sequence* decision = parts.Arrive(DecisionOf(60, 10, 2));
  parts.BeginRound();
  parts.builder.AddPrompts();
  EXPECT_THAT(Rows(parts.step.prefills), ElementsAre(Pair(first, 100), Pair(decision, 10)));
  parts.BeginStep();
  parts.EndStep({7});
  parts.BeginRound();
  parts.builder.AddPrompts();
  EXPECT_THAT(Rows(parts.step.prefills), ElementsAre(Pair(decision, 50)));
}

TEST(StepBuilder, APartThatNoStepHasRoomForIsRefused) {
  const SchedulerConfig config = PartsConfig();
  EXPECT_TRUE(CheckFits(config, DecisionOf(200, 72, 1)).ok());
  const Status refused = CheckFits(config, DecisionOf(200, 71, 1));
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("129 tokens"), std::string::npos) << refused.message();
}

TEST(StepBuilder, NoPromptBehindTheBoundJoins) {
  SchedulerParts parts;
  Sequence* before = parts.Arrive(10);
  parts.Arrive(10);
  parts.BeginRound();
  parts.builder.SetBound(KeyBehind(*before));
  parts.builder.AddPrompts();
  EXPECT_THAT(Rows(parts.step.prefills), ElementsAre(Pair(before, 10)));
}

TEST(StepBuilder, RemovedDecodesLeaveTheirTokensToPrompts) {
  SchedulerParts parts;
  parts.Arrive(10);
  parts.RunPrompts({5});
  Sequence* prompt = parts.Arrive(300);
  parts.BeginRound();
  parts.builder.AddDecodes(true);
  parts.builder.RemoveDecodes();
  parts.builder.AddPrompts();
  EXPECT_THAT(parts.step.decodes, IsEmpty());
  EXPECT_THAT(Rows(parts.step.prefills), ElementsAre(Pair(prompt, 128)));
}

TEST(StepBuilder, OneShotWorkPassesARequestThatLacksASlot) {
  SchedulerParts parts;
  Request four = PromptOf(10, 10, 1);
  four.generate().num_samples = 4;
  parts.Arrive(std::move(four));
  parts.RunPrompts({5, 6, 7, 8});
  parts.Arrive(10);
  Sequence* oneshot = parts.Arrive(20, 1);
  parts.BeginRound();
  parts.builder.AddPrompts();
  EXPECT_THAT(Rows(parts.step.prefills), ElementsAre(Pair(oneshot, 20)));
}

TEST(StepBuilder, NothingIsAdmittedWithBlocksThatADecodeHasJustWon) {
  SchedulerConfig config = PartsConfig();
  config.num_kv_blocks = 4;
  SchedulerParts parts(config);
  Sequence* older = parts.Arrive(2 * kBlockTokens);
  parts.Arrive(2 * kBlockTokens);
  parts.RunPrompts({5, 6});
  parts.Arrive(10);
  parts.BeginRound();
  parts.builder.AddDecodes(true);
  parts.builder.AddPrompts();
  EXPECT_THAT(Rows(parts.step.decodes), ElementsAre(Pair(older, 1)));
  EXPECT_THAT(parts.step.prefills, IsEmpty());
  EXPECT_EQ(parts.blocks.num_available(), 1);
}

TEST(StepBuilder, ASecondPromptWaitsForTheRowThatComputesItsPrefix) {
  SchedulerConfig config = PartsConfig();
  config.policies.forests = true;
  SchedulerParts parts(config);
  Sequence* leader = parts.Arrive(PromptOf(100, 10, 7));
  Sequence* peer = parts.Arrive(PromptOf(100, 10, 7));
  parts.BeginRound();
  parts.builder.AddPrompts();
  EXPECT_THAT(Rows(parts.step.prefills), ElementsAre(Pair(leader, 100)));
  EXPECT_TRUE(parts.table.waiting().Contains(*peer));
  EXPECT_EQ(parts.stats.prefix_waits, 1u);
  parts.BeginStep();
  parts.EndStep({5});
  parts.BeginRound();
  parts.builder.AddPrompts();
  EXPECT_THAT(Rows(parts.step.prefills), ElementsAre(Pair(peer, 100 - 3 * kBlockTokens)));
}

}  // namespace
}  // namespace skein
