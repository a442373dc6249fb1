// The engine's loop with a sharing rule that preempts.

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "testing/engine_loop.h"

namespace skein {
namespace {

using testing::Fixture;
using testing::MakeRequest;
using testing::ServeManyClients;

TEST(EnginePreempt, ManyClientsThatStopOneAnother) {
  Fixture fixture({.preempt_every = 3, .step_us = 300}, [](EngineConfig* config) {
    config->scheduler.policies.sharing = Sharing::kPreemptOp;
    config->scheduler.max_num_batched_tokens = 200;
  });
  ServeManyClients(fixture, 3000);
  const EngineStats stats = fixture.engine->Stats();
  EXPECT_GT(stats.rounds_arrival, 0u);
  EXPECT_EQ(stats.rounds, stats.rounds_arrival + stats.rounds_cancellation +
                              stats.rounds_completion + stats.rounds_timer);
}

TEST(EnginePreempt, TheUrgentStopsARunningStep) {
  Fixture fixture({.step_us = 20'000}, [](EngineConfig* config) {
    config->scheduler.policies = FindPreset("paged-fcfs")->policies;
    config->scheduler.policies.sharing = Sharing::kPreemptOp;
  });
  int num_finished = 0;
  // Repeats the test until the second request arrives while the first one's step runs.
  for (int i = 0; i < 100 && fixture.engine->Stats().steps_preempted == 0; ++i) {
    RequestId slow = 0, urgent = 0;
    Request request = MakeRequest(60, 1, 3);
    ASSERT_TRUE(fixture.engine->Submit(request, fixture.answers.Callback(), &slow).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    request = MakeRequest(10, 1, 4);
    request.priority = -1;
    ASSERT_TRUE(fixture.engine->Submit(request, fixture.answers.Callback(), &urgent).ok());
    fixture.answers.WaitFinished(num_finished += 2);
    if (fixture.engine->Stats().steps_preempted > 0) {
      EXPECT_LT(fixture.answers.Of(urgent).times.finished_us,
                fixture.answers.Of(slow).times.finished_us);
    }
    EXPECT_EQ(fixture.answers.Of(slow).tokens,
              FakeExecutor::Expected(fixture.options, MakeRequest(60, 1, 3), 0, 1));
  }
  EXPECT_TRUE(fixture.engine->Drain(10'000'000));
  const EngineStats stats = fixture.engine->Stats();
  EXPECT_EQ(stats.steps_preempted, 1u);
  EXPECT_EQ(stats.steps_resumed, 1u);
  EXPECT_GE(stats.signals, 1u);
  EXPECT_GE(stats.max_blocking_us * stats.signals, stats.blocking_us);
  EXPECT_GE(stats.wakeups, 1u);  // for the first request, since the engine slept
  EXPECT_GE(stats.max_wakeup_us * stats.wakeups, stats.wakeup_us);
}

// A prefill stops when a decode's token is due, although no request arrives.
TEST(EnginePreempt, ADueDecodeStopsARunningStep) {
  Fixture fixture({.step_us = 5'000, .prefill_us = 40'000}, [](EngineConfig* config) {
    config->scheduler.policies = FindPreset("paged-fcfs")->policies;
    config->scheduler.policies.sharing = Sharing::kPreemptOp;
  });
  RequestId id = 0;
  Request chat = MakeRequest(10, 200, 3);
  chat.slo_tpot_us = 25'000;
  ASSERT_TRUE(fixture.engine->Submit(chat, fixture.answers.Callback(), &id).ok());
  fixture.answers.WaitTokens(id, 2);
  for (int i = 0; i < 100 && fixture.engine->Stats().rounds_timer == 0; ++i) {
    ASSERT_TRUE(
        fixture.engine->Submit(MakeRequest(60, 1, 4), fixture.answers.Callback(), &id).ok());
    fixture.answers.WaitFinished(i + 1);
  }
  EXPECT_GT(fixture.engine->Stats().rounds_timer, 0u);
  fixture.engine->Cancel(0);
  EXPECT_TRUE(fixture.engine->Drain(10'000'000));
}

TEST(EnginePreempt, ShutdownWhileStepsAreSuspended) {
  Fixture fixture({.step_us = 2000}, [](EngineConfig* config) {
    config->scheduler.policies.sharing = Sharing::kPreemptOp;
  });
  RequestId id = 0;
  for (int i = 0; i < 20; ++i) {
    Request request = MakeRequest(50, 100);
    request.priority = -i;
    ASSERT_TRUE(fixture.engine->Submit(request, fixture.answers.Callback(), &id).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  fixture.engine->Shutdown();
  fixture.answers.WaitFinished(20);
  EXPECT_EQ(fixture.engine->Stats().kv_blocks_used, 0);
}

}  // namespace
}  // namespace skein
