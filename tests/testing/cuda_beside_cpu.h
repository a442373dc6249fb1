#pragma once

// A model on a fake device and on the processor, and plans that both compute.

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cuda/device/fake_device.h"
#include "runtime/cpu_executor.h"
#include "runtime/kv_memory.h"
#include "testing/cuda_model.h"
#include "testing/loaded_model.h"

namespace skein::testing {

inline constexpr int32_t kDeviceBlocks = 96;
inline constexpr ForwardLimits kDeviceLimits = {
    .max_tokens = 160, .max_logit_rows = 3, .max_own_blocks = 12};

class Random {
 public:
  int32_t Integer(int32_t min, int32_t max) {
    return std::uniform_int_distribution<int32_t>(min, max)(random_);
  }

 private:
  std::mt19937 random_{20260731};
};

inline std::string ModelDir(const std::string& name) {
  return SKEIN_SOURCE_DIR "/tests/data/models/" + name;
}

using FakeDeviceOptions = cuda::FakeDevice::Options;

// Passes every call to a fake device, and calls `before` before each launch.
class WatchedDevice final : public cuda::Device {
 public:
  explicit WatchedDevice(const FakeDeviceOptions& options = {}) : fake_(options) {}

  cuda::FakeDevice& fake() { return fake_; }
  size_t bytes_to_host() const { return bytes_to_host_; }
  void set_before_launch(std::function<void()> before) { before_ = std::move(before); }
  // Launches are also added to `launches`, until it is null again.
  void set_recording(std::vector<cuda::Launch>* launches) { recording_ = launches; }

  const std::string& name() const override { return fake_.name(); }
  cuda::DeviceMemory Memory() override { return fake_.Memory(); }
  int64_t shared_bytes() const override { return fake_.shared_bytes(); }
  bool has_phases() const override { return fake_.has_phases(); }
  int64_t persistent_blocks() const override { return fake_.persistent_blocks(); }
  Result<void*> Allocate(size_t bytes) override { return fake_.Allocate(bytes); }
  void Free(void* memory) override { fake_.Free(memory); }
  Result<void*> AllocateHost(size_t bytes) override { return fake_.AllocateHost(bytes); }
  void FreeHost(void* memory) override { fake_.FreeHost(memory); }
  void CopyToDevice(void* to, const void* from, size_t bytes) override {
    fake_.CopyToDevice(to, from, bytes);
  }
  void CopyToHost(void* to, const void* from, size_t bytes) override {
    bytes_to_host_ += bytes;
    fake_.CopyToHost(to, from, bytes);
  }
  void CopyToDevice(const cuda::LayerRows& to, const void* from) override {
    fake_.CopyToDevice(to, from);
  }
  void CopyToHost(void* to, const cuda::LayerRows& from) override {
    bytes_to_host_ += from.num_layers * from.row_bytes;
    fake_.CopyToHost(to, from);
  }
  void Run(const cuda::Launch& launch) override {
    if (before_) before_();
    if (recording_ != nullptr) recording_->push_back(launch);
    fake_.Run(launch);
  }
  void BeginGraph() override { fake_.BeginGraph(); }
  Result<int32_t> EndGraph() override { return fake_.EndGraph(); }
  void RunGraph(int32_t graph) override { fake_.RunGraph(graph); }
  void FreeGraph(int32_t graph) override { fake_.FreeGraph(graph); }
  int64_t Mark() override { return fake_.Mark(); }
  Status Wait(int64_t mark) override { return fake_.Wait(mark); }
  Status Connect(Device& peer) override {
    return fake_.Connect(static_cast<WatchedDevice&>(peer).fake());
  }
  void WaitForPeer(Device& peer, int64_t mark) override {
    fake_.WaitForPeer(static_cast<WatchedDevice&>(peer).fake(), mark);
  }

 private:
  cuda::FakeDevice fake_;
  std::function<void()> before_;
  std::vector<cuda::Launch>* recording_ = nullptr;
  size_t bytes_to_host_ = 0;
};

// The arguments of a recorded launch.
template <typename Args>
Args ArgsOf(const cuda::Launch& launch) {
  Args args;
  std::memcpy(&args, launch.args.data(), sizeof(args));
  return args;
}
// Whether it is a product with a weight matrix, not with those of experts.
inline bool IsProduct(const cuda::Launch& launch) {
  using enum cuda::KernelId;
  return launch.kernel >= kF32Few16Store && launch.kernel <= kInt8LargeGatedBf16;
}

// A model on the CPU, in the class with the same order of sums as the emulated device, and the same
// model on a fake device, or on several that compute each operator together. chunk_tokens: of the
// device, where operators run chunk by chunk (LayerWalk).
struct Both {
  explicit Both(const std::string& dir, const std::string& quantization = "auto",
                const FakeDeviceOptions& options = {}, const StepStates& states = {},
                Pooling pooling = Pooling::kLast,
                const std::vector<LoraWeights>* adapters = nullptr,
                const std::vector<FakeDeviceOptions>& peer_options = {}, bool adds_sinks = false,
                int32_t chunk_tokens = 0)
      : model(dir, {.quantization = quantization,
                    .isa = FmaIsas().back(),
                    .threads = 1,
                    .num_blocks = 8,
                    .adds_sinks = adds_sinks}),
        kv(LayoutOf(model)),
        device(options),
        peers(PeersOf(peer_options)),
        cuda(Devices(), model, kDeviceBlocks, InChunksOf(chunk_tokens), states, pooling, adapters) {
    std::memset(kv.data(), 0xff, kv.bytes());
    ForwardContext context = model.context();
    context.kv_layout = kv.layout();
    context.kv = kv.data();
    context.pooling = pooling;
    context.adapters = adapters;
    cpu = std::make_unique<CpuExecutor>(context, kDeviceLimits, &kv);
  }

  static ForwardLimits InChunksOf(int32_t chunk_tokens) {
    ForwardLimits limits = kDeviceLimits;
    limits.chunk_tokens = chunk_tokens;
    return limits;
  }
  static std::vector<std::unique_ptr<WatchedDevice>> PeersOf(
      const std::vector<FakeDeviceOptions>& options) {
    std::vector<std::unique_ptr<WatchedDevice>> peers;
    for (const FakeDeviceOptions& of_peer : options) {
      peers.push_back(std::make_unique<WatchedDevice>(of_peer));
    }
    return peers;
  }
  std::vector<cuda::Device*> Devices() {
    std::vector<cuda::Device*> devices = {&device};
    for (const auto& peer : peers) devices.push_back(peer.get());
    return devices;
  }

  static KvLayout LayoutOf(const LoadedModel& model) {
    KvLayout layout = model.context().kv_layout;
    layout.num_blocks = kDeviceBlocks;
    return layout;
  }

  LoadedModel model;
  KvMemory kv;
  WatchedDevice device;
  std::vector<std::unique_ptr<WatchedDevice>> peers;  // the other ranks' devices
  CudaModel cuda;
  std::unique_ptr<CpuExecutor> cpu;
};

// Resumes a task until it is done: threads stop at random in builds that look for bugs.
inline void RunToEnd(Executor& executor, Task& task) {
  const std::atomic<bool> preempt{false};
  while (executor.Resume(task, preempt) != TaskStatus::kDone) {
  }
}

inline StepResults RunPlan(Executor& executor, const StepPlan& plan) {
  const auto task = executor.Begin(plan);
  RunToEnd(executor, *task);
  return executor.Results(*task);
}

inline void ExpectSameLogprob(const TokenLogprob& a, const TokenLogprob& b) {
  EXPECT_EQ(a.token, b.token);
  EXPECT_EQ(a.logprob, b.logprob);
  EXPECT_EQ(a.rank, b.rank);
}

inline void ExpectSame(const StepResults& a, const StepResults& b) {
  ASSERT_EQ(a.draws.size(), b.draws.size());
  for (size_t i = 0; i < a.draws.size(); ++i) {
    EXPECT_TRUE(a.draws[i].finite && b.draws[i].finite);
    EXPECT_EQ(a.draws[i].token.token, b.draws[i].token.token);
    ExpectSameLogprob(a.draws[i].token.chosen, b.draws[i].token.chosen);
    ASSERT_EQ(a.draws[i].token.top_logprobs.size(), b.draws[i].token.top_logprobs.size());
    for (size_t k = 0; k < a.draws[i].token.top_logprobs.size(); ++k) {
      ExpectSameLogprob(a.draws[i].token.top_logprobs[k], b.draws[i].token.top_logprobs[k]);
    }
  }
  ASSERT_EQ(a.reads.size(), b.reads.size());
  for (size_t i = 0; i < a.reads.size(); ++i) {
    EXPECT_TRUE(a.reads[i].finite && b.reads[i].finite);
    EXPECT_EQ(a.reads[i].values.values, b.reads[i].values.values);
    EXPECT_EQ(a.reads[i].values.log_sum_exp, b.reads[i].values.log_sum_exp);
  }
  ASSERT_EQ(a.prompt_logprobs.size(), b.prompt_logprobs.size());
  for (size_t i = 0; i < a.prompt_logprobs.size(); ++i) {
    ASSERT_EQ(a.prompt_logprobs[i].logprobs.size(), b.prompt_logprobs[i].logprobs.size());
    for (size_t k = 0; k < a.prompt_logprobs[i].logprobs.size(); ++k) {
      ExpectSameLogprob(a.prompt_logprobs[i].logprobs[k].chosen,
                        b.prompt_logprobs[i].logprobs[k].chosen);
    }
  }
}

// Gives rows the states of their sequences, in a model with linear layers. Sequences begin with
// different blocks, kBlocksOfState apart; one without blocks keeps no state.
inline constexpr int32_t kBlocksOfState = 10;
inline void GiveStates(const Executor& executor, std::vector<PlanRow>* rows) {
  for (PlanRow& row : *rows) {
    if (row.block_table.empty()) continue;
    row.state = OwnState(executor, row.block_table.front() / kBlocksOfState, row.begin);
  }
}
inline StepPlan WithStates(const Executor& executor, StepPlan plan) {
  if (auto* mixed = std::get_if<MixedPlan>(&plan)) {
    GiveStates(executor, &mixed->prefills);
    GiveStates(executor, &mixed->decodes);
  } else if (auto* decode = std::get_if<DecodePlan>(&plan)) {
    GiveStates(executor, &decode->rows);
  } else {
    GiveStates(executor, &std::get<OneShotPlan>(plan).rows);
  }
  return plan;
}

// Gives the signal at each of the `num_launches` launches of a plan on the leading device in turn.
// A task that stops lets another one run, and goes on. All results are those expected. `watch`,
// called with the launch before a task begins, returns what checks the devices at its stop. Returns
// the number of stops.
template <class Watch>
int64_t StopAtEachLaunch(Both& both, const StepPlan& plan, const StepResults& expected,
                         const StepPlan& other_plan, int64_t num_launches, const Watch& watch) {
  cuda::CudaExecutor& executor = both.cuda.executor();
  const StepResults other_expected = RunPlan(executor, other_plan);
  std::atomic<bool> preempt{false};
  int64_t launches_left = -1;
  both.device.set_before_launch([&] { preempt = preempt || launches_left-- == 0; });
  int64_t num_stops = 0;
  for (int64_t k = 0; k < num_launches; ++k) {
    preempt = false;
    const auto check = watch(k);
    const auto task = executor.Begin(plan);
    launches_left = k;
    if (executor.Resume(*task, preempt) == TaskStatus::kPreempted) {
      ++num_stops;
      check();
      launches_left = -1;
      ExpectSame(RunPlan(executor, other_plan), other_expected);
      RunToEnd(executor, *task);
    }
    ExpectSame(executor.Results(*task), expected);
  }
  both.device.set_before_launch({});
  return num_stops;
}

// A request's tokens and parameters. Tests make its plan rows by hand.
struct Sequence {
  Sequence(Random& random, int32_t vocab, int32_t num_tokens, int32_t first_block)
      : blocks(Blocks(first_block, num_tokens + 1)) {
    for (int32_t i = 0; i < num_tokens; ++i) tokens.push_back(random.Integer(0, vocab - 1));
    generate.sampling.seed = static_cast<uint64_t>(random.Integer(0, 1 << 30));
    generate.num_logprobs = 4;
  }

  PlanRow Row(int32_t begin, int32_t end, bool draws_token) {
    draws.clear();
    if (draws_token) draws.push_back({&generate, 0, tokens, size()});
    return {0, begin, std::span(tokens).subspan(begin, end - begin), blocks, draws};
  }
  PlanRow Whole() { return Row(0, size(), true); }
  int32_t size() const { return static_cast<int32_t>(tokens.size()); }

  std::vector<TokenId> tokens;
  std::vector<BlockId> blocks;
  GenerateSpec generate;
  std::vector<DrawSpec> draws;
};

}  // namespace skein::testing
