#include "runtime/cpu_runtime.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/engine_loop.h"
#include "kernels/kv_layout.h"
#include "sched/config.h"
#include "testing/shared.h"

namespace skein {
namespace {

const char kModelDir[] = SKEIN_SOURCE_DIR "/tests/data/models/qwen3-bf16";
const char kEncoderDir[] = SKEIN_SOURCE_DIR "/tests/data/sparse/modernbert";

TEST(CpuRuntimeTest, RefusesWhatCannotWork) {
  const auto refusal = [](const CpuRuntimeOptions& options) {
    const auto runtime = CpuRuntime::Load(options);
    return runtime.ok() ? Status::Ok() : runtime.status();
  };
  EXPECT_EQ(refusal({.model_dir = kModelDir}).code(), StatusCode::kOk);
  EXPECT_EQ(refusal({.model_dir = "/nonexistent"}).code(), StatusCode::kNotFound);
  EXPECT_EQ(refusal({.model_dir = SKEIN_SOURCE_DIR "/tests/data/encoders/bert",
                     .quantization = Quantization::kInt8})
                .code(),
            StatusCode::kOk);
  EXPECT_EQ(refusal({.model_dir = kModelDir, .threads = -1}).param(), "threads");
  EXPECT_EQ(refusal({.model_dir = kModelDir, .threads = 1 << 20}).param(), "threads");
  EXPECT_EQ(refusal({.model_dir = kModelDir, .max_model_len = 1 << 30}).param(), "max_model_len");
  EXPECT_EQ(refusal({.model_dir = kModelDir, .kv_cache_bytes = int64_t{1} << 60}).param(),
            "kv_cache_bytes");
  EXPECT_EQ(refusal({.model_dir = kModelDir, .max_num_batched_tokens = 1 << 30}).param(),
            "max_num_batched_tokens");
  EXPECT_EQ(refusal({.model_dir = kModelDir, .max_num_batched_tokens = 0}).param(),
            "max_num_batched_tokens");
  const Status too_small =
      refusal({.model_dir = kModelDir, .max_model_len = 64, .kv_cache_bytes = 1000});
  EXPECT_EQ(too_small.param(), "kv_cache_bytes");
  EXPECT_NE(too_small.message().find("needs 2"), std::string::npos) << too_small.message();
  EXPECT_EQ(refusal({.model_dir = kModelDir, .max_model_len = 64, .num_kv_blocks = 1}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(refusal({.model_dir = kModelDir, .kv_cache_file = "/nonexistent/kv"}).param(),
            "kv_cache_file");
  const Status encoder = refusal({.model_dir = kEncoderDir, .kv_cache_dtype = KvCacheType::kInt8});
  EXPECT_EQ(encoder.code(), StatusCode::kUnsupported);
  EXPECT_EQ(encoder.param(), "kv_cache_dtype");
  const Status no_place = refusal(
      {.model_dir = kModelDir, .kv_cache_bytes = 1 << 20, .kv_cache_file = "/nonexistent/kv"});
  EXPECT_EQ(no_place.param(), "kv_cache_file");
  EXPECT_NE(no_place.message().find("/nonexistent/kv"), std::string::npos) << no_place.message();
}

TEST(CpuRuntimeTest, SizesKvMemoryAndReportsIt) {
  int64_t done = 0, total = 0;
  const auto runtime =
      CpuRuntime::Load({.model_dir = kModelDir,
                        .max_model_len = 70,
                        .max_num_seqs = 5,
                        .progress = [&](int64_t d, int64_t t) { done = d, total = t; }});
  ASSERT_TRUE(runtime.ok()) << runtime.status().message();
  EXPECT_GT(total, 0);
  EXPECT_EQ(done, total);
  const CpuRuntime& r = *runtime.value();
  EXPECT_EQ(r.dtype(), DType::kBf16);
  EXPECT_EQ(r.num_kv_blocks(), 15);  // 3 for each of 5 sequences
  EXPECT_EQ(r.max_model_len(), 70);
  const MemoryReport memory = r.Memory();
  EXPECT_EQ(memory.kv_bytes, 15 * memory.kv_block_bytes);
  EXPECT_EQ(memory.kv_block_bytes % (r.config().KvBytesPerToken(DType::kBf16) * kBlockTokens), 0);
  // The weights hold every matrix once, in 2 bytes, with up to one panel of padding each.
  EXPECT_GT(memory.weight_bytes, 2 * r.config().NumParameters());
  EXPECT_LT(memory.weight_bytes, 4 * r.config().NumParameters());
  EXPECT_GT(memory.matrix_bytes, memory.weight_bytes / 2);
  EXPECT_LT(memory.matrix_bytes, memory.weight_bytes);
  const auto int8 = CpuRuntime::Load({.model_dir = kModelDir, .quantization = Quantization::kInt8});
  ASSERT_TRUE(int8.ok()) << int8.status().message();
  EXPECT_EQ(int8.value()->dtype(), DType::kBf16);
  EXPECT_EQ(int8.value()->matrix_dtype(), DType::kInt8);
  EXPECT_LT(int8.value()->Memory().weight_bytes, memory.weight_bytes);
  const auto q8_0 = CpuRuntime::Load({.model_dir = kModelDir, .quantization = Quantization::kQ8_0});
  ASSERT_TRUE(q8_0.ok()) << q8_0.status().message();
  EXPECT_EQ(q8_0.value()->matrix_dtype(), DType::kBlocks);
  EXPECT_LT(q8_0.value()->Memory().weight_bytes, memory.weight_bytes);
  const auto int4 = CpuRuntime::Load({.model_dir = kModelDir, .quantization = Quantization::kInt4});
  ASSERT_TRUE(int4.ok()) << int4.status().message();
  EXPECT_EQ(int4.value()->matrix_dtype(), DType::kBlocks);
  EXPECT_LT(int4.value()->Memory().weight_bytes, int8.value()->Memory().weight_bytes);
  EXPECT_LT(int8.value()->Memory().weight_bytes, q8_0.value()->Memory().weight_bytes);
  // Instances with --role compare these names.
  EXPECT_EQ(q8_0.value()->matrix_name(), TraitsOf(BlockFormat::kQ8_0).name);
  EXPECT_EQ(int4.value()->matrix_name(), TraitsOf(BlockFormat::kQ4_0).name);
  EXPECT_EQ(int8.value()->matrix_name(), NameOf(DType::kInt8));
  // A key has a byte for each element and a scale for each 32; a value has a byte for each and a
  // scale. Heads have 32 elements here.
  const auto int8_kv = CpuRuntime::Load(
      {.model_dir = kModelDir, .kv_cache_dtype = KvCacheType::kInt8, .num_kv_blocks = 3});
  ASSERT_TRUE(int8_kv.ok()) << int8_kv.status().message();
  EXPECT_EQ(int8_kv.value()->kv_dtype(), DType::kInt8);
  EXPECT_EQ(int8_kv.value()->dtype(), DType::kBf16);
  const MemoryReport halved = int8_kv.value()->Memory();
  EXPECT_EQ(halved.kv_block_bytes * (2 * 2 * 32), memory.kv_block_bytes * (2 * 32 + 2 * 4));
  EXPECT_EQ(r.kv_dtype(), DType::kBf16);
  const auto short_memory = CpuRuntime::Load({.model_dir = kModelDir, .num_kv_blocks = 2});
  ASSERT_TRUE(short_memory.ok());
  EXPECT_EQ(short_memory.value()->max_model_len(), 64);
}

TEST(CpuRuntimeTest, SplitsALimitOnMemory) {
  const int64_t memory = int64_t{24} << 20;
  CpuRuntimeOptions options = {.model_dir = kModelDir,
                               .threads = 1,
                               .max_num_seqs = 2,
                               .memory_bytes = memory,
                               .execution = Execution::kHybrid,
                               .retention = Retention::kPrefix};
  const auto chosen = CpuRuntime::Load(options);
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  const MemoryReport report = chosen.value()->Memory();
  EXPECT_GT(report.planned_bytes, 0);
  EXPECT_LE(report.planned_bytes + report.kv_bytes, memory);
  EXPECT_GT(report.planned_bytes + report.kv_bytes + report.kv_block_bytes, memory);
  EXPECT_EQ(chosen.value()->max_model_len(), chosen.value()->config().max_position);

  options.memory_bytes = report.planned_bytes;  // leaves no byte for a block
  options.max_model_len = chosen.value()->config().max_position;
  const Status too_long = CpuRuntime::Load(options).status();
  EXPECT_EQ(too_long.param(), "max_model_len");
  int32_t fits = 0;
  const std::string found = too_long.message();
  ASSERT_EQ(std::sscanf(found.c_str() + found.rfind("at most "), "at most %d", &fits), 1) << found;
  options.max_model_len = fits;
  EXPECT_TRUE(CpuRuntime::Load(options).ok());
  options.max_model_len = fits + 1;
  EXPECT_EQ(CpuRuntime::Load(options).status().param(), "max_model_len");

  options.max_model_len = 0;
  options.memory_bytes = int64_t{1} << 20;
  const Status too_small = CpuRuntime::Load(options).status();
  EXPECT_EQ(too_small.param(), "memory");
  EXPECT_NE(too_small.message().find("hold no prompt"), std::string::npos) << too_small.message();
  options.num_kv_blocks = 3;
  EXPECT_EQ(CpuRuntime::Load(options).status().param(), "memory");
}

// The result of a request: for each sample, tokens and their log-probabilities.
struct Reply {
  std::vector<std::vector<TokenId>> tokens;
  std::vector<std::vector<float>> logprobs;

  friend bool operator==(const Reply&, const Reply&) = default;
};

// A running engine on a model. It submits all requests together and waits for the answers.
class EngineUnderTest {
 public:
  EngineUnderTest(const CpuRuntimeOptions& options, EngineConfig config)
      : runtime_(CpuRuntime::Load(options).value()) {
    config.vocab_size = runtime_->config().vocab_size;
    config.scheduler.max_model_len = runtime_->max_model_len();
    config.scheduler.num_kv_blocks = runtime_->num_kv_blocks();
    config.scheduler.max_num_seqs = options.max_num_seqs;
    config.scheduler.max_num_batched_tokens = options.max_num_batched_tokens;
    engine_ = std::make_unique<EngineLoop>(config, MakeSchedulerConfig(config).value(),
                                           &runtime_->executor(), &clock_,
                                           std::vector<SchedulerObserver*>{});
  }

  std::vector<Reply> Ask(const std::vector<Request>& requests) {
    std::vector<Reply> answers(requests.size());
    size_t num_open = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      const int32_t n = requests[i].generate().num_samples;
      answers[i].tokens.resize(n);
      answers[i].logprobs.resize(n);
      num_open += n;
    }
    for (size_t i = 0; i < requests.size(); ++i) {
      RequestId id = 0;
      const Status status = engine_->Submit(
          requests[i],
          [&, i](const RequestOutput& output) {
            const std::lock_guard lock(mutex_);
            for (const OutputToken& token : output.tokens) {
              answers[i].tokens[output.sample].push_back(token.token);
              answers[i].logprobs[output.sample].push_back(token.chosen.logprob);
            }
            if (output.finish) {
              EXPECT_NE(*output.finish, FinishReason::kError) << output.status.message();
              --num_open;
              changed_.notify_all();
            }
          },
          &id);
      EXPECT_TRUE(status.ok()) << status.message();
      if (!status.ok()) return {};
    }
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return num_open == 0; }));
    return answers;
  }

  Engine& engine() { return *engine_; }

 private:
  MonotonicClock clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<CpuRuntime> runtime_;
  std::unique_ptr<EngineLoop> engine_;
};

// Requests of many kinds; some have a common prefix.
std::vector<Request> RandomRequests(uint64_t seed, int count, int32_t vocab) {
  std::mt19937_64 random(seed);
  const auto between = [&](int64_t low, int64_t high) {
    return static_cast<int32_t>(low + static_cast<int64_t>(random() % (high - low + 1)));
  };
  std::vector<TokenId> common;
  for (int i = 0; i < 70; ++i) common.push_back(between(0, vocab - 1));
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    Request request;
    if (between(0, 1) == 1) request.prompt.assign(common.begin(), common.begin() + between(33, 70));
    for (int n = between(1, 25); n > 0; --n) request.prompt.push_back(between(0, vocab - 1));
    GenerateSpec& generate = request.generate();
    generate.max_tokens = between(1, 12);
    generate.num_logprobs = 2;
    generate.num_samples = between(0, 3) == 0 ? between(2, 3) : 1;
    SamplingParams& sampling = generate.sampling;
    sampling.seed = random();
    sampling.temperature = between(0, 2) == 0 ? 0.0f : 1.0f;
    sampling.top_k = between(0, 1) * 30;
    sampling.top_p = between(0, 1) == 0 ? 1.0f : 0.9f;
    sampling.repetition_penalty = between(0, 2) == 0 ? 1.2f : 1.0f;
    sampling.frequency_penalty = between(0, 2) == 0 ? 0.5f : 0.0f;
    requests.push_back(std::move(request));
  }
  return requests;
}

// Random ones behind 14 whose sequences begin with most of a KV block and outgrow it: served
// together, each of these needs a second block.
std::vector<Request> GrowingRequests(uint64_t seed, int count, int32_t vocab) {
  std::mt19937_64 random(seed);
  std::vector<Request> requests(14);
  for (Request& request : requests) {
    for (int i = 0; i < kKvBlockTokens - 2; ++i) {
      request.prompt.push_back(static_cast<TokenId>(random() % static_cast<uint64_t>(vocab)));
    }
    request.generate().max_tokens = 12;
    request.generate().num_logprobs = 2;
  }
  std::ranges::move(RandomRequests(seed, count - 14, vocab), std::back_inserter(requests));
  return requests;
}

class AnyLoadTest : public ::testing::TestWithParam<const char*> {};

TEST_P(AnyLoadTest, AnswersAreTheSame) {
  const std::string model = GetParam();
  const bool shared = model == "stories260K";
  if (shared) SKEIN_REQUIRE_SHARED();
  const std::string dir =
      (shared ? testing::SharedDir() + "/models/" : SKEIN_SOURCE_DIR "/tests/data/models/") + model;
  const uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  const CpuRuntimeOptions roomy = {.model_dir = dir,
                                   .threads = 1,
                                   .max_model_len = 128,
                                   .max_num_batched_tokens = 256,
                                   .max_num_seqs = 4,
                                   .num_kv_blocks = 64};
  std::vector<Reply> alone;
  std::vector<Request> requests;
  {
    EngineConfig config;
    config.scheduler.prefix_caching = false;
    EngineUnderTest engine(roomy, config);
    requests = GrowingRequests(seed, 40, engine.engine().Limits().vocab_size);
    for (const Request& request : requests) {
      alone.push_back(engine.Ask({request}).at(0));
      Request one = request;
      one.generate().num_samples = 1;
      const Reply answer = engine.Ask({one}).at(0);  // several samples begin with the single one
      EXPECT_EQ(answer.tokens[0], alone.back().tokens[0]);
      EXPECT_EQ(answer.logprobs[0], alone.back().logprobs[0]);
    }
  }
  struct Load {
    const char* preset;
    int32_t threads, max_num_batched_tokens, max_num_seqs, num_kv_blocks;
    bool prefix_caching, force_decode_path;
  };
  for (const Load& load :
       {Load{"prelude", 2, 256, 16, 200, true, false}, Load{"prelude", 2, 24, 8, 16, false, false},
        Load{"vllm-fcfs", 2, 512, 32, 200, true, false},
        Load{"vllm-fcfs", 1, 7, 4, 200, true, false},
        Load{"vllm-fcfs", 2, 64, 16, 14, true, true},  // the growing ones are preempted
        Load{"nano-vllm", 2, 64, 8, 30, false, false},
        Load{"request-level", 1, 128, 8, 100, true, false}}) {
    SCOPED_TRACE(std::string(load.preset) + " " + std::to_string(load.max_num_batched_tokens));
    CpuRuntimeOptions options = roomy;
    options.threads = load.threads;
    options.max_num_batched_tokens = load.max_num_batched_tokens;
    options.max_num_seqs = load.max_num_seqs;
    options.num_kv_blocks = load.num_kv_blocks;
    EngineConfig config;
    config.scheduler.policies = FindPreset(load.preset)->policies;
    config.scheduler.prefix_caching = load.prefix_caching;
    config.scheduler.force_decode_path = load.force_decode_path;
    EngineUnderTest engine(options, config);
    for (int round = 0; round < 2; ++round) {  // in the second round, the cache is filled
      const std::vector<Reply> together = engine.Ask(requests);
      ASSERT_EQ(together.size(), alone.size());
      for (size_t i = 0; i < together.size(); ++i) {
        ASSERT_EQ(together[i].tokens, alone[i].tokens) << "request " << i << ", round " << round;
        ASSERT_EQ(together[i].logprobs, alone[i].logprobs) << "request " << i;
      }
    }
    if (load.prefix_caching) {
      EXPECT_GT(engine.engine().Stats().prefix_cache_hits, 0u);
    }
    if (load.num_kv_blocks == 14) {
      EXPECT_GT(engine.engine().Stats().num_preemptions, 0u);
    }
    EXPECT_EQ(engine.engine().Stats().kv_blocks_used, 0);
  }
}

// Sequences in contiguous memory, one after the other, get the same answers as in shared blocks.
TEST_P(AnyLoadTest, ContiguousStorageGivesTheSameAnswers) {
  const std::string model = GetParam();
  const bool shared = model == "stories260K";
  if (shared) SKEIN_REQUIRE_SHARED();
  CpuRuntimeOptions options = {.model_dir = (shared ? testing::SharedDir() + "/models/"
                                                    : SKEIN_SOURCE_DIR "/tests/data/models/") +
                                            model,
                               .threads = 1,
                               .max_model_len = 128,
                               .max_num_batched_tokens = 256,
                               .max_num_seqs = 4};
  const uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  EngineUnderTest paged(options, {});
  std::vector<Request> requests = RandomRequests(seed, 24, paged.engine().Limits().vocab_size);
  for (Request& request : requests) request.generate().num_samples = 1;
  const std::vector<Reply> expected = paged.Ask(requests);
  options.max_num_seqs = 1;
  options.kv_storage = KvStorage::kContiguous;
  for (const auto& [preset, budget] :
       {std::pair("prelude", 256), std::pair("prelude", 7), std::pair("paged-fcfs", 64),
        std::pair("request-level", 33)}) {
    SCOPED_TRACE(std::string(preset) + " " + std::to_string(budget));
    options.threads = 3 - options.threads;
    options.max_num_batched_tokens = budget;
    EngineConfig config;
    config.scheduler.policies = FindPreset(preset)->policies;
    config.scheduler.kv_storage = KvStorage::kContiguous;
    EngineUnderTest contiguous(options, config);
    EXPECT_EQ(contiguous.engine().Stats().kv_blocks_total, 4);
    EXPECT_EQ(contiguous.Ask(requests), expected);
    EXPECT_EQ(contiguous.engine().Stats().prefix_cache_hits, 0u);
    EXPECT_EQ(contiguous.engine().Stats().kv_blocks_used, 0);
  }
}

TEST(CpuRuntimeTest, ContiguousStorageIsForOneSequence) {
  EngineConfig config;
  config.scheduler.max_model_len = 128;
  config.scheduler.num_kv_blocks = 4;
  config.scheduler.kv_storage = KvStorage::kContiguous;
  config.scheduler.max_num_seqs = 2;
  const auto refused = MakeSchedulerConfig(config);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().param(), "max_num_seqs");
  config.scheduler.max_num_seqs = 1;
  EXPECT_TRUE(MakeSchedulerConfig(config).ok());
}

TEST(CpuRuntimeTest, AFileForTheCacheGivesTheSameAnswers) {
  CpuRuntimeOptions options = {
      .model_dir = kModelDir, .threads = 1, .max_model_len = 128, .max_num_seqs = 4};
  EngineUnderTest memory(options, {});
  const std::vector<Request> requests = RandomRequests(2, 8, memory.engine().Limits().vocab_size);
  options.kv_cache_bytes = int64_t{1} << 20;
  const std::string path =
      ::testing::TempDir() + "kv-" + std::to_string(std::random_device{}()) + ".cache";
  options.kv_cache_file = path;
  EngineUnderTest file(options, {});
  EXPECT_EQ(file.Ask(requests), memory.Ask(requests));
  EXPECT_FALSE(std::filesystem::exists(path));  // the file is removed
  std::ofstream(path) << "somebody's";
  const Status taken = CpuRuntime::Load(options).status();
  EXPECT_EQ(taken.param(), "kv_cache_file");
  EXPECT_EQ(std::filesystem::file_size(path), 10u);
  std::filesystem::remove(path);
}

TEST(CpuRuntimeTest, PinnedThreadsGiveTheSameAnswers) {
  CpuRuntimeOptions options = {
      .model_dir = kModelDir, .threads = 1, .max_model_len = 128, .max_num_seqs = 4};
  EngineUnderTest free(options, {});
  const std::vector<Request> requests = RandomRequests(1, 8, free.engine().Limits().vocab_size);
  const std::vector<Reply> expected = free.Ask(requests);
  options.pin_threads = true;
  EngineUnderTest pinned(options, {});
  EXPECT_EQ(pinned.Ask(requests), expected);
  options.threads = 1024;
  const auto refused = CpuRuntime::Load(options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().param(), "pin_threads");
}

// Two nodes that share this machine's processors, as a machine with two sockets describes itself.
TEST(CpuRuntimeTest, CopiesOfTheWeightsOnTwoNodesGiveTheSameAnswers) {
  const std::string folder = ::testing::TempDir() + "skein-two-nodes";
  for (const char* node : {"/node0", "/node1"}) {
    std::filesystem::create_directories(folder + node);
    std::ofstream(folder + node + "/cpulist") << "0-1023\n";
  }
  CpuRuntimeOptions options = {
      .model_dir = kModelDir, .threads = 3, .max_model_len = 128, .max_num_seqs = 4};
  EngineUnderTest one(options, {});
  const std::vector<Request> requests = RandomRequests(1, 8, one.engine().Limits().vocab_size);
  const std::vector<Reply> expected = one.Ask(requests);
  const int64_t one_copy = CpuRuntime::Load(options).value()->Memory().weight_bytes;
  options.numa_folder = folder;
  options.numa = NumaRule::kReplicate;
  for (const bool pinned : {false, true}) {
    options.pin_threads = pinned;
    options.threads = pinned ? 2 : 3;
    EngineUnderTest copies(options, {});
    EXPECT_EQ(copies.Ask(requests), expected);
  }
  const std::unique_ptr<CpuRuntime> runtime = CpuRuntime::Load(options).value();
  EXPECT_EQ(runtime->numa(), NumaRule::kReplicate);
  EXPECT_GT(runtime->Memory().weight_bytes, one_copy * 3 / 2);
  EXPECT_LE(runtime->Memory().weight_bytes, one_copy * 2);
  options.numa = NumaRule::kInterleave;  // this machine has node 0 at least
  {
    EngineUnderTest interleaved(options, {});
    EXPECT_EQ(interleaved.Ask(requests), expected);
  }
  options.numa = NumaRule::kReplicate;
  options.memory_limit_bytes = 1;
  const Status refused = CpuRuntime::Load(options).status();
  EXPECT_EQ(refused.param(), "numa");
  EXPECT_NE(refused.message().find("replicate"), std::string::npos) << refused.message();
  options.memory_limit_bytes = 0;
  options.numa_folder = kNumaFolder + std::string("/none");  // one node: nothing to copy
  EXPECT_EQ(CpuRuntime::Load(options).value()->numa(), NumaRule::kOff);
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Models, AnyLoadTest,
                         ::testing::Values("qwen3-bf16", "qwen3-moe", "llama-default",
                                           "stories260K"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(CpuRuntimeTest, Stories260KGeneratesTheGoldenTokens) {
  SKEIN_REQUIRE_SHARED();
  const std::string dir = testing::SharedDir() + "/models/stories260K";
  std::ifstream file(dir + "/golden.json");
  const auto golden = nlohmann::json::parse(file);
  std::vector<Request> requests;
  std::vector<std::vector<TokenId>> expected;
  for (const auto& prompt : golden["prompts"]) {
    Request request;
    request.prompt = prompt["prompt_ids"].get<std::vector<TokenId>>();
    expected.push_back(prompt["greedy_ids"]);
    request.generate().max_tokens = static_cast<int32_t>(expected.back().size());
    request.generate().sampling.temperature = 0;
    requests.push_back(std::move(request));
  }
  EngineUnderTest engine({.model_dir = dir, .threads = 2, .max_num_batched_tokens = 64}, {});
  const std::vector<Reply> answers = engine.Ask(requests);
  ASSERT_EQ(answers.size(), expected.size());
  for (size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i].tokens[0], expected[i]);
}

}  // namespace
}  // namespace skein
