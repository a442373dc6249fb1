#pragma once

// The engine's loop over an executor without a model.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "engine/engine_loop.h"
#include "testing/fake_executor.h"

namespace skein::testing {

// Gathers what callbacks say and lets a test wait for it.
class Answers {
 public:
  OutputCallback Callback() {
    return [this](RequestOutput output) {
      const std::lock_guard lock(mutex_);
      Sample& sample = samples_[{output.request, output.sample}];
      EXPECT_FALSE(sample.finish.has_value());
      for (const OutputToken& token : output.tokens) sample.tokens.push_back(token.token);
      for (PromptLogprob& logprob : output.prompt_logprobs) {
        EXPECT_TRUE(sample.tokens.empty());
        sample.prompt_logprobs.push_back(std::move(logprob));
      }
      EXPECT_EQ(output.read.has_value(), output.read && output.finish == FinishReason::kStop);
      sample.read = std::move(output.read);
      sample.status = output.status;
      sample.times = output.times;
      sample.finish = output.finish;
      if (output.finish) ++num_finished_;
      changed_.notify_all();
    };
  }

  struct Sample {
    std::vector<TokenId> tokens;
    std::vector<PromptLogprob> prompt_logprobs;
    std::optional<ReadValues> read;
    std::optional<FinishReason> finish;
    Status status;
    RequestTimes times;
  };

  void WaitFinished(int count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(
        changed_.wait_for(lock, std::chrono::seconds(60), [&] { return num_finished_ >= count; }));
  }
  void WaitTokens(RequestId id, size_t count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [&] {
      return samples_[{id, 0}].tokens.size() >= count;
    }));
  }
  Sample Of(RequestId id, int32_t sample = 0) {
    const std::lock_guard lock(mutex_);
    return samples_[{id, sample}];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<RequestId, int32_t>, Sample> samples_;
  int num_finished_ = 0;
};

struct Fixture {
  explicit Fixture(FakeExecutor::Options executor_options = {},
                   const std::function<void(EngineConfig*)>& change = {}) {
    config.vocab_size = 100;
    config.scheduler.max_model_len = 256;
    config.scheduler.num_kv_blocks = 40;
    config.scheduler.max_num_seqs = 8;
    config.scheduler.max_num_batched_tokens = 64;
    if (change) change(&config);
    options = executor_options;
    options.num_kv_blocks = config.scheduler.num_kv_blocks;
    options.vocab_size = config.vocab_size;
    executor = std::make_unique<FakeExecutor>(options);
    engine = MakeEngine(config, executor.get(), &clock).value();
  }

  EngineConfig config;
  FakeExecutor::Options options;
  MonotonicClock clock;
  std::unique_ptr<FakeExecutor> executor;
  Answers answers;
  std::unique_ptr<EngineLoop> engine;  // stops before what it uses goes
};

inline Request MakeRequest(int32_t prompt_len, int32_t max_tokens, TokenId first = 1) {
  Request request;
  request.prompt.assign(prompt_len, 2);
  request.prompt[0] = first;
  request.generate().max_tokens = max_tokens;
  return request;
}

// Many threads submit and cancel while operators are interrupted at every third boundary.
// Each pauses up to so long between two requests.
inline void ServeManyClients(Fixture& fixture, int64_t max_pause_us = 0) {
  constexpr int kThreads = 4, kRequests = 60;
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::map<RequestId, Request> requests;
  std::atomic<int> num_samples{0};
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      Random random(thread);
      for (int i = 0; i < kRequests; ++i) {
        Request request = MakeRequest(static_cast<int32_t>(random.Between(1, 150)),
                                      static_cast<int32_t>(random.Between(0, 30)), thread);
        request.generate().num_samples = random.OneIn(4) ? 3 : 1;
        request.generate().sampling.seed = i;
        request.priority = static_cast<int32_t>(random.Between(0, 3));
        RequestId id = 0;
        ASSERT_TRUE(fixture.engine->Submit(request, fixture.answers.Callback(), &id).ok());
        std::this_thread::sleep_for(std::chrono::microseconds(random.Between(0, max_pause_us)));
        if (random.OneIn(5)) fixture.engine->Cancel(id);
        if (random.OneIn(5)) fixture.engine->CancelSample(id, 1);
        fixture.engine->Stats();
        num_samples += request.generate().num_samples;
        const std::lock_guard lock(mutex);
        requests[id] = std::move(request);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  fixture.answers.WaitFinished(num_samples);
  EXPECT_TRUE(fixture.engine->Drain(10'000'000));
  int num_complete = 0;
  for (const auto& [id, request] : requests) {
    for (int32_t sample = 0; sample < request.generate().num_samples; ++sample) {
      const Answers::Sample answer = fixture.answers.Of(id, sample);
      const auto want =
          FakeExecutor::Expected(fixture.options, request, sample, request.generate().max_tokens);
      if (answer.finish != FinishReason::kCancelled) {
        EXPECT_EQ(answer.tokens, want);
        ++num_complete;
      }
    }
  }
  EXPECT_GT(num_complete, 100);
  fixture.engine->Shutdown();
  const EngineStats stats = fixture.engine->Stats();
  EXPECT_EQ(stats.kv_blocks_used, 0);
  EXPECT_EQ(stats.num_requests_running + stats.num_requests_waiting, 0);
  EXPECT_EQ(stats.requests_oneshot + stats.requests_decode, uint64_t{kThreads * kRequests});
}

}  // namespace skein::testing
