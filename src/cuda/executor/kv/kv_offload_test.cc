#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cuda/device/fake_device.h"
#include "cuda/executor/cuda_executor.h"
#include "cuda/executor/cuda_runtime.h"
#include "engine/engine_loop.h"
#include "testing/cuda_beside_cpu.h"

namespace skein::cuda {
namespace {

using testing::Both;
using testing::ExpectSame;
using testing::FakeDeviceOptions;
using testing::ModelDir;
using testing::Random;
using testing::RunPlan;
using testing::Sequence;
using testing::StopAtEachLaunch;

constexpr StepStates kTwoSteps = {.num_steps = 2};

HostCopy Save(BlockId block, HostSlot slot) { return {block, slot, true}; }
HostCopy Load(BlockId block, HostSlot slot) { return {block, slot, false}; }

Both OnRanks(const std::string& model, int32_t num_ranks) {
  return Both(ModelDir(model), "auto", {}, kTwoSteps, Pooling::kLast, nullptr,
              std::vector<FakeDeviceOptions>(num_ranks - 1));
}

// A prompt whose first two blocks are computed, and its rest behind them.
struct Prompt {
  explicit Prompt(Both* both, Random* random)
      : sequence(*random, both->model.vocab(), 70, 0), executor(&both->cuda.executor()) {
    RunPlan(*executor, MixedPlan{{}, {sequence.Row(0, 64, false)}, {}});
    expected = RunPlan(*executor, OneShotPlan{{sequence.Row(64, 70, true)}});
  }
  // The rest, behind the blocks that the copies bring.
  OneShotPlan RestIn(std::vector<BlockId> blocks, std::vector<HostCopy> copies) {
    sequence.blocks = std::move(blocks);
    return {{sequence.Row(64, 70, true)}, std::move(copies)};
  }

  Sequence sequence;
  CudaExecutor* executor;
  StepResults expected;
};

TEST(KvOffload, BlocksComeBackWithTheirBits) {
  Random random;
  for (const char* model : {"qwen3-bf16", "qwen3", "granite-bf16", "qwen3-moe-bf16"}) {
    for (const int32_t num_ranks : {1, 2}) {
      SCOPED_TRACE(std::string(model) + " on " + std::to_string(num_ranks));
      Both both = OnRanks(model, num_ranks);
      Prompt prompt(&both, &random);
      // The step that saves them writes over them.
      Sequence other(random, both.model.vocab(), 70, 0);
      RunPlan(both.cuda.executor(), OneShotPlan{{other.Whole()}, {Save(1, 2), Save(0, 5)}});
      ExpectSame(
          RunPlan(both.cuda.executor(), prompt.RestIn({40, 41, 42}, {Load(41, 2), Load(40, 5)})),
          prompt.expected);
      // A slot is given away behind its load.
      ExpectSame(RunPlan(both.cuda.executor(),
                         prompt.RestIn({50, 51, 52}, {Save(0, 0), Load(51, 2), Save(1, 2),
                                                      Load(50, 5), Save(2, 5), Load(60, 0)})),
                 prompt.expected);
    }
  }
}

// The task that runs meanwhile writes to the slots, and to the blocks, that the stopped one used.
TEST(KvOffload, AStoppedStepHasMadeItsCopies) {
  Random random;
  for (const int32_t num_ranks : {1, 2}) {
    SCOPED_TRACE(num_ranks);
    Both both = OnRanks("qwen3-bf16", num_ranks);
    Prompt prompt(&both, &random);
    RunPlan(both.cuda.executor(),
            prompt.RestIn({0, 1, 2}, {Save(0, 5), Save(1, 2), Load(70, 5), Load(71, 2)}));
    const StepPlan plan = prompt.RestIn(
        {40, 41, 42}, {Save(70, 5), Save(71, 2), Load(40, 5), Load(41, 2), Load(10, 5)});
    const int64_t before = both.device.fake().num_launches();
    ExpectSame(RunPlan(both.cuda.executor(), plan), prompt.expected);
    const int64_t num_launches = both.device.fake().num_launches() - before;
    Sequence other(random, both.model.vocab(), 40, 10);
    const StepPlan other_plan = OneShotPlan{{other.Whole()}, {Save(11, 5), Save(11, 2)}};
    const int64_t num_stops = StopAtEachLaunch(both, plan, prompt.expected, other_plan,
                                               num_launches, [](int64_t) { return [] {}; });
    EXPECT_GE(num_stops, num_launches - 4);
  }
}

// Runs requests one group after the other, and returns the tokens of each.
class OffloadEngine {
 public:
  OffloadEngine(int32_t num_ranks, int32_t num_host_blocks, const FakeDevice::Options& device) {
    CudaRuntimeOptions options = {.model_dir = ModelDir("qwen3-bf16"),
                                  .threads = 1,
                                  .max_model_len = 128,
                                  .max_num_batched_tokens = 64,
                                  .num_kv_blocks = 9};
    options.kv_offload_bytes = num_host_blocks * BlockBytes(options);
    runtime_ = LoadCudaRuntime(options, Devices(num_ranks, device)).value();
    EXPECT_EQ(runtime_->num_host_kv_blocks(), num_host_blocks);
    SchedulerConfig scheduler;
    scheduler.policies = FindPreset("prelude")->policies;
    scheduler.max_model_len = runtime_->max_model_len();
    scheduler.num_kv_blocks = runtime_->num_kv_blocks();
    scheduler.num_host_kv_blocks = runtime_->num_host_kv_blocks();
    scheduler.max_num_seqs = 3;
    scheduler.max_num_batched_tokens = 64;
    scheduler.prefix_caching = num_host_blocks > 0;
    engine_ = MakeEngine({.scheduler = scheduler,
                          .vocab_size = runtime_->config().vocab_size,
                          .generates = true},
                         &runtime_->executor(), &clock_)
                  .value();
  }

  std::vector<std::vector<TokenId>> Ask(const std::vector<Request>& requests) {
    std::vector<std::vector<TokenId>> answers(requests.size());
    std::mutex mutex;
    std::condition_variable changed;
    size_t num_ended = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      const auto callback = [&, i](const RequestOutput& output) {
        const std::lock_guard lock(mutex);
        for (const OutputToken& token : output.tokens) answers[i].push_back(token.token);
        num_ended += output.finish.has_value();
        changed.notify_all();
      };
      std::vector<RequestId> ids;
      EXPECT_TRUE(engine_->SubmitGroup({requests[i]}, callback, &ids).ok());
    }
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return num_ended == requests.size(); });
    return answers;
  }
  EngineStats Stats() const { return engine_->Stats(); }

 private:
  static std::vector<std::unique_ptr<Device>> Devices(int32_t num_ranks,
                                                      const FakeDevice::Options& device) {
    std::vector<std::unique_ptr<Device>> devices;
    for (int32_t i = 0; i < num_ranks; ++i) devices.push_back(std::make_unique<FakeDevice>(device));
    return devices;
  }
  static int64_t BlockBytes(const CudaRuntimeOptions& options) {
    return LoadCudaRuntime(options, Devices(1, {})).value()->Memory().kv_block_bytes;
  }

  MonotonicClock clock_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<EngineLoop> engine_;
};

// Three prompts of three blocks at a time, which begin with one of five beginnings of two blocks.
std::vector<Request> RandomRequests(Random* random, int32_t vocab) {
  std::vector<Request> requests(3);
  for (Request& request : requests) {
    const int32_t content = random->Integer(1, 5);
    for (int32_t i = 0; i < 64; ++i) request.prompt.push_back((i * 37 + content) % vocab);
    const int32_t num_own = random->Integer(1, 40);
    for (int32_t i = 0; i < num_own; ++i) request.prompt.push_back(random->Integer(0, vocab - 1));
    request.output = GenerateSpec{.max_tokens = random->Integer(1, 3)};
  }
  return requests;
}

TEST(KvOffload, AnEngineWithOffloadingGivesTheSameTokens) {
  for (const int32_t num_ranks : {1, 2}) {
    SCOPED_TRACE(num_ranks);
    OffloadEngine with(num_ranks, 6, {.at_once = num_ranks == 2}), without(1, 0, {});
    Random random;
    for (int i = 0; i < 8; ++i) {
      const std::vector<Request> requests = RandomRequests(&random, 120);
      EXPECT_EQ(with.Ask(requests), without.Ask(requests));
    }
    const EngineStats stats = with.Stats();
    EXPECT_EQ(stats.host_kv_blocks_total, 6);
    EXPECT_GT(stats.host_kv_blocks_saved, 6);
    EXPECT_GT(stats.host_kv_blocks_loaded, 3);
    EXPECT_EQ(without.Stats().host_kv_blocks_saved, 0);
  }
}

TEST(KvOffload, ASizeThatDoesNotFitIsRefused) {
  const auto load = [](const char* model, int64_t bytes) {
    return LoadCudaRuntime({.model_dir = ModelDir(model),
                            .threads = 1,
                            .max_model_len = 64,
                            .num_kv_blocks = 8,
                            .kv_offload_bytes = bytes},
                           std::make_unique<FakeDevice>());
  };
  const std::unique_ptr<Runtime> runtime = load("qwen3-bf16", int64_t{1} << 20).value();
  const MemoryReport memory = runtime->Memory();
  EXPECT_EQ(memory.host_kv_bytes, runtime->num_host_kv_blocks() * memory.kv_block_bytes);
  EXPECT_LE(memory.host_kv_bytes, 1 << 20);
  const auto expect_refusal = [&](const char* model, int64_t bytes, StatusCode code,
                                  const std::string& words) {
    const Status status = load(model, bytes).status();
    EXPECT_EQ(status.code(), code);
    EXPECT_EQ(status.param(), "kv_offload_bytes");
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  };
  const int64_t block_bytes = memory.kv_block_bytes;
  expect_refusal("qwen3-bf16", block_bytes - 1, StatusCode::kInvalidArgument,
                 "a block has " + std::to_string(block_bytes) + " bytes");
  expect_refusal("qwen3-bf16", int64_t{1} << 60, StatusCode::kInvalidArgument, "the host has");
  expect_refusal("qwen3.5-bf16", 1 << 20, StatusCode::kUnsupported, "linear layers");
}

}  // namespace
}  // namespace skein::cuda
