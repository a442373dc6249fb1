#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cuda/device/fake_device.h"
#include "cuda/executor/cuda_runtime.h"
#include "engine/engine_loop.h"

namespace skein::cuda {
namespace {

// A model on a fake device behind a whole engine.
class DeviceEngine {
 public:
  explicit DeviceEngine(const FakeDevice::Options& device) {
    runtime_ = LoadCudaRuntime({.model_dir = SKEIN_SOURCE_DIR "/tests/data/models/qwen3-bf16",
                                .threads = 1,
                                .max_model_len = 128,
                                .max_num_batched_tokens = 64,
                                .num_kv_blocks = 32},
                               std::make_unique<FakeDevice>(device))
                   .value();
    SchedulerConfig scheduler;
    scheduler.policies = FindPreset("prelude")->policies;
    scheduler.max_model_len = runtime_->max_model_len();
    scheduler.num_kv_blocks = runtime_->num_kv_blocks();
    scheduler.max_num_seqs = 4;
    scheduler.max_num_batched_tokens = 64;
    engine_ = MakeEngine({.scheduler = scheduler,
                          .vocab_size = runtime_->config().vocab_size,
                          .generates = true},
                         &runtime_->executor(), &clock_)
                  .value();
  }

  // How each request ended, and with how many tokens.
  struct End {
    FinishReason reason = FinishReason::kCancelled;
    std::string message;
    int32_t num_tokens = 0;
  };
  End Ask(int32_t num_prompt_tokens, int32_t max_tokens) {
    Request request;
    for (int32_t i = 0; i < num_prompt_tokens; ++i) request.prompt.push_back((i * 37 + 11) % 128);
    request.output = GenerateSpec{.max_tokens = max_tokens};
    End end;
    bool ended = false;
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<RequestId> ids;
    const auto callback = [&](const RequestOutput& output) {
      const std::lock_guard lock(mutex);
      end.num_tokens += static_cast<int32_t>(output.tokens.size());
      if (!output.finish) return;
      end.reason = *output.finish;
      end.message = output.status.message();
      ended = true;
      changed.notify_all();
    };
    EXPECT_TRUE(engine_->SubmitGroup({request}, callback, &ids).ok());
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return ended; });
    return end;
  }

 private:
  MonotonicClock clock_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<EngineLoop> engine_;
};

TEST(CudaEngine, RequestsEndWithAnErrorWhenTheDeviceIsLost) {
  // Enough launches for the first few requests.
  DeviceEngine engine({.launches_until_lost = 400});
  bool lost = false;
  int32_t num_answers = 0;
  for (int32_t i = 0; i < 20; ++i) {
    const DeviceEngine::End end = engine.Ask(20 + i, 4);
    if (end.reason == FinishReason::kError) {
      lost = true;
      EXPECT_LT(end.num_tokens, 4);
      EXPECT_FALSE(end.message.empty());
    } else {
      EXPECT_FALSE(lost) << "a lost device answers";
      EXPECT_EQ(end.num_tokens, 4);
      ++num_answers;
    }
  }
  EXPECT_TRUE(lost);
  EXPECT_GT(num_answers, 0);
}

}  // namespace
}  // namespace skein::cuda
