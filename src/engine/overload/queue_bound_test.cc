#include "engine/overload/queue_bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "sched/config.h"

namespace skein {
namespace {

using ::testing::HasSubstr;

constexpr TimeUs kUsPerSecond = 1'000'000;

EngineConfig BoundedConfig(Order order = Order::kFcfs) {
  EngineConfig config;
  config.vocab_size = 100;
  config.max_queued_requests = 10;
  config.max_wait_us = 5 * kUsPerSecond;
  config.scheduler.policies.order = order;
  config.scheduler.max_model_len = 4096;
  config.scheduler.num_kv_blocks = 200;
  return config;
}

struct Queue {
  explicit Queue(const EngineConfig& engine_config)
      : config(engine_config), scheduler(MakeSchedulerConfig(config).value()) {}

  Status Check(const Request& request) {
    QueueBound bound(config, scheduler);
    bound.Publish({}, queued, estimate);
    return bound.Check(std::vector<Request>{request}, 0);
  }

  EngineConfig config;
  SchedulerConfig scheduler;
  QueuedWork queued;
  WaitEstimate estimate{1000, 4};  // a millisecond for each token
};

Request PromptWith(int32_t max_tokens) {
  Request request;
  request.prompt.assign(100, 1);
  request.generate().max_tokens = max_tokens;
  return request;
}

TEST(QueueBound, RefusesByNumberAndByTime) {
  Queue queue(BoundedConfig());
  queue.queued = {.num_requests = 10};
  EXPECT_THAT(queue.Check(PromptWith(1)).message(), HasSubstr("max_queued_requests"));
  queue.queued = {.num_requests = 9, .tokens = {.oneshot = 5000}};
  EXPECT_TRUE(queue.Check(PromptWith(1)).ok());
  queue.queued.tokens.oneshot = 7000;
  const Status status = queue.Check(PromptWith(1));
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status.retry_after_s(), 5);  // until half of the bound is left
}

TEST(QueueBound, CountsWhatIsOnItsWay) {
  Queue queue(BoundedConfig());
  QueueBound bound(queue.config, queue.scheduler);
  bound.Publish({}, {}, queue.estimate);
  const QueuedWork work = {.num_requests = 1, .tokens = {.oneshot = 6000}};
  bound.NoteAccepted(work);
  EXPECT_FALSE(bound.Check(std::vector<Request>{PromptWith(1)}, 0).ok());
  bound.Publish(work, {}, queue.estimate);
  EXPECT_TRUE(bound.Check(std::vector<Request>{PromptWith(1)}, 0).ok());
  EXPECT_EQ(bound.num_arriving(), 0);
}

// Four slots, and runs of 100 ms a token. Eight requests of 20 tokens take 4 s before the next one
// has a slot, although their prompts are short. Requests of one token need none.
TEST(QueueBound, KnowsTheWaitForSlots) {
  Queue queue(BoundedConfig());
  queue.estimate.ObserveRun({.size = 20, .us = 2 * kUsPerSecond});
  queue.queued = {.num_requests = 8, .tokens = {.decode = 80, .budget = 160}};
  EXPECT_TRUE(queue.Check(PromptWith(20)).ok());
  queue.queued.tokens.budget = 220;
  EXPECT_FALSE(queue.Check(PromptWith(20)).ok());
  EXPECT_TRUE(queue.Check(PromptWith(1)).ok());
}

// A client waits for 10 s. An answer of 70 tokens takes 7 s, with a margin of a half 10.5 s: it
// must begin after 1.25 s at the latest, the least that is left. It is accepted if it probably
// begins after 1 s.
TEST(QueueBound, LeavesTimeForTheRun) {
  Queue queue(BoundedConfig());
  queue.estimate.ObserveRun({.size = 20, .us = 2 * kUsPerSecond});
  queue.queued = {.num_requests = 1, .tokens = {.oneshot = 2500}};
  Request request = PromptWith(20);
  request.timeout_us = 10 * kUsPerSecond;
  EXPECT_TRUE(queue.Check(request).ok());
  request.generate().max_tokens = 70;
  EXPECT_FALSE(queue.Check(request).ok());
  queue.queued.tokens.oneshot = 900;
  EXPECT_TRUE(queue.Check(request).ok());
}

// A client that names no timeout is taken to wait for 10 s, twice the bound, unless its answer
// alone takes longer.
TEST(QueueBound, LeavesTimeForTheRunOfAnyClient) {
  Queue queue(BoundedConfig());
  queue.estimate.ObserveRun({.size = 20, .us = 2 * kUsPerSecond});
  const auto accepts = [&](int64_t num_waiting, int32_t max_tokens) {
    queue.queued = {.num_requests = 1, .tokens = {.oneshot = num_waiting}};
    return queue.Check(PromptWith(max_tokens)).ok();
  };
  EXPECT_TRUE(accepts(4900, 25));   // 2.5 s; with the margins 3.75 s, and a wait of up to 5 s
  EXPECT_FALSE(accepts(4900, 45));  // 4.5 s; with the margins 6.75 s, and a wait of up to 2.6 s
  EXPECT_TRUE(accepts(2500, 45));
  EXPECT_FALSE(accepts(1100, 90));
  EXPECT_TRUE(accepts(900, 90));    // 9 s: a fourth of the bound is left, less the margin
  EXPECT_TRUE(accepts(4900, 110));  // 11 s
  EXPECT_FALSE(accepts(5100, 110));
}

// Prompts of one token of output may wait for 5 s, an answer of 60 tokens for 1. While such answers
// are refused, the queue is kept so short that one of them can be accepted.
TEST(QueueBound, LongAnswersHaveTheirTurn) {
  Queue queue(BoundedConfig());
  queue.estimate.ObserveRun({.size = 20, .us = 2 * kUsPerSecond});
  QueueBound bound(queue.config, queue.scheduler);
  const auto accepts = [&](int64_t num_waiting, const Request& request, TimeUs now_us) {
    bound.Publish({}, {.num_requests = 1, .tokens = {.oneshot = num_waiting}}, queue.estimate);
    return bound.Check(std::vector<Request>{request}, now_us).ok();
  };
  Request hurried = PromptWith(60);
  hurried.timeout_us = 8 * kUsPerSecond;
  EXPECT_FALSE(accepts(4000, hurried, 0));
  // A client's own timeout changes nothing for others.
  EXPECT_TRUE(accepts(4000, PromptWith(1), 0));
  EXPECT_FALSE(accepts(4000, PromptWith(60), 0));
  EXPECT_FALSE(accepts(4000, PromptWith(1), 4 * kUsPerSecond));
  EXPECT_TRUE(accepts(900, PromptWith(1), 4 * kUsPerSecond));
  EXPECT_TRUE(accepts(900, PromptWith(60), 4 * kUsPerSecond));
  Request patient = PromptWith(1);
  patient.timeout_us = 60 * kUsPerSecond;
  EXPECT_TRUE(accepts(4000, patient, 4 * kUsPerSecond));
  Request urgent = PromptWith(1);
  urgent.priority = -1;
  EXPECT_TRUE(accepts(4000, urgent, 4 * kUsPerSecond));
  EXPECT_TRUE(accepts(4000, PromptWith(1), 6 * kUsPerSecond));  // none came for 5 s
}

// A request that waits for a slot, and not for prompts, shortens the queue of prompts for no one.
TEST(QueueBound, SlotsSetNoLimitForOthers) {
  Queue queue(BoundedConfig());
  queue.estimate.ObserveRun({.size = 20, .us = 2 * kUsPerSecond});
  QueueBound bound(queue.config, queue.scheduler);
  const auto accepts = [&](const QueuedWork& queued, const Request& request) {
    bound.Publish({}, queued, queue.estimate);
    return bound.Check(std::vector<Request>{request}, 0).ok();
  };
  EXPECT_FALSE(
      accepts({.num_requests = 8, .tokens = {.decode = 80, .budget = 400}}, PromptWith(60)));
  EXPECT_TRUE(accepts({.num_requests = 1, .tokens = {.oneshot = 4000}}, PromptWith(1)));
}

TEST(QueueBound, RefusesMissedDeadlinesIfToldTo) {
  EngineConfig config = BoundedConfig();
  Request request = PromptWith(1);
  request.slo_ttft_us = kUsPerSecond;
  const auto accepts = [&](int64_t num_waiting) {
    Queue queue(config);
    queue.queued = {.num_requests = 1, .tokens = {.oneshot = num_waiting}};
    return queue.Check(request).ok();
  };
  EXPECT_TRUE(accepts(2000));  // served late
  config.refuses_late = true;
  EXPECT_FALSE(accepts(2000));
  EXPECT_FALSE(accepts(950));  // its own prompt takes 0.1 s
  EXPECT_TRUE(accepts(850));
  // A deadline that cannot be met at all is no reason while nothing waits: estimates err.
  request.slo_ttft_us = 1;
  EXPECT_TRUE(accepts(0));
  // By deadline, the request does not wait behind all others.
  request.slo_ttft_us = kUsPerSecond;
  config.scheduler.policies.order = Order::kEdf;
  EXPECT_TRUE(accepts(2000));
}

// The state of a random queue and a random request; all draws come from `random`.
struct RandomCase {
  explicit RandomCase(std::mt19937_64* random) : random_(*random) {
    config = BoundedConfig(Of(4) == 0 ? Order::kEdf : Order::kFcfs);
    config.max_queued_requests = static_cast<int32_t>(5 + Of(20));
    config.max_wait_us = Of(4) == 0 ? 0 : Of(6) * kUsPerSecond;
    config.refuses_late = Of(2) == 0;
    config.scheduler.max_model_len = kMaxModelLen;
    request.priority = static_cast<int32_t>(Of(3)) - 1;
    if (Of(2) == 0) request.timeout_us = 1 + Of(12) * kUsPerSecond;
    if (Of(3) == 0) request.slo_ttft_us = 1 + Of(3'000'000);
    if (Of(4) == 0) {
      request.output = LabelSpec{{1, 2}};
    } else {
      request.generate().max_tokens = static_cast<int32_t>(Of(2) == 0 ? Of(4) : Of(60));
    }
    queued = {.num_requests = static_cast<int32_t>(Of(10)),
              .tokens = {.oneshot = Of(8000), .decode = Of(8000), .budget = Of(300)}};
    for (int i = 0; i < 2; ++i) {
      estimate.ObserveRun(
          {.execution_class = i == 0 ? ExecutionClass::kDecode : ExecutionClass::kOneShot,
           .size = 1 + Of(40),
           .us = Of(20) * kUsPerSecond});
    }
    max_prompt_len = 1 + Of(Of(2) == 0 ? 10 : 2 * kMaxModelLen);
  }

  int64_t Of(int64_t count) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(count));
  }

  static constexpr int32_t kMaxModelLen = 48;
  std::mt19937_64& random_;
  EngineConfig config;
  Request request;
  QueuedWork queued;
  WaitEstimate estimate{1000, 4};
  int64_t max_prompt_len = 0;
};

// A refusal without the prompt is a refusal with any prompt. Without a deadline the reverse holds,
// too.
TEST(QueueBound, RefusesWithoutAPromptWhatItRefusesWithAny) {
  constexpr uint64_t kSeed = 11;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  int num_refused = 0, num_accepted = 0;
  for (int i = 0; i < 5000; ++i) {
    SCOPED_TRACE(i);
    RandomCase of(&random);
    const SchedulerConfig scheduler = MakeSchedulerConfig(of.config).value();
    QueueBound bound(of.config, scheduler);
    bound.Publish({}, of.queued, of.estimate);
    // It may set a limit for the others.
    Request before = PromptWith(static_cast<int32_t>(of.Of(40)));
    before.prompt.resize(4);
    (void)bound.Check(std::vector<Request>{before}, 0);
    const bool generates = of.request.generates();
    const int64_t longest =
        std::min<int64_t>(of.max_prompt_len, RandomCase::kMaxModelLen - (generates ? 1 : 0));
    bool any = false;
    for (int64_t prompt_len = 1; prompt_len <= longest; ++prompt_len) {
      Request request = of.request;
      request.prompt.assign(static_cast<size_t>(prompt_len), 1);
      any = any || QueueBound(bound).Check(std::vector<Request>{request}, 0).ok();
    }
    const Status status = bound.CheckWithoutPrompt(of.request, of.max_prompt_len, 0);
    EXPECT_TRUE(status.ok() || !any);
    EXPECT_TRUE(of.request.slo_ttft_us || status.ok() == any);
    EXPECT_EQ(bound.num_refused_without_prompt(), status.ok() ? 0U : 1U);
    (status.ok() ? num_accepted : num_refused) += 1;
  }
  EXPECT_GT(num_refused, 500);
  EXPECT_GT(num_accepted, 500);
}

// A long answer that is refused without its prompt limits the queue as any other does.
TEST(QueueBound, ALongAnswerWithoutAPromptSetsALimitForOthers) {
  Queue queue(BoundedConfig());
  queue.estimate.ObserveRun({.size = 20, .us = 2 * kUsPerSecond});
  QueueBound bound(queue.config, queue.scheduler);
  bound.Publish({}, {.num_requests = 1, .tokens = {.oneshot = 4000}}, queue.estimate);
  Request request = PromptWith(60);
  request.prompt.clear();
  EXPECT_TRUE(bound.Check(std::vector<Request>{PromptWith(1)}, 0).ok());
  // A prompt that fills the context leaves room for a short answer only.
  EXPECT_TRUE(bound.CheckWithoutPrompt(request, 4096, 0).ok());
  EXPECT_FALSE(bound.CheckWithoutPrompt(request, 1000, 0).ok());
  EXPECT_FALSE(bound.Check(std::vector<Request>{PromptWith(1)}, 0).ok());
}

}  // namespace
}  // namespace skein
