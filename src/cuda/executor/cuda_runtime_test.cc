#include "cuda/executor/cuda_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cuda/device/cuda_device.h"
#include "cuda/device/fake_device.h"
#include "cuda/executor/cuda_executor.h"
#include "runtime/cpu_runtime.h"
#include "testing/loaded_model.h"

namespace skein::cuda {
namespace {

constexpr char kModelDir[] = SKEIN_SOURCE_DIR "/tests/data/models/qwen3-bf16";

Result<std::unique_ptr<Runtime>> Load(const CudaRuntimeOptions& options,
                                      const FakeDevice::Options& device = {}) {
  return LoadCudaRuntime(options, std::make_unique<FakeDevice>(device));
}

StepResults Run(Runtime& runtime, const StepPlan& plan) {
  const std::atomic<bool> never{false};
  const auto task = runtime.executor().Begin(plan);
  while (runtime.executor().Resume(*task, never) != TaskStatus::kDone) {
    // Threads stop at random in builds that look for bugs.
  }
  return runtime.executor().Results(*task);
}

DrawResult Draw(Runtime& runtime, const std::vector<TokenId>& tokens) {
  const GenerateSpec generate = {.num_logprobs = 5};
  const std::vector<BlockId> blocks = testing::Blocks(0, static_cast<int32_t>(tokens.size()));
  const std::vector<DrawSpec> draws = {{&generate, 0, tokens, static_cast<int32_t>(tokens.size())}};
  return Run(runtime, OneShotPlan{{{0, 0, tokens, blocks, draws}}}).draws.at(0);
}

// The log-probability of the token at one position.
float LogprobAt(Runtime& runtime, const std::vector<TokenId>& tokens, int32_t position) {
  const std::vector<BlockId> blocks = testing::Blocks(0, static_cast<int32_t>(tokens.size()));
  PlanRow row = {0, 0, tokens, blocks};
  row.prompt_logprobs = {position, std::span(tokens).subspan(position, 1), 1};
  return Run(runtime, OneShotPlan{{row}}).prompt_logprobs.at(0).logprobs.at(0).chosen.logprob;
}

void ExpectSame(const DrawResult& a, const DrawResult& b) {
  EXPECT_TRUE(a.finite && b.finite);
  ASSERT_EQ(a.token.top_logprobs.size(), b.token.top_logprobs.size());
  for (size_t i = 0; i < a.token.top_logprobs.size(); ++i) {
    EXPECT_EQ(a.token.top_logprobs[i].token, b.token.top_logprobs[i].token);
    EXPECT_EQ(a.token.top_logprobs[i].logprob, b.token.top_logprobs[i].logprob);
  }
}

std::vector<TokenId> Tokens(int32_t count) {
  std::vector<TokenId> tokens;
  for (int32_t i = 0; i < count; ++i) tokens.push_back((i * 37 + 11) % 128);
  return tokens;
}

// A copy of the model with a longer context. The destructor removes its directory.
class LongModel {
 public:
  explicit LongModel(const std::string& max_position)
      : dir_(std::filesystem::path(::testing::TempDir()) / "skein-cuda-long") {
    std::filesystem::remove_all(dir_);
    std::filesystem::copy(kModelDir, dir_);
    std::ifstream in(std::string(kModelDir) + "/config.json");
    std::stringstream text;
    text << in.rdbuf();
    std::string config = text.str();
    const std::string field = "\"max_position_embeddings\": 256";
    const size_t at = config.find(field);
    EXPECT_NE(at, std::string::npos);
    config.replace(at, field.size(), "\"max_position_embeddings\": " + max_position);
    std::ofstream(dir_ / "config.json") << config;
  }
  ~LongModel() { std::filesystem::remove_all(dir_); }

  std::string dir() const { return dir_.string(); }

 private:
  std::filesystem::path dir_;
};

TEST(CudaRuntime, HasTheBitsOfTheProcessorsFmaClass) {
  const auto cuda =
      Load({.model_dir = kModelDir, .threads = 1, .max_model_len = 128, .num_kv_blocks = 16});
  ASSERT_TRUE(cuda.ok()) << cuda.status().message();
  const auto cpu = CpuRuntime::Load({.model_dir = kModelDir,
                                     .threads = 1,
                                     .isa = testing::FmaIsas().back(),
                                     .max_model_len = 128,
                                     .num_kv_blocks = 16});
  ASSERT_TRUE(cpu.ok()) << cpu.status().message();
  ExpectSame(Draw(*cuda.value(), Tokens(100)), Draw(*cpu.value(), Tokens(100)));
  const MemoryReport memory = cuda.value()->Memory();
  EXPECT_EQ(memory.kv_block_bytes, cpu.value()->Memory().kv_block_bytes);
  EXPECT_GT(memory.weight_bytes, 0);
  EXPECT_EQ(cuda.value()->max_model_len(), 128);
}

// The prompt has two segments of the attention walk, which are merged, slice by slice too, and so
// many rows that its tiles are wide.
TEST(CudaRuntime, LongPromptsHaveTheBitsToo) {
  const LongModel model("2300");
  const auto cuda = Load({.model_dir = model.dir(),
                          .threads = 1,
                          .max_num_batched_tokens = 2300,
                          .num_kv_blocks = 80});
  ASSERT_TRUE(cuda.ok()) << cuda.status().message();
  const auto cpu = CpuRuntime::Load({.model_dir = model.dir(),
                                     .threads = 1,
                                     .isa = testing::FmaIsas().back(),
                                     .max_num_batched_tokens = 2300,
                                     .num_kv_blocks = 80});
  ASSERT_TRUE(cpu.ok()) << cpu.status().message();
  // In the last layer, attention has one segment for this token.
  EXPECT_EQ(LogprobAt(*cuda.value(), Tokens(2200), 900),
            LogprobAt(*cpu.value(), Tokens(2200), 900));
  const DrawResult expected = Draw(*cpu.value(), Tokens(2200));
  ExpectSame(Draw(*cuda.value(), Tokens(2200)), expected);
  static_cast<CudaExecutor&>(cuda.value()->executor()).set_slice_us(0);
  ExpectSame(Draw(*cuda.value(), Tokens(2200)), expected);
}

TEST(CudaRuntime, ADeviceWithoutRoomIsAnError) {
  const auto error = [](const CudaRuntimeOptions& options, int64_t memory_bytes) {
    const auto runtime = Load(options, {.memory_bytes = memory_bytes});
    EXPECT_FALSE(runtime.ok());
    return runtime.ok() ? Status::Ok() : runtime.status();
  };
  // There is no memory for the weights; for the activations; for the blocks.
  const Status weights = error({.model_dir = kModelDir}, 1000);
  EXPECT_EQ(weights.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(weights.message(), ::testing::HasSubstr("of 1000 bytes free"));
  const Status activations = error({.model_dir = kModelDir}, 400'000);
  EXPECT_EQ(activations.code(), StatusCode::kResourceExhausted);
  const Status blocks = error({.model_dir = kModelDir, .num_kv_blocks = 100'000}, 64 << 20);
  EXPECT_EQ(blocks.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(blocks.param(), "num_kv_blocks");
  const Status too_long = error({.model_dir = kModelDir, .max_model_len = 300}, 64 << 20);
  EXPECT_EQ(too_long.param(), "max_model_len");
  const Status too_few =
      error({.model_dir = kModelDir, .max_model_len = 200, .num_kv_blocks = 3}, 64 << 20);
  EXPECT_EQ(too_few.param(), "max_model_len");
}

// A prompt whose keys and values are not kept.
DrawResult DrawOnce(Runtime& runtime, const std::vector<TokenId>& tokens) {
  const GenerateSpec generate = {.num_logprobs = 5};
  const std::vector<DrawSpec> draws = {{&generate, 0, tokens, static_cast<int32_t>(tokens.size())}};
  return Run(runtime, OneShotPlan{{{0, 0, tokens, {}, draws}}}).draws.at(0);
}

TEST(CudaRuntime, HybridFitsAPromptThatPlainDoesNot) {
  constexpr int32_t kTokens = 700;
  const LongModel model("2000");
  CudaRuntimeOptions options = {.model_dir = model.dir(),
                                .threads = 1,
                                .max_model_len = kTokens,
                                .max_num_batched_tokens = 16,
                                .max_num_seqs = 2,
                                .chunk_tokens = 64,
                                .retention = Retention::kNone};
  const FakeDevice::Options small = {.memory_bytes = 1'600'000};
  const auto plain = Load(options, small);
  ASSERT_FALSE(plain.ok());
  EXPECT_EQ(plain.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(plain.status().param(), "max_model_len");
  EXPECT_THAT(plain.status().message(), ::testing::HasSubstr("max_model_len is 700; in "));
  options.execution = Execution::kHybrid;
  const auto hybrid = Load(options, small);
  ASSERT_TRUE(hybrid.ok()) << hybrid.status().message();
  const auto cpu = CpuRuntime::Load({.model_dir = model.dir(),
                                     .threads = 1,
                                     .isa = testing::FmaIsas().back(),
                                     .max_model_len = kTokens,
                                     .retention = Retention::kNone});
  ASSERT_TRUE(cpu.ok()) << cpu.status().message();
  ExpectSame(DrawOnce(*hybrid.value(), Tokens(kTokens)), DrawOnce(*cpu.value(), Tokens(kTokens)));
  // The longest prompt that an error names fits, and one token more does not.
  options.execution = Execution::kPlain;
  const std::string said = plain.status().message();
  const size_t at = said.find("at most ");
  ASSERT_NE(at, std::string::npos) << said;
  options.max_model_len = std::stoi(said.substr(at + 8));
  EXPECT_GT(options.max_model_len, 100);
  EXPECT_TRUE(Load(options, small).ok());
  ++options.max_model_len;
  EXPECT_FALSE(Load(options, small).ok());
  // Without a length, a prompt may take half of the memory.
  options.max_model_len = 0;
  const int32_t chosen = Load(options, small).value()->max_model_len();
  EXPECT_GT(chosen, 50);
  options.execution = Execution::kHybrid;
  EXPECT_GT(Load(options, small).value()->max_model_len(), chosen);
}

TEST(CudaRuntime, MemoryLimitsStepsAndBlocksTogether) {
  CudaRuntimeOptions options = {.model_dir = kModelDir,
                                .threads = 1,
                                .max_model_len = 128,
                                .max_num_batched_tokens = 64,
                                .memory_bytes = 2 << 20,
                                .num_steps = 2};
  const auto runtime = Load(options).value();
  const MemoryReport memory = runtime->Memory();
  const int64_t steps = memory.activation_bytes + memory.rope_bytes;
  EXPECT_LE(steps, memory.planned_bytes);
  EXPECT_LE(memory.planned_bytes + memory.kv_bytes, options.memory_bytes);
  EXPECT_GT(memory.planned_bytes + memory.kv_bytes + memory.kv_block_bytes, options.memory_bytes);
  const auto error = [&](int64_t memory_bytes) {
    options.memory_bytes = memory_bytes;
    const auto failed = Load(options, {.memory_bytes = 8 << 20});
    EXPECT_EQ(failed.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(failed.status().param(), "memory");
    return failed.status().message();
  };
  EXPECT_THAT(error(8 << 20), ::testing::HasSubstr("bytes are free beside the weights"));
  EXPECT_THAT(error(1000), ::testing::HasSubstr("which hold no prompt"));
  options.num_kv_blocks = 3;
  EXPECT_THAT(error(2 << 20), ::testing::HasSubstr("exclude each other"));
}

TEST(CudaRuntime, WithoutCudaOrAGpuTheRealDeviceIsAnError) {
  const auto device = OpenCudaDevice(0);
  if (device.ok()) GTEST_SKIP() << "there is a GPU here: " << device.value()->name();
  EXPECT_THAT(static_cast<int>(device.status().code()),
              ::testing::AnyOf(static_cast<int>(StatusCode::kUnsupported),
                               static_cast<int>(StatusCode::kUnavailable)));
  EXPECT_FALSE(device.status().message().empty());
}

// The blocks of an encoder do not fill the device.
TEST(CudaRuntime, EncodersTakeTheBlocksOfTheirSteps) {
  const auto runtime = Load({.model_dir = SKEIN_SOURCE_DIR "/tests/data/encoders/bert",
                             .threads = 1,
                             .max_model_len = 64,
                             .max_num_batched_tokens = 100,
                             .max_num_seqs = 3,
                             .num_steps = 2})
                           .value();
  EXPECT_EQ(runtime->num_kv_blocks(), 2 * (2 * 3 + 100));
}

// A whole prompt may be longer than other steps, unless its activations would take too much.
TEST(CudaRuntime, LongPromptsRunWhole) {
  const CudaRuntimeOptions options = {.model_dir = SKEIN_SOURCE_DIR "/tests/data/encoders/bert",
                                      .threads = 1,
                                      .max_num_batched_tokens = 16,
                                      .long_prompt_tokens = 40,
                                      .max_num_seqs = 3,
                                      .pooling = Pooling::kMean};
  const auto runtime = Load(options).value();
  EXPECT_EQ(runtime->long_prompt_tokens(), 40);
  const std::vector<TokenId> tokens(40, 7);
  const std::vector<BlockId> blocks = testing::Blocks(0, 40);
  PlanRow row = {0, 0, tokens, blocks};
  const OutputSpec embedding = EmbedSpec{};
  row.read = &embedding;
  EXPECT_TRUE(cuda::Run(*runtime, OneShotPlan{{row}}).reads.at(0).finite);
  // The device with the least memory that can be served.
  int32_t least = 40;
  for (int64_t memory_bytes = 400 << 10; memory_bytes > 0; memory_bytes -= 8 << 10) {
    auto small = Load(options, {.memory_bytes = memory_bytes});
    if (!small.ok()) {
      EXPECT_EQ(small.status().code(), StatusCode::kResourceExhausted);
      break;
    }
    least = small.value()->long_prompt_tokens();
  }
  EXPECT_LT(least, 40);
}

std::vector<std::unique_ptr<Device>> TwoDevices(int64_t peer_bytes) {
  std::vector<std::unique_ptr<Device>> devices;
  devices.push_back(std::make_unique<FakeDevice>());
  devices.push_back(std::make_unique<FakeDevice>(FakeDevice::Options{.memory_bytes = peer_bytes}));
  return devices;
}

// Both have the same blocks, as many as the fuller one has room for.
TEST(CudaRuntime, RanksHaveTheBlocksOfTheFullerDevice) {
  const CudaRuntimeOptions options = {.model_dir = kModelDir, .threads = 1, .max_model_len = 64};
  const auto large = LoadCudaRuntime(options, TwoDevices(int64_t{256} << 20)).value();
  const auto small = LoadCudaRuntime(options, TwoDevices(int64_t{16} << 20)).value();
  EXPECT_LT(small->num_kv_blocks(), large->num_kv_blocks() / 4);
  EXPECT_GT(small->num_kv_blocks(), 64);
  EXPECT_GT(small->Memory().weight_bytes, Load(options).value()->Memory().weight_bytes);
  const auto none = LoadCudaRuntime(options, TwoDevices(100'000));
  EXPECT_EQ(none.status().code(), StatusCode::kResourceExhausted);
  std::vector<std::unique_ptr<Device>> three = TwoDevices(int64_t{16} << 20);
  three.push_back(std::make_unique<FakeDevice>());
  EXPECT_EQ(LoadCudaRuntime(options, std::move(three)).status().param(), "tp");
}

}  // namespace
}  // namespace skein::cuda
