#include "sched/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "testing/scheduler_parts.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::PartsConfig;
using testing::PromptOf;
using testing::SchedulerParts;
using ::testing::SizeIs;

// Runs a decode step of all running sequences, whose draws are `tokens`.
void Decode(SchedulerParts* parts, const std::vector<TokenId>& tokens) {
  parts->BeginRound();
  parts->builder.AddDecodes(true);
  parts->BeginStep();
  parts->EndStep(tokens);
}

TEST(Completion, ThePromptsLastRowGivesTheFirstToken) {
  SchedulerParts parts;
  Sequence* sequence = parts.Arrive(40);
  parts.RunPrompts({5});
  const auto outputs = parts.completion.TakeOutputs();
  ASSERT_THAT(outputs, SizeIs(1));
  EXPECT_EQ(outputs[0].request, sequence->request->id);
  EXPECT_EQ(outputs[0].token->token, 5);
  EXPECT_FALSE(outputs[0].finish);
  EXPECT_EQ(outputs[0].times.first_token_us, parts.now_us);
  EXPECT_EQ(sequence->state, SequenceState::kDecoding);
  EXPECT_EQ(sequence->tokens.back(), 5);
  EXPECT_EQ(sequence->num_remaining(), 1);
  EXPECT_EQ(parts.stats.prompt_tokens, 40u);
  EXPECT_EQ(parts.stats.generation_tokens, 1u);
  EXPECT_THAT(parts.completion.TakeOutputs(), IsEmpty());
}

TEST(Completion, AChunkGivesNothingAndPublishesItsFullBlocks) {
  SchedulerParts parts;
  Sequence* sequence = parts.Arrive(200);
  parts.RunPrompts({});
  EXPECT_THAT(parts.completion.TakeOutputs(), IsEmpty());
  EXPECT_EQ(sequence->state, SequenceState::kPrefilling);
  EXPECT_EQ(sequence->num_computed, 128);
  EXPECT_EQ(parts.blocks.NumPresent(sequence->blocks.hashes(), 6), 4);
}

TEST(Completion, TheLastTokenOfTheBudgetEndsARequest) {
  SchedulerParts parts;
  Sequence* sequence = parts.Arrive(40, 2);
  const RequestId id = sequence->request->id;
  parts.RunPrompts({5});
  Decode(&parts, {6});
  const auto outputs = parts.completion.TakeOutputs();
  ASSERT_THAT(outputs, SizeIs(2));
  EXPECT_EQ(outputs[1].token->token, 6);
  EXPECT_EQ(outputs[1].finish, FinishReason::kLength);
  EXPECT_EQ(outputs[1].times.finished_us, parts.now_us);
  EXPECT_EQ(parts.admission.NumFreeSlots(), 4);
  EXPECT_EQ(parts.blocks.num_referenced(), 0);
  EXPECT_EQ(parts.stats.requests_decode, 1u);
  parts.table.ForgetEnded();
  EXPECT_EQ(parts.table.Find(id), nullptr);
}

TEST(Completion, AStopTokenEndsARequestBehindItsLeastTokens) {
  SchedulerParts parts;
  Request request = PromptOf(40, 10, 1);
  request.generate().stop_token_ids = {9};
  request.generate().min_tokens = 1;
  parts.Arrive(std::move(request));
  parts.RunPrompts({9});
  EXPECT_FALSE(parts.completion.TakeOutputs()[0].finish);
  Decode(&parts, {9});
  EXPECT_EQ(parts.completion.TakeOutputs()[0].finish, FinishReason::kStop);
}

TEST(Completion, LogitsThatAreNoNumbersFailTheirRequestAlone) {
  SchedulerParts parts;
  Sequence* failing = parts.Arrive(40);
  Sequence* other = parts.Arrive(40);
  parts.BeginRound();
  parts.builder.AddPrompts();
  parts.BeginStep();
  StepResults results;
  results.draws.resize(2);
  results.draws[0].finite = false;
  results.draws[1].token.token = 6;
  parts.EndStepWith(&results);
  const auto outputs = parts.completion.TakeOutputs();
  ASSERT_THAT(outputs, SizeIs(2));
  EXPECT_EQ(outputs[0].finish, FinishReason::kError);
  EXPECT_EQ(outputs[0].status.code(), StatusCode::kInternal);
  EXPECT_FALSE(outputs[0].token);
  EXPECT_EQ(outputs[1].token->token, 6);
  EXPECT_EQ(failing->state, SequenceState::kFailed);
  EXPECT_THAT(failing->blocks.table(), IsEmpty());
  EXPECT_EQ(other->state, SequenceState::kDecoding);
}

TEST(Completion, SamplesShareTheBlocksOfThePrompt) {
  SchedulerParts parts;
  Request two = PromptOf(2 * kBlockTokens, 10, 1);
  two.generate().num_samples = 2;
  Sequence* sequence = parts.Arrive(std::move(two));
  parts.RunPrompts({5, 6});
  const RequestRecord& request = *sequence->request;
  ASSERT_THAT(request.sequences, SizeIs(2));
  const Sequence& further = *request.sequences[1];
  EXPECT_EQ(sequence->tokens.back(), 5);
  EXPECT_EQ(further.tokens.back(), 6);
  EXPECT_EQ(further.sample, 1);
  EXPECT_THAT(parts.table.running(), ElementsAre(sequence, &further));
  EXPECT_EQ(further.blocks.table()[0], sequence->blocks.table()[0]);
  EXPECT_EQ(parts.blocks.num_referenced(), 2);
  EXPECT_EQ(parts.admission.NumFreeSlots(), 2);
}

TEST(Completion, ACancelledRequestThatWaitsLeavesItsSet) {
  SchedulerParts parts;
  Sequence* sequence = parts.Arrive(40);
  parts.completion.CancelSample(sequence->request, 0, parts.now_us);
  EXPECT_TRUE(parts.table.waiting().empty());
  const auto outputs = parts.completion.TakeOutputs();
  ASSERT_THAT(outputs, SizeIs(1));
  EXPECT_EQ(outputs[0].finish, FinishReason::kCancelled);
}

TEST(Completion, ACancelledRequestKeepsItsBlocksUntilItsStepEnds) {
  SchedulerParts parts;
  Sequence* sequence = parts.Arrive(2 * kBlockTokens);
  parts.BeginRound();
  parts.builder.AddPrompts();
  parts.BeginStep();
  parts.completion.CancelSample(sequence->request, 0, parts.now_us);
  EXPECT_EQ(parts.admission.NumFreeSlots(), 4);
  EXPECT_EQ(parts.blocks.num_referenced(), 2);  // the step still writes to these blocks
  parts.completion.TakeOutputs();
  parts.EndStep({5});
  EXPECT_EQ(parts.blocks.num_referenced(), 0);
  EXPECT_THAT(parts.completion.TakeOutputs(), IsEmpty());
}

TEST(Completion, AnAbandonedRowIsInNoStep) {
  SchedulerParts parts;
  Sequence* sequence = parts.Arrive(40);
  parts.BeginRound();
  parts.builder.AddPrompts();
  parts.BeginStep();
  ASSERT_TRUE(sequence->in_step);
  parts.completion.AbandonRow(sequence);
  EXPECT_FALSE(sequence->in_step);
  parts.completion.FailRequest(sequence->request, Status(StatusCode::kInternal, "x"), parts.now_us);
  EXPECT_EQ(parts.blocks.num_referenced(), 0);
  EXPECT_EQ(parts.completion.TakeOutputs()[0].status.message(), "x");
}

TEST(Completion, ARequestLevelBatchHoldsItsOutputsBack) {
  SchedulerConfig config = PartsConfig();
  config.policies = FindPreset("request-level")->policies;
  SchedulerParts parts(config);
  parts.Arrive(40, 1);
  parts.Arrive(40, 10);
  parts.RunPrompts({5, 6});
  EXPECT_THAT(parts.completion.TakeOutputs(), IsEmpty());
  parts.completion.ReleaseWithheld();
  EXPECT_THAT(parts.completion.TakeOutputs(), SizeIs(2));
}

}  // namespace
}  // namespace skein
