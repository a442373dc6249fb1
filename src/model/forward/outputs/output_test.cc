// Outputs of a pass other than complete rows of logits: labels, embeddings, classes.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "model/weights/random_model.h"
#include "testing/isas.h"
#include "testing/loaded_model.h"

namespace skein {
namespace {

using testing::Blocks;
using testing::LoadedModel;
using testing::Logits;
using testing::SameBits;
using Json = nlohmann::json;

constexpr ForwardLimits kLimits = {.max_tokens = 256, .max_logit_rows = 3};

std::string Dir(const std::string& name) { return SKEIN_SOURCE_DIR "/tests/data/" + name; }

// All outputs of a pass, kind by kind in order, cut to their valid length. The labels' logits are
// gathered.
struct Outputs {
  std::vector<Logits> logits, labels, embeddings, classes;
  int num_stops = 0;
};

Outputs RunAll(ForwardPass* pass, const ModelConfig& config, std::atomic<bool>* stop = nullptr) {
  Outputs all;
  pass->Begin();
  for (;;) {
    const ForwardStatus status = pass->Run(stop);
    if (status == ForwardStatus::kDone) return all;
    if (status == ForwardStatus::kStopped) {
      ++all.num_stops;
      *stop = false;
      continue;
    }
    const OutputChunk& chunk = pass->chunk();
    EXPECT_LE(chunk.count, kLimits.max_logit_rows);
    for (int32_t i = 0; i < chunk.count; ++i) {
      const float* out = pass->output(i);
      if (chunk.kind == OutputKind::kLogits) {
        all.logits.emplace_back(out, out + config.vocab_size);
      } else if (chunk.kind == OutputKind::kEmbedding) {
        all.embeddings.emplace_back(out, out + config.hidden_size);
      } else if (chunk.kind == OutputKind::kClasses) {
        all.classes.emplace_back(out, out + config.num_classes);
      } else {
        Logits& labels = all.labels.emplace_back();
        for (const int32_t label : pass->batch().label_outputs[chunk.first + i].labels) {
          labels.push_back(out[label]);
        }
      }
    }
  }
}

void ExpectSame(const std::vector<Logits>& a, const std::vector<Logits>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(SameBits(a[i], b[i])) << i;
}

class ForwardOutputTest
    : public ::testing::TestWithParam<std::tuple<const char*, const char*, Isa>> {
 protected:
  ForwardOutputTest()
      : model_(Dir(std::get<0>(GetParam())), {.quantization = std::get<1>(GetParam()),
                                              .isa = std::get<2>(GetParam()),
                                              .num_blocks = 64}) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed_));
  }

  std::vector<int32_t> RandomTokens(int32_t n) {
    std::vector<int32_t> tokens(n);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random_() % model_.vocab());
    return tokens;
  }

  const uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
  LoadedModel model_;
};

TEST_P(ForwardOutputTest, LabelsHaveTheBitsOfTheirLogits) {
  ForwardPass pass(model_.context(), kLimits);
  constexpr int32_t kRows = 8;
  std::vector<std::vector<int32_t>> tokens, blocks, labels;
  for (int32_t r = 0; r < kRows; ++r) {
    tokens.push_back(RandomTokens(1 + static_cast<int32_t>(random_() % 20)));
    blocks.push_back(Blocks(4 * r, static_cast<int32_t>(tokens[r].size())));
    std::vector<int32_t> all(model_.vocab());
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), random_);
    all.resize(r == 0 ? all.size() : 1 + random_() % 40);
    labels.push_back(r % 3 == 2 ? labels.back() : all);  // some neighbours have the same labels
  }
  const auto run = [&](bool whole) {
    pass.batch().Clear();
    for (int32_t r = 0; r < kRows; ++r) {
      pass.batch().AddRow(tokens[r], 0, blocks[r], whole);
      if (whole) continue;
      pass.batch().label_outputs.push_back({pass.batch().num_tokens() - 1, labels[r]});
    }
    return RunAll(&pass, model_.config());
  };
  const Outputs whole = run(true);
  const Outputs some = run(false);
  ASSERT_EQ(whole.logits.size(), size_t{kRows});
  ASSERT_EQ(some.labels.size(), size_t{kRows});
  for (int32_t r = 0; r < kRows; ++r) {
    Logits expected;
    for (const int32_t label : labels[r]) expected.push_back(whole.logits[r][label]);
    EXPECT_TRUE(SameBits(some.labels[r], expected)) << r;
  }
}

// Only panels of the output matrix with a label's row are computed, and only once for adjacent
// outputs with the same labels.
TEST_P(ForwardOutputTest, LabelsComputeTheirPanelsAlone) {
  const PackedWeight& matrix = model_.weights().output;
  const int32_t n = matrix.n();
  const int32_t last_panel = (n - 1) / kPanelCols * kPanelCols;
  ASSERT_GT(last_panel, 4 * kPanelCols);
  // Two labels of the first output are in one panel.
  const std::vector<int32_t> some = {kPanelCols + 3, 3 * kPanelCols, kPanelCols + 7};
  const std::vector<int32_t> last = {n - 1};
  const std::vector<int32_t> tokens = RandomTokens(5);
  std::vector<std::vector<int32_t>> blocks;
  for (int32_t r = 0; r < 3; ++r) blocks.push_back(Blocks(r, 5));
  ForwardPass pass(model_.context(), kLimits);
  for (int32_t r = 0; r < 3; ++r) {
    pass.batch().AddRow(tokens, 0, blocks[r], false);
    pass.batch().label_outputs.push_back({pass.batch().num_tokens() - 1, r < 2 ? some : last});
  }
  std::vector<std::tuple<int32_t, int32_t, int32_t>> products;  // outputs, [begin, end) of n
  model_.kernels().set_gemm_observer([&](const GemmCall& call) {
    if (call.w == &matrix) products.emplace_back(call.m, call.n_begin, call.n_end);
  });
  RunAll(&pass, model_.config());
  model_.kernels().set_gemm_observer({});
  std::ranges::sort(products);
  const std::vector<std::tuple<int32_t, int32_t, int32_t>> expected = {
      {1, last_panel, n},
      {2, kPanelCols, 2 * kPanelCols},
      {2, 3 * kPanelCols, 4 * kPanelCols},
  };
  EXPECT_EQ(products, expected);
}

TEST_P(ForwardOutputTest, MeanIsTheSumInOrderOfPositions) {
  ForwardContext context = model_.context();
  const auto tokens = RandomTokens(50);
  const std::vector<int32_t> blocks = Blocks(0, 50);
  const auto embed = [&](Pooling pooling, int32_t num_tokens) {
    context.pooling = pooling;
    ForwardPass pass(context, kLimits);
    pass.batch().AddRow(std::span(tokens).first(num_tokens), 0, blocks, false);
    pass.batch().embedded_rows.push_back(0);
    return RunAll(&pass, model_.config()).embeddings.at(0);
  };
  // The last hidden state of a prefix equals the state at that position in the whole prompt.
  Logits sum(model_.config().hidden_size, 0.0f);
  for (int32_t n = 1; n <= 50; ++n) {
    const Logits last = embed(Pooling::kLast, n);
    for (size_t d = 0; d < sum.size(); ++d) sum[d] += last[d];
    if (n == 1) {
      EXPECT_TRUE(SameBits(embed(Pooling::kCls, 50), last));
    }
  }
  for (float& value : sum) value /= 50.0f;
  EXPECT_TRUE(SameBits(embed(Pooling::kMean, 50), sum));
}

std::vector<std::tuple<const char*, const char*, Isa>> OutputCases() {
  std::vector<std::tuple<const char*, const char*, Isa>> cases;
  for (const char* name :
       {"models/qwen3", "models/qwen3-bf16", "models/llama-linear", "models/gemma2-bf16"}) {
    for (const char* quantization : {"none", "int8"}) {
      cases.emplace_back(name, quantization, SelectIsa().value());
      if (SelectIsa().value() == Isa::kScalar) continue;
      cases.emplace_back(name, quantization, Isa::kScalar);
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Models, ForwardOutputTest, ::testing::ValuesIn(OutputCases()),
                         [](const auto& param) {
                           std::string name = std::get<0>(param.param);
                           std::erase_if(name, [](char c) { return c == '/' || c == '-'; });
                           return name + std::get<1>(param.param) +
                                  testing::TestNameOf(std::get<2>(param.param));
                         });

// A model whose means take three tickets.
std::unique_ptr<LoadedModel> WideModel(int threads, int32_t head_dim = 32) {
  Json json = Json::parse(R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3",
      "hidden_size": 320, "intermediate_size": 96, "num_hidden_layers": 1,
      "num_attention_heads": 2, "num_key_value_heads": 1, "hidden_act": "silu",
      "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "max_position_embeddings": 256,
      "tie_word_embeddings": true, "attention_bias": false, "torch_dtype": "bfloat16",
      "vocab_size": 128, "eos_token_id": 2})");
  json["head_dim"] = head_dim;
  const auto dir = std::filesystem::temp_directory_path() /
                   ("skein_wide_" + std::to_string(getpid()) + "_" + std::to_string(threads));
  std::filesystem::create_directories(dir);
  std::ofstream(dir / "config.json") << json;
  ThreadTeam team(1);
  const ModelConfig config = ParseModelConfig(json.dump()).value();
  SKEIN_CHECK(WriteRandomWeights(config, {}, dir.string(), &team, {}).ok());
  auto model = std::make_unique<LoadedModel>(
      dir.string(), LoadedModel::Options{.threads = threads, .num_blocks = 16});
  std::filesystem::remove_all(dir);
  return model;
}

DenseWeights RandomDense(int32_t size, DType dtype, std::mt19937_64* random) {
  std::normal_distribution<float> normal(0, 0.05f);
  Logits matrix(size_t(size) * size), bias(size);
  for (float& value : matrix) value = normal(*random);
  for (float& value : bias) value = normal(*random);
  DenseWeights dense = {PackedWeight(size, size, dtype), std::move(bias), Activation::kTanh};
  dense.weight.PackRows(0, size, matrix.data(), DType::kF32);
  return dense;
}

Logits ThroughDense(const Kernels& kernels, const DenseWeights& dense, const Logits& x) {
  const PackedWeight& w = dense.weight;
  AlignedBuffer in(x.size() * SizeOf(w.dtype()));
  kernels.Convert(x.data(), w.k(), in.data(), w.dtype());
  Logits out(w.n());
  kernels.Gemm({.a = in.data(),
                .lda = w.k(),
                .m = 1,
                .w = &w,
                .n_begin = 0,
                .n_end = w.n(),
                .bias = dense.bias.data(),
                .out = out.data(),
                .ldo = w.n()});
  kernels.Activate(dense.activation, out.data(), w.n(), out.data(), DType::kF32);
  return out;
}

void AddEmbeddedRows(std::mt19937_64* random, std::vector<std::vector<int32_t>>* blocks,
                     ForwardBatch* batch) {
  for (int32_t r = 0; r < 5; ++r) {
    std::vector<int32_t> tokens(5 + 7 * r);
    for (int32_t& token : tokens) token = static_cast<int32_t>((*random)() % 128);
    blocks->push_back(Blocks(2 * r, static_cast<int32_t>(tokens.size())));
    batch->AddRow(tokens, 0, blocks->back(), false);
    batch->embedded_rows.push_back(r);
  }
}

// With any number of threads, the thread that sums a row's last columns applies the Dense modules.
TEST(ForwardOutputMean, DenseModulesFollowTheWholeMean) {
  for (const int threads : {1, 3}) {
    const std::unique_ptr<LoadedModel> model = WideModel(threads);
    ForwardContext context = model->context();
    context.pooling = Pooling::kMean;
    std::vector<Logits> means;
    for (const bool dense : {false, true}) {
      std::mt19937_64 random(1);
      if (dense) model->AddDense(RandomDense(320, model->weights().dtype, &random));
      random.seed(2);
      ForwardPass pass(context, kLimits);
      std::vector<std::vector<int32_t>> blocks;
      AddEmbeddedRows(&random, &blocks, &pass.batch());
      for (int repeat = 0; repeat < 20; ++repeat) {
        std::vector<Logits> got = RunAll(&pass, model->config()).embeddings;
        ASSERT_EQ(got.size(), 5u);
        if (!dense) means = got;
        for (size_t r = 0; dense && r < got.size(); ++r) {
          const DenseWeights& weights = model->weights().embedding_dense.front();
          EXPECT_TRUE(SameBits(got[r], ThroughDense(model->kernels(), weights, means[r]))) << r;
        }
      }
    }
  }
}

// A head of 250 elements shares no panel with the next head, and a ticket has room for only a few
// rows of such heads.
TEST(ForwardOutputHeads, MayHaveAnyEvenSize) {
  const std::unique_ptr<LoadedModel> model = WideModel(2, 250);
  ForwardPass pass(model->context(), kLimits);
  std::mt19937_64 random(1);
  std::vector<std::vector<int32_t>> blocks;
  AddEmbeddedRows(&random, &blocks, &pass.batch());
  const std::vector<int32_t> tokens = pass.batch().tokens;
  const std::vector<Logits> together = RunAll(&pass, model->config()).embeddings;
  ASSERT_EQ(together.size(), 5u);
  for (size_t r = 0, first = 0; r < together.size(); ++r) {
    const auto count = 5 + 7 * r;
    pass.batch().Clear();
    pass.batch().AddRow(std::span(tokens).subspan(first, count), 0, blocks[r], false);
    pass.batch().embedded_rows.push_back(0);
    const std::vector<Logits> alone = RunAll(&pass, model->config()).embeddings;
    ASSERT_EQ(alone.size(), 1u);
    EXPECT_TRUE(SameBits(alone[0], together[r])) << r;
    first += count;
  }
}

// No ticket sums all columns of a wide row, with or without Dense modules.
TEST(ForwardOutputMean, TicketsTakeSomeColumns) {
  const std::unique_ptr<LoadedModel> model = WideModel(1);
  ForwardContext context = model->context();
  context.pooling = Pooling::kMean;
  std::mt19937_64 random(1);
  model->AddDense(RandomDense(320, model->weights().dtype, &random));
  ForwardPass pass(context, kLimits);
  std::vector<std::vector<int32_t>> blocks;
  AddEmbeddedRows(&random, &blocks, &pass.batch());
  const int64_t before = model->kernels().num_calls();
  const std::vector<Logits> expected = RunAll(&pass, model->config()).embeddings;
  const int64_t num_calls = model->kernels().num_calls() - before;
  std::atomic<bool>& stop = model->kernels().stop();
  int num_seen = 0;
  for (int64_t k = 0; k < num_calls; ++k) {
    stop = false;
    model->kernels().StopAfter(k);
    ExpectSame(RunAll(&pass, model->config(), &stop).embeddings, expected);
    stop = false;
    model->kernels().StopAfter(k);
    pass.Begin();
    ForwardStatus status = pass.Run(&stop);
    while (status == ForwardStatus::kOutputs) status = pass.Run(&stop);
    if (status == ForwardStatus::kDone || pass.op().name() != "embedding_mean") continue;
    EXPECT_EQ(pass.num_tickets(), 3 * pass.chunk().count);
    ++num_seen;
  }
  EXPECT_GT(num_seen, 0);
}

// Every kind of output, together in one pass and each alone. The pass is stopped after any kernel
// call.
TEST(ForwardOutputBits, AStopAnywhereChangesNothing) {
  LoadedModel model(Dir("models/qwen3"), {.num_blocks = 16});
  ForwardContext context = model.context();
  context.pooling = Pooling::kMean;
  ForwardPass pass(context, kLimits);
  const std::vector<int32_t> tokens = {5, 9, 100, 3, 7, 7, 1};
  const std::vector<int32_t> labels = {3, 90, 4};
  std::vector<std::vector<int32_t>> blocks;
  for (int32_t r = 0; r < 5; ++r) blocks.push_back(Blocks(r, 7));
  ForwardBatch& batch = pass.batch();
  for (int32_t r = 0; r < 5; ++r) {
    batch.AddRow(std::span(tokens).first(3 + r), 0, blocks[r], r == 0);
    if (r == 1) batch.label_outputs.push_back({batch.num_tokens() - 1, labels});
    if (r > 1) batch.embedded_rows.push_back(r);
  }
  const int64_t before = model.kernels().num_calls();
  const Outputs expected = RunAll(&pass, model.config());
  const int64_t num_calls = model.kernels().num_calls() - before;
  EXPECT_EQ(expected.embeddings.size(), 3u);
  int num_stops = 0;
  for (int64_t k = 0; k < num_calls; ++k) {
    model.kernels().stop() = false;
    model.kernels().StopAfter(k);
    const Outputs got = RunAll(&pass, model.config(), &model.kernels().stop());
    num_stops += got.num_stops;
    ExpectSame(got.logits, expected.logits);
    ExpectSame(got.labels, expected.labels);
    ExpectSame(got.embeddings, expected.embeddings);
  }
  EXPECT_GT(num_stops, num_calls / 2);
}

// Compares with transformers in float64. The error of a hidden state is about sqrt(roundings) times
// 2^-24 of its norm, with a factor of 4 for the amplification by layers. A class is the product of
// a hidden state and a row of the head.
class HeadGoldenTest : public ::testing::TestWithParam<const char*> {};

TEST_P(HeadGoldenTest, AgreesWithTheReference) {
  const std::string dir = Dir(std::string("heads/") + GetParam());
  std::ifstream file(dir + "/golden.json");
  const Json golden = Json::parse(file);
  LoadedModel model(dir, {.dtype = "f32"});
  const ModelConfig& config = model.config();
  EXPECT_EQ(model.weights().output.n(), 0);
  double gain = 0;
  for (const float g : model.weights().final_norm) gain = std::max(gain, std::abs(double{g}));
  const double tolerance =
      4 * 0x1p-24 * std::sqrt(9.0 * config.num_layers + 2) * std::sqrt(config.hidden_size) * gain;
  double worst = 0;
  const auto expect_near = [&](const Logits& got, const std::vector<double>& want, double limit) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      worst = std::max(worst, std::abs(got[i] - want[i]) / limit);
      EXPECT_NEAR(got[i], want[i], limit);
    }
  };
  for (const Json& prompt : golden["prompts"]) {
    const std::vector<int32_t> tokens = prompt["prompt_ids"];
    const std::vector<int32_t> blocks = Blocks(0, static_cast<int32_t>(tokens.size()));
    for (const auto& [pooling, key] :
         {std::pair(Pooling::kLast, "last"), std::pair(Pooling::kMean, "mean"),
          std::pair(Pooling::kCls, "cls")}) {
      ForwardContext context = model.context();
      context.pooling = pooling;
      ForwardPass pass(context, kLimits);
      pass.batch().AddRow(tokens, 0, blocks, false);
      pass.batch().embedded_rows.push_back(0);
      const bool classifies = prompt.contains("classes") && pooling == Pooling::kLast;
      if (classifies) pass.batch().classified_rows.push_back(0);
      const Outputs outputs = RunAll(&pass, config);
      expect_near(outputs.embeddings.at(0), prompt[key], tolerance);
      if (!classifies) continue;
      // The rows of the random heads have a norm of about 1.
      expect_near(outputs.classes.at(0), prompt["classes"], 3 * tolerance);
    }
  }
  std::printf("worst error %g of what is allowed\n", worst);
}

INSTANTIATE_TEST_SUITE_P(Models, HeadGoldenTest,
                         ::testing::Values("qwen3-classifier", "llama-reward", "qwen3-body",
                                           "mistral-classifier", "qwen2-classifier",
                                           "qwen2-reward"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(ForwardWorkspace, LogitsOfALongPromptNeedAFixedAmount) {
  const ModelConfig config = testing::Qwen3Shape();
  const ForwardLimits limits = {.max_tokens = 512};
  const size_t bytes = ForwardWorkspace::OutputBytes(config, DType::kBf16, limits);
  EXPECT_LE(bytes, size_t{64} << 20);
  EXPECT_GE(bytes, size_t{64} * 151936 * 4);
  // The result must not depend on the number of tokens of a pass.
  EXPECT_EQ(ForwardWorkspace::OutputBytes(config, DType::kBf16, {.max_tokens = 32768}), bytes);
  EXPECT_LE(bytes, ForwardWorkspace::Bytes(config, DType::kBf16, limits));
}

}  // namespace
}  // namespace skein
