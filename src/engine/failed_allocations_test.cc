// Memory runs out at any allocation of the engine's thread.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "base/memory_reserve.h"
#include "skein/choice_names.h"
#include "testing/engine_loop.h"
#include "testing/failing_allocations.h"

namespace skein {
namespace {

using testing::Answers;
using testing::FailingAllocations;
using testing::Fixture;
using testing::MakeRequest;

// A family with a shared prefix, samples, a request that is cancelled, one that reads.
std::vector<Request> SomeRequests() {
  std::vector<Request> requests;
  for (int i = 0; i < 3; ++i) {
    requests.push_back(MakeRequest(70 + i, 1));
    requests.back().prompt.back() = 50 + i;
  }
  requests.push_back(MakeRequest(20, 6, 3));
  requests.back().generate().num_samples = 2;
  requests.push_back(MakeRequest(40, 5, 4));
  requests.push_back(MakeRequest(33, 0, 5));
  requests.back().output = LabelSpec{.tokens = {3, 1}};
  return requests;
}

constexpr int kNumSamples = 7;

// The outcome of a run in which allocations failed.
struct Outcome {
  int64_t num_failed_allocations = 0;
  int num_errors = 0;  // requests that ended with one
  EngineStats stats;
};

// Serves SomeRequests while `num_failing` allocations of the engine's thread fail, behind the first
// `num_before`. Expects that each request has its own answer or an error, and that all is as before
// afterwards.
Outcome Serve(const std::string& preset, int64_t num_before, int64_t num_failing) {
  SCOPED_TRACE(preset + ", allocation " + std::to_string(num_before));
  Fixture fixture({.preempt_every = 3}, [&](EngineConfig* config) {
    config->scheduler.policies = FindPreset(preset)->policies;
  });
  std::atomic<bool> begun{false};
  fixture.engine->VisitBlocks([&](BlockManager*) {
    FailingAllocations::Begin(num_before, num_failing, std::this_thread::get_id());
    begun = true;
  });
  while (!begun) std::this_thread::yield();
  std::vector<Request> requests = SomeRequests();
  std::vector<RequestId> ids;
  const std::vector<Request> family(requests.begin(), requests.begin() + 3);
  EXPECT_TRUE(fixture.engine->SubmitGroup(family, fixture.answers.Callback(), &ids).ok());
  for (size_t i = 3; i < requests.size(); ++i) {
    ids.emplace_back();
    EXPECT_TRUE(fixture.engine->Submit(requests[i], fixture.answers.Callback(), &ids.back()).ok());
  }
  fixture.engine->Cancel(ids[4]);
  Outcome outcome;
  if (num_failing == 1) {
    fixture.answers.WaitFinished(kNumSamples);
    outcome.num_failed_allocations = FailingAllocations::End();
    RequestId later = 0;
    EXPECT_TRUE(fixture.engine->Submit(requests[3], fixture.answers.Callback(), &later).ok());
    fixture.answers.WaitFinished(kNumSamples + 2);
    EXPECT_EQ(fixture.answers.Of(later, 1).tokens,
              FakeExecutor::Expected(fixture.options, requests[3], 1, 6));
  }
  EXPECT_TRUE(fixture.engine->Drain(60'000'000));
  fixture.engine->Shutdown();
  outcome.num_failed_allocations += FailingAllocations::End();
  for (size_t i = 0; i < requests.size(); ++i) {
    bool failed = false;
    for (int32_t sample = 0; sample < NumSamples(requests[i]); ++sample) {
      const Answers::Sample answer = fixture.answers.Of(ids[i], sample);
      // With many failures in a row an end may go untold.
      EXPECT_TRUE(answer.finish || num_failing > 1);
      if (!answer.finish || answer.finish == FinishReason::kError) {
        failed = true;
        EXPECT_TRUE(!answer.finish || answer.status.code() == StatusCode::kUnavailable);
      } else if (answer.finish != FinishReason::kCancelled && requests[i].generates()) {
        EXPECT_EQ(answer.tokens, FakeExecutor::Expected(fixture.options, requests[i], sample,
                                                        requests[i].generate().max_tokens));
      } else if (answer.finish == FinishReason::kCancelled) {
        EXPECT_EQ(i, 4u);
      } else {
        EXPECT_EQ(answer.read->values, FakeExecutor::ExpectedRead(requests[i]).values);
      }
    }
    outcome.num_errors += failed;
  }
  outcome.stats = fixture.engine->Stats();
  EXPECT_EQ(outcome.stats.kv_blocks_used, 0);
  EXPECT_EQ(outcome.stats.num_requests_running + outcome.stats.num_requests_waiting, 0);
  return outcome;
}

const char* const kPresets[] = {"prelude", "flow-prefill", "feather", "auto"};

// Each allocation of the engine's thread (with two presets: each fifth) fails once, without a
// reserve: the scheduler may be left with half of its work. Every request is told; none has
// another's answer.
TEST(FailedAllocations, OfARoundEndTheirRequestsAndNotTheEngine) {
  for (const std::string preset : kPresets) {
    const int64_t step = preset == "prelude" || preset == "flow-prefill" ? 1 : 5;
    int64_t num_before = 0;
    int num_runs = 0, num_errors = 0;
    while (true) {
      const Outcome outcome = Serve(preset, num_before, 1);
      ASSERT_FALSE(HasFailure());
      if (outcome.num_failed_allocations == 0) break;
      num_errors += outcome.num_errors;
      num_before += step;
      ++num_runs;
    }
    EXPECT_GT(num_before, 100);
    EXPECT_GT(num_errors, num_runs / 2);
  }
}

TEST(FailedAllocations, ManyInARowEndNoProcess) {
  for (const int64_t num_failing : {3, 20}) {
    for (int64_t num_before = 0;; num_before += 29) {
      const Outcome outcome = Serve("prelude", num_before, num_failing);
      ASSERT_FALSE(HasFailure());
      if (outcome.num_failed_allocations == 0) break;
    }
  }
}

TEST(FailedAllocations, AreServedFromTheReserve) {
  ASSERT_TRUE(MemoryReserve::Keep());
  for (int64_t num_before = 0;; ++num_before) {
    const Outcome outcome = Serve("flow-prefill", num_before, 2);
    ASSERT_FALSE(HasFailure());
    ASSERT_EQ(outcome.num_errors, 0);
    if (outcome.num_failed_allocations == 0) break;
  }
  EXPECT_TRUE(MemoryReserve::Refill());
  std::set_new_handler(nullptr);
}

// A device without memory for steps of more than so many tokens in one row.
class SmallExecutor final : public Executor {
 public:
  explicit SmallExecutor(Executor* executor) : executor_(executor) {}
  std::unique_ptr<Task> Begin(const StepPlan& plan) override {
    constexpr size_t kTokensMax = 40;
    const auto refuse = [](const std::vector<PlanRow>& rows) {
      for (const PlanRow& row : rows) {
        if (row.tokens.size() > kTokensMax) throw std::bad_alloc();
      }
    };
    if (const auto* oneshot = std::get_if<OneShotPlan>(&plan)) refuse(oneshot->rows);
    if (const auto* mixed = std::get_if<MixedPlan>(&plan)) refuse(mixed->prefills);
    return executor_->Begin(plan);
  }
  TaskStatus Resume(Task& task, const std::atomic<bool>& preempt) override {
    return executor_->Resume(task, preempt);
  }
  const StepResults& Results(const Task& task) const override { return executor_->Results(task); }

 private:
  Executor* const executor_;
};

// No other request of the step ends with the one whose memory is not there.
TEST(FailedAllocations, OfAStepEndItsLargestRequest) {
  Fixture fixture({}, [](EngineConfig* config) {
    config->scheduler.max_num_batched_tokens = 512;  // prompts run whole
  });
  SmallExecutor executor(fixture.executor.get());
  fixture.engine->Shutdown();
  fixture.engine = MakeEngine(fixture.config, &executor, &fixture.clock).value();
  std::vector<Request> requests;
  std::vector<RequestId> ids(12);
  for (int i = 0; i < 12; ++i) {
    requests.push_back(MakeRequest(i % 4 == 3 ? 60 : 10 + i, 20, static_cast<TokenId>(i)));
    ASSERT_TRUE(fixture.engine->Submit(requests[i], fixture.answers.Callback(), &ids[i]).ok());
  }
  fixture.answers.WaitFinished(12);
  for (int i = 0; i < 12; ++i) {
    const Answers::Sample answer = fixture.answers.Of(ids[i]);
    if (i % 4 == 3) {
      EXPECT_EQ(answer.finish, FinishReason::kError);
      EXPECT_EQ(answer.status.code(), StatusCode::kUnavailable);
    } else {
      EXPECT_EQ(answer.tokens, FakeExecutor::Expected(fixture.options, requests[i], 0, 20));
    }
  }
  EXPECT_TRUE(fixture.engine->Drain(1'000'000));
  EXPECT_EQ(fixture.engine->Stats().kv_blocks_used, 0);
}

}  // namespace
}  // namespace skein
