#include "engine/overload/queue_bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
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
    return bound.Check(std::vector<Request>{request});
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
  EXPECT_FALSE(bound.Check(std::vector<Request>{PromptWith(1)}).ok());
  bound.Publish(work, {}, queue.estimate);
  EXPECT_TRUE(bound.Check(std::vector<Request>{PromptWith(1)}).ok());
  EXPECT_EQ(bound.num_arriving(), 0);
}

// Four slots, and runs of 100 ms a token. Eight requests of 20 tokens take 4 s before the next one
// has a slot, although their prompts are short. Requests of one token need none.
TEST(QueueBound, KnowsTheWaitForSlots) {
  Queue queue(BoundedConfig());
  queue.estimate.ObserveRun(ExecutionClass::kDecode, 20, 2 * kUsPerSecond, true);
  queue.queued = {.num_requests = 8, .tokens = {.decode = 80, .budget = 160}};
  EXPECT_TRUE(queue.Check(PromptWith(20)).ok());
  queue.queued.tokens.budget = 220;
  EXPECT_FALSE(queue.Check(PromptWith(20)).ok());
  EXPECT_TRUE(queue.Check(PromptWith(1)).ok());
}

// A client waits for 10 s. An answer of 70 tokens takes 7 s, with a margin of a fourth: it must
// begin after 2.5 s at the latest, the least that is left.
TEST(QueueBound, LeavesTimeForTheRun) {
  Queue queue(BoundedConfig());
  queue.estimate.ObserveRun(ExecutionClass::kDecode, 20, 2 * kUsPerSecond, true);
  queue.queued = {.num_requests = 1, .tokens = {.oneshot = 3000}};
  Request request = PromptWith(20);
  request.timeout_us = 10 * kUsPerSecond;
  EXPECT_TRUE(queue.Check(request).ok());
  request.generate().max_tokens = 70;
  EXPECT_FALSE(queue.Check(request).ok());
  queue.queued.tokens.oneshot = 2400;
  EXPECT_TRUE(queue.Check(request).ok());
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

}  // namespace
}  // namespace skein
