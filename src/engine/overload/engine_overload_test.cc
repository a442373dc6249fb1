// The engine gets more work than it can do: tests which requests it refuses and which it ends.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "engine/engine_loop.h"
#include "testing/engine_loop.h"
#include "testing/fake_executor.h"

namespace skein {
namespace {

using testing::Fixture;
using ::testing::HasSubstr;
using testing::MakeRequest;

constexpr int64_t kStepUs = 10'000;  // for 64 tokens, the prompt of one request

// Lets the engine measure its rate.
void RunOne(Fixture* fixture) {
  RequestId id = 0;
  ASSERT_TRUE(fixture->engine->Submit(MakeRequest(64, 1), fixture->answers.Callback(), &id).ok());
  fixture->answers.WaitFinished(1);
}

TEST(EngineOverload, TheQueueIsBoundedByItsTime) {
  Fixture fixture({.step_us = kStepUs},
                  [](EngineConfig* config) { config->max_wait_us = 20 * kStepUs; });
  RunOne(&fixture);
  int num_taken = 0, num_refused = 0;
  for (int i = 0; i < 200; ++i) {
    RequestId id = 0;
    const Status status =
        fixture.engine->Submit(MakeRequest(64, 1), fixture.answers.Callback(), &id);
    if (status.ok()) {
      ++num_taken;
      continue;
    }
    ++num_refused;
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(status.message(), HasSubstr("would wait"));
    EXPECT_GE(status.retry_after_s(), 1);
  }
  EXPECT_GT(num_taken, 0);
  EXPECT_LT(num_taken, 100);
  EXPECT_GT(num_refused, 100);
  fixture.answers.WaitFinished(1 + num_taken);
  EXPECT_EQ(fixture.engine->Stats().requests_oneshot, static_cast<uint64_t>(1 + num_taken));
  // The queue is empty, so the next request is accepted.
  RequestId id = 0;
  EXPECT_TRUE(fixture.engine->Submit(MakeRequest(64, 1), fixture.answers.Callback(), &id).ok());
  fixture.answers.WaitFinished(2 + num_taken);
}

// A client's timeout is used in place of the server's bound.
TEST(EngineOverload, AClientsTimeBoundsItsWait) {
  Fixture fixture({.step_us = kStepUs},
                  [](EngineConfig* config) { config->max_wait_us = 3'600'000'000; });
  RunOne(&fixture);
  RequestId id = 0;
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(fixture.engine->Submit(MakeRequest(64, 1), fixture.answers.Callback(), &id).ok());
  }
  Request hurried = MakeRequest(64, 1);
  hurried.timeout_us = 5 * kStepUs;
  EXPECT_EQ(fixture.engine->Submit(hurried, fixture.answers.Callback(), &id).code(),
            StatusCode::kResourceExhausted);
  Request patient = MakeRequest(64, 1);
  patient.timeout_us = 3'600'000'000;
  EXPECT_TRUE(fixture.engine->Submit(patient, fixture.answers.Callback(), &id).ok());
  fixture.answers.WaitFinished(32);
}

// Without a measured rate, all requests are accepted. A request whose client has stopped waiting is
// not computed.
TEST(EngineOverload, LateWorkIsEnded) {
  Fixture fixture({.step_us = 5 * kStepUs});
  Request request = MakeRequest(64, 1);
  request.timeout_us = kStepUs;
  std::vector<RequestId> ids(10);
  for (RequestId& id : ids) {
    ASSERT_TRUE(fixture.engine->Submit(request, fixture.answers.Callback(), &id).ok());
  }
  fixture.answers.WaitFinished(10);
  int num_ended = 0;
  for (const RequestId id : ids) {
    const auto answer = fixture.answers.Of(id);
    if (answer.finish != FinishReason::kError) continue;
    ++num_ended;
    EXPECT_EQ(answer.status.code(), StatusCode::kResourceExhausted);
    EXPECT_TRUE(answer.tokens.empty());
  }
  EXPECT_GE(num_ended, 5);
  EXPECT_LT(num_ended, 10);  // the first request had begun
  EXPECT_TRUE(fixture.engine->Drain(1'000'000));
}

// Without its prompt, a request is refused only while Submit would refuse it, and never accepted.
TEST(EngineOverload, ARequestIsRefusedBeforeItHasAPrompt) {
  Fixture fixture({.step_us = kStepUs},
                  [](EngineConfig* config) { config->max_wait_us = 3'600'000'000; });
  RunOne(&fixture);
  Request hurried = MakeRequest(64, 1);
  hurried.timeout_us = 5 * kStepUs;
  Request outline = hurried;
  outline.prompt.clear();
  EXPECT_TRUE(fixture.engine->CheckWait(outline, 64).ok());
  RequestId id = 0;
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(fixture.engine->Submit(MakeRequest(64, 1), fixture.answers.Callback(), &id).ok());
  }
  const Status early = fixture.engine->CheckWait(outline, 64);
  EXPECT_EQ(early.code(), StatusCode::kResourceExhausted);
  EXPECT_GE(early.retry_after_s(), 1);
  EXPECT_EQ(fixture.engine->Submit(hurried, fixture.answers.Callback(), &id).code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(fixture.engine->Stats().calls_refused, 1U);
  EXPECT_EQ(fixture.engine->Stats().calls_refused_early, 1U);
  // Submit says what is wrong with a request.
  outline.generate().min_tokens = 2;  // above max_tokens
  EXPECT_TRUE(fixture.engine->CheckWait(outline, 64).ok());
  outline.generate().min_tokens = 0;
  fixture.answers.WaitFinished(31);
  EXPECT_TRUE(fixture.engine->CheckWait(outline, 64).ok());
  EXPECT_TRUE(fixture.engine->Drain(1'000'000));
  EXPECT_TRUE(fixture.engine->CheckWait(outline, 64).ok());
}

}  // namespace
}  // namespace skein
