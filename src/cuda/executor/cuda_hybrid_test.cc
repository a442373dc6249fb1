// Hybrid prefilling on the emulated device: chunks of any size outside attention, beside the plain
// pass of the processor.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cuda/executor/cuda_executor.h"
#include "cuda/executor/device_plan.h"
#include "testing/cuda_beside_cpu.h"

namespace skein::cuda {
namespace {

using testing::ArgsOf;
using testing::Blocks;
using testing::Both;
using testing::ExpectSame;
using testing::FakeDeviceOptions;
using testing::LoadedModel;
using testing::ModelDir;
using testing::Random;
using testing::RunPlan;
using testing::Sequence;
using testing::StopAtEachLaunch;

Both InChunks(const std::string& dir, int32_t chunk_tokens,
              const std::string& quantization = "auto",
              const std::vector<FakeDeviceOptions>& peers = {}) {
  return Both(dir, quantization, {}, {.num_steps = 2}, Pooling::kLast, nullptr, peers, false,
              chunk_tokens);
}

// Prompts with outputs in many places, whose keys and values are kept, kept in part or not at all;
// a chunk of a prompt behind another; decodes.
class Plans {
 public:
  Plans(Random& random, int32_t vocab)
      : a_(random, vocab, random.Integer(56, 62), 0),
        b_(random, vocab, 1, 10),
        c_(random, vocab, 50, 20),
        d_(random, vocab, 20, 30) {}

  std::vector<StepPlan> All() {
    PlanRow with_logprobs = a_.Whole(), read = d_.Row(0, d_.size(), false);
    // Many of the first tokens have outputs: their rows go to rows of other outputs.
    with_logprobs.prompt_logprobs = {2, std::span(a_.tokens).subspan(2, 40), 2};
    read.read = &labels_;
    std::vector<StepPlan> plans = {OneShotPlan{{with_logprobs, b_.Whole(), read}},
                                   MixedPlan{{}, {c_.Row(0, 21, false)}, {}}};
    plans.push_back(
        MixedPlan{{}, {c_.Row(21, c_.size(), true)}, {a_.Row(a_.size() - 1, a_.size(), true)}});
    PlanRow kept_in_part = a_.Whole(), not_kept = d_.Whole();
    kept_in_part.block_table = kept_in_part.block_table.first(1);
    not_kept.block_table = {};
    plans.push_back(OneShotPlan{{not_kept, kept_in_part}});
    plans.push_back(DecodePlan{{}, {a_.Row(a_.size() - 1, a_.size(), true), b_.Row(0, 1, true)}});
    return plans;
  }

 private:
  const OutputSpec labels_ = LabelSpec{.tokens = {3, 90, 17, 91}};
  Sequence a_, b_, c_, d_;
};

void ExpectTheProcessorsBits(Both& both, Random& random, bool all_plans = true) {
  Plans plans(random, both.model.vocab());
  std::vector<StepPlan> chosen = plans.All();
  if (!all_plans) chosen.resize(3);  // the emulator is slow
  for (const StepPlan& without_states : chosen) {
    const StepPlan plan = testing::WithStates(*both.cpu, without_states);
    ExpectSame(RunPlan(both.cuda.executor(), plan), RunPlan(*both.cpu, plan));
  }
}

TEST(CudaHybrid, EveryDecoderHasThePlainBits) {
  Random random;
  constexpr int32_t kChunks[] = {7, 32, 50};
  int32_t num_models = 0;
  for (const std::string& dir : testing::GoldenModelDirs()) {
    if (!CheckDeviceComputes(LoadedModel(dir).weights()).ok()) continue;
    const int32_t chunk = kChunks[num_models++ % std::size(kChunks)];
    SCOPED_TRACE(dir + ", chunks of " + std::to_string(chunk));
    Both both = InChunks(dir, chunk);
    ExpectTheProcessorsBits(both, random, false);
  }
  EXPECT_GE(num_models, 50);
}

TEST(CudaHybrid, ChunksOfAnySizeHaveThePlainBits) {
  Random random;
  for (const int32_t chunk : {1, 2, 16, 33, 64, 159, 160}) {
    SCOPED_TRACE(chunk);
    Both both = InChunks(ModelDir("qwen3-bf16"), chunk);
    ExpectTheProcessorsBits(both, random);
  }
}

TEST(CudaHybrid, PackedWeightsHaveThePlainBits) {
  Random random;
  for (const char* quantization : {"int8", "int4"}) {
    SCOPED_TRACE(quantization);
    Both both = InChunks(ModelDir("qwen3-bf16"), 13, quantization);
    ExpectTheProcessorsBits(both, random);
  }
}

// Ranks share the rows of a chunk. One of them runs as far ahead as the other's marks allow.
TEST(CudaHybrid, SeveralDevicesHaveThePlainBits) {
  Random random;
  for (const bool lead_ahead : {false, true}) {
    for (const char* model : {"qwen3-bf16", "qwen3-moe-bf16", "granite-bf16"}) {
      SCOPED_TRACE(std::string(model) + (lead_ahead ? ", lead ahead" : ", peer ahead"));
      Both both(ModelDir(model), "auto", {.at_once = lead_ahead}, {.num_steps = 2}, Pooling::kLast,
                nullptr, {{.at_once = !lead_ahead}}, 13);
      ExpectTheProcessorsBits(both, random);
    }
  }
}

// The signal comes at each launch in turn. The task stops within a few operators, another runs, and
// it goes on unchanged.
TEST(CudaHybrid, StopsAtEachLaunchChangeNothing) {
  Random random;
  Both both = InChunks(ModelDir("qwen3-bf16"), 16);
  CudaExecutor& executor = both.cuda.executor();
  executor.set_ahead_us(0);
  executor.set_slice_us(0);
  Sequence sequence(random, both.model.vocab(), 40, 0), other(random, both.model.vocab(), 5, 10);
  sequence.blocks = {0};  // the other blocks are the pass's own
  const StepPlan plan = OneShotPlan{{sequence.Whole()}}, other_plan = OneShotPlan{{other.Whole()}};
  const StepResults expected = RunPlan(*both.cpu, plan);
  const FakeDevice& fake = both.device.fake();
  const int64_t before = fake.num_launches();
  ExpectSame(RunPlan(executor, plan), expected);
  const int64_t num_launches = fake.num_launches() - before;
  // Three chunks of each layer but the last, which gathers one row.
  const int64_t num_layers = both.model.config().num_layers;
  EXPECT_GE(num_launches, (num_layers - 1) * 3 * 8);
  const int64_t num_stops =
      StopAtEachLaunch(both, plan, expected, other_plan, num_launches, [&](int64_t k) {
        return [&fake, k, first = fake.num_launches()] {
          constexpr int64_t kLaunchesOfAnOperator = 2;
          EXPECT_LE(fake.num_launches() - first - k, kLaunchesOfAnOperator);
          EXPECT_EQ(fake.num_launches(), fake.num_launches_done());
        };
      });
  EXPECT_GE(num_stops, num_launches - 4);
}

// The rows of products, in a model of two layers.
TEST(CudaHybrid, OperatorsRunChunkByChunk) {
  Random random;
  Both both = InChunks(ModelDir("qwen3-bf16"), 16);
  ASSERT_EQ(both.model.config().num_layers, 2);
  const auto product_rows = [&](const StepPlan& plan) {
    std::vector<Launch> launches;
    both.device.set_recording(&launches);
    RunPlan(both.cuda.executor(), plan);
    both.device.set_recording(nullptr);
    std::vector<int32_t> rows;
    for (const Launch& launch : launches) {
      if (testing::IsProduct(launch)) rows.push_back(ArgsOf<GemmArgs>(launch).m);
    }
    return rows;
  };
  Sequence sequence(random, both.model.vocab(), 40, 0);
  // q, k and v of all chunks; attention's product, gate and up, and down of each chunk. Then q, k
  // and v of the last layer, and four products of its one row with an output.
  EXPECT_EQ(
      product_rows(OneShotPlan{{sequence.Whole()}}),
      (std::vector<int32_t>{16, 16, 8, 16, 16, 16, 16, 16, 16, 8, 8, 8, 16, 16, 8, 1, 1, 1, 1}));
  // 20 rows with outputs are two chunks.
  PlanRow row = sequence.Row(0, 40, false);
  row.prompt_logprobs = {1, std::span(sequence.tokens).subspan(1, 20), 1};
  std::vector<int32_t> rows = product_rows(OneShotPlan{{row}});
  rows.erase(rows.begin(), rows.begin() + 12 + 3);
  rows.resize(6);
  EXPECT_EQ(rows, (std::vector<int32_t>{16, 16, 16, 4, 4, 4}));
}

// As on the processor: the residual stream, q, and the keys and values of one layer.
TEST(DevicePlan, HybridNeedsTheHiddenStateQAndOneLayersKeysAndValues) {
  const ModelConfig config = testing::Qwen3Shape();
  ActivationShape shape(config);
  shape.num_positions = 65536;
  shape.kv_block_bytes = KvBlockBytes(config, DType::kBf16) / config.num_layers;
  const auto per_token = [&](int32_t chunk) {
    const auto bytes = [&](int32_t tokens) {
      return Activations::Bytes(shape, {.max_tokens = tokens,
                                        .max_logit_rows = 1,
                                        .chunk_tokens = chunk,
                                        .max_own_blocks = BlocksFor(tokens)});
    };
    return (bytes(65536) - bytes(32768)) / 32768;
  };
  EXPECT_EQ(per_token(2048), 4096 + 4096 + 4096);
  // h, attention's output, q, k and v before their rotation, and the MLP.
  EXPECT_EQ(per_token(0), 12288 + 2048 + 4096 + 16384 + 6144);
}

TEST(DevicePlan, HybridReachesFurtherThanPlain) {
  const ModelConfig config = testing::Qwen3Shape();
  const auto longest = [&](const char* mode) {
    return MaxInputTokens(int64_t{8} << 30, [&](int32_t n) {
      return DeviceRequestBytes(config, DType::kBf16, *FindPrefillMode(mode), n);
    });
  };
  EXPECT_LT(longest("paged"), longest("chunked"));
  EXPECT_LT(longest("chunked"), longest("drop-kv"));
  EXPECT_LE(longest("hybrid-prefix"), longest("hybrid"));
  EXPECT_GT(longest("hybrid-prefix"), 8 * longest("paged"));
  EXPECT_FALSE(DeviceHas(*FindPrefillMode("hybrid-collected")));
}

// The planned bytes are those that a pass takes, in models with all kinds of buffers.
TEST(DevicePlan, CountsTheBytesThatAPassTakes) {
  for (const char* name : {"models/qwen3-bf16", "models/qwen3-moe", "models/qwen3.5-bf16",
                           "models/olmo2", "encoders/bert", "encoders/deberta-v3", "laya"}) {
    for (const int32_t chunk : {0, 24}) {
      SCOPED_TRACE(std::string(name) + ", chunks of " + std::to_string(chunk));
      const LoadedModel model(std::string(SKEIN_SOURCE_DIR "/tests/data/") + name);
      FakeDevice device;
      CudaContext context = {.device = &device};
      context.model = model.context();
      const ForwardLimits limits = {.max_tokens = 100, .chunk_tokens = chunk, .max_own_blocks = 5};
      const Activations taken = Activations::Make(context, limits).value();
      EXPECT_EQ(device.bytes_in_use(), taken.bytes);
      EXPECT_EQ(Activations::Bytes(ActivationShape(context), limits), taken.bytes);
    }
  }
}

}  // namespace
}  // namespace skein::cuda
