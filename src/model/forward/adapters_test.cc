// Adapters in a batch. The bits of a row depend only on its own adapter. The answers are those of a
// model with the adapter merged into its weights.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "io/safetensors_writer.h"
#include "model/weights/lora_weights.h"
#include "testing/isas.h"
#include "testing/loaded_model.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using testing::Blocks;
using testing::LoadedModel;
using testing::Logits;

const char kModelDir[] = SKEIN_SOURCE_DIR "/tests/data/models/llama-default";
constexpr int32_t kAdapterTokens = 45;  // of a sequence: more than a tile, less than two blocks
constexpr int32_t kRank = 5;

using Tensors = std::map<std::string, std::pair<std::vector<int64_t>, std::vector<float>>>;

void Write(const fs::path& dir, const Tensors& tensors) {
  std::vector<TensorSpec> specs;
  for (const auto& [name, tensor] : tensors) specs.push_back({name, DType::kF32, tensor.first});
  SafetensorsWriter writer = SafetensorsWriter::Create(dir, specs, 1 << 30).value();
  size_t i = 0;
  for (const auto& [name, tensor] : tensors) {
    ASSERT_TRUE(writer.Write(i++, 0, std::as_bytes(std::span(tensor.second))).ok());
  }
  ASSERT_TRUE(writer.Close().ok());
}

const std::vector<std::string> kAllModules = {"q_proj",    "k_proj",    "v_proj",    "o_proj",
                                              "gate_proj", "up_proj",   "down_proj", "in_proj_qkv",
                                              "in_proj_z", "in_proj_b", "in_proj_a", "out_proj"};

// Writes an adapter with these tensors in the layout of PEFT.
void WriteAdapter(const fs::path& dir, const Tensors& tensors, int32_t rank,
                  const std::vector<std::string>& modules) {
  fs::create_directories(dir);
  Write(dir, tensors);
  fs::rename(dir / "model.safetensors", dir / "adapter_model.safetensors");
  std::ofstream config(dir / "adapter_config.json");
  config << R"({"r": )" << rank << R"(, "lora_alpha": 10, "target_modules": [)";
  for (size_t i = 0; i < modules.size(); ++i)
    config << (i > 0 ? ", \"" : "\"") << modules[i] << '"';
  config << "]}";
}

class AdaptersTest : public ::testing::TestWithParam<std::tuple<const char*, const char*, Isa>> {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() /
           ("skein_adapters_" + std::to_string(getpid()) + "_" + std::to_string(random_()));
    const auto& [name, dtype, isa] = GetParam();
    model_dir_ = std::string(SKEIN_SOURCE_DIR "/tests/data/models/") + name;
    model_ = std::make_unique<LoadedModel>(
        model_dir_, LoadedModel::Options{.dtype = dtype, .isa = isa, .threads = 2});
    for (const std::vector<std::string>& modules :
         {kAllModules, {"v_proj", "out_proj"}, {"gate_proj", "down_proj"}}) {
      adapters_.push_back(Load(modules, 1));
    }
    tokens_.resize(kAdapterTokens);
    for (int32_t& token : tokens_) token = static_cast<int32_t>(random_() % model_->vocab());
  }
  void TearDown() override { fs::remove_all(dir_); }

  // Makes and loads an adapter for those of `modules` that the model has, in every layer. Its
  // numbers are normally distributed, times `size`.
  LoraWeights Load(const std::vector<std::string>& modules, float size) {
    std::normal_distribution<float> normal(0, 0.2f * size);
    const auto draw = [&](int64_t rows, int64_t columns) {
      std::vector<float> values(rows * columns);
      for (float& v : values) v = normal(random_);
      return std::pair(std::vector<int64_t>{rows, columns}, values);
    };
    const ModelFiles files = ModelFiles::Open(model_dir_).value();
    Tensors tensors;
    std::set<std::string> found;
    for (const std::string& name : files.Names()) {
      const std::string path = name.substr(0, name.rfind('.'));
      const std::string module = path.substr(path.rfind('.') + 1);
      if (std::ranges::find(modules, module) == modules.end()) continue;
      found.insert(module);
      const std::vector<int64_t> shape = files.Find(name).value().shape;
      tensors["base_model.model." + path + ".lora_A.weight"] = draw(kRank, shape[1]);
      tensors["base_model.model." + path + ".lora_B.weight"] = draw(shape[0], kRank);
    }
    adapter_dir_ = dir_ / std::to_string(adapters_.size());
    WriteAdapter(adapter_dir_, tensors, kRank, {found.begin(), found.end()});
    const LoraAdapter adapter = LoraAdapter::Open(adapter_dir_).value();
    return LoadLoraWeights(adapter, model_->config(), model_->weights().dtype).value();
  }

  std::unique_ptr<ForwardPass> Pass(int32_t chunk_tokens = 0) {
    ForwardContext context = model_->context();
    context.adapters = &adapters_;
    return std::make_unique<ForwardPass>(
        context, ForwardLimits{.max_tokens = 256, .chunk_tokens = chunk_tokens});
  }
  // The logits after tokens [begin, end) of the sequence, computed alone.
  std::vector<Logits> Alone(ForwardPass& pass, int32_t adapter, int32_t begin, int32_t end,
                            int32_t first_block = 0) {
    ForwardBatch& batch = pass.batch();
    batch.Clear();
    const std::vector<int32_t> blocks = Blocks(first_block, kAdapterTokens);
    batch.AddRow(std::span(tokens_).subspan(begin, end - begin), begin, blocks, false);
    batch.rows.back().adapter = adapter;
    for (int32_t i = 0; i < end - begin; ++i) batch.logit_tokens.push_back(i);
    return testing::RunPass(&pass, model_->vocab());
  }

  static void ExpectSame(const std::vector<Logits>& a, const std::vector<Logits>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) ASSERT_TRUE(testing::SameBits(a[i], b[i])) << i;
  }

  std::mt19937_64 random_{7};
  fs::path dir_, adapter_dir_;
  std::unique_ptr<LoadedModel> model_;
  std::string model_dir_;
  std::vector<LoraWeights> adapters_;
  std::vector<int32_t> tokens_;
};

TEST_P(AdaptersTest, RowsOfOneBatchHaveTheBitsOfEachAlone) {
  const auto pass = Pass();
  std::vector<std::vector<Logits>> alone;
  for (int32_t adapter = 0; adapter <= 3; ++adapter) {
    alone.push_back(Alone(*pass, adapter, 0, kAdapterTokens));
    for (int32_t other = 0; other < adapter; ++other) {
      EXPECT_FALSE(testing::SameBits(alone[other].back(), alone[adapter].back()));
    }
  }
  ForwardBatch& batch = pass->batch();
  batch.Clear();
  std::vector<std::vector<int32_t>> blocks;
  for (int32_t i = 0; i < 5; ++i) blocks.push_back(Blocks(10 + 2 * i, kAdapterTokens));
  for (int32_t i = 0; i < 5; ++i) {
    const int32_t first = batch.num_tokens();
    batch.AddRow(tokens_, 0, blocks[i], false);
    batch.rows.back().adapter = (i * 3) % 4;
    for (int32_t t = 0; t < kAdapterTokens; ++t) batch.logit_tokens.push_back(first + t);
  }
  const std::vector<Logits> all = testing::RunPass(pass.get(), model_->vocab());
  for (int32_t i = 0; i < 5; ++i) {
    const auto begin = all.begin() + i * kAdapterTokens;
    ExpectSame({begin, begin + kAdapterTokens}, alone[(i * 3) % 4]);
  }
}

TEST_P(AdaptersTest, ChunksHaveTheSameBits) {
  const auto pass = Pass();
  const auto hybrid = Pass(/*chunk_tokens=*/16);
  const std::vector<Logits> whole = Alone(*pass, 1, 0, kAdapterTokens);
  ExpectSame(Alone(*hybrid, 1, 0, kAdapterTokens), whole);
  if (model_->config().has_linear_layers()) return;  // the cuts below keep no states
  std::vector<Logits> cut;
  for (int32_t begin = 0; begin < kAdapterTokens; begin += 13) {
    const std::vector<Logits> part =
        Alone(*pass, 1, begin, std::min(begin + 13, kAdapterTokens), /*first_block=*/20);
    cut.insert(cut.end(), part.begin(), part.end());
  }
  ExpectSame(cut, whole);
}

TEST_P(AdaptersTest, AnAdapterOfZerosChangesNoBit) {
  adapters_.push_back(Load(kAllModules, 0));
  const auto pass = Pass();
  ExpectSame(Alone(*pass, 4, 0, kAdapterTokens), Alone(*pass, 0, 0, kAdapterTokens));
}

// Only in f32, since merged weights of bf16 would be rounded.
class MergedAdapterTest : public AdaptersTest {};

TEST_P(MergedAdapterTest, AnswersAreThoseOfTheMergedModel) {
  adapters_.clear();
  adapters_.push_back(Load(kAllModules, 0.25f));
  const LoraAdapter adapter = LoraAdapter::Open(adapter_dir_).value();
  const ModelFiles files = ModelFiles::Open(model_dir_).value();
  Tensors merged;
  for (const std::string& name : files.Names()) {
    const TensorView view = files.Find(name).value();
    std::vector<float> values(view.bytes / sizeof(float));
    std::memcpy(values.data(), view.data, view.bytes);
    if (adapter.Find(name) != nullptr) adapter.AddTo(name, 0, view.shape[0], values.data());
    merged[name] = {view.shape, values};
  }
  const fs::path merged_dir = dir_ / "merged";
  fs::create_directories(merged_dir);
  fs::copy(fs::path(model_dir_) / "config.json", merged_dir / "config.json");
  Write(merged_dir, merged);
  LoadedModel merged_model(merged_dir, {.dtype = "f32", .isa = std::get<2>(GetParam())});
  ForwardPass merged_pass(merged_model.context(), ForwardLimits{.max_tokens = 256});
  const std::vector<Logits> want = testing::RunAlone(&merged_pass, tokens_, 0, kAdapterTokens,
                                                     Blocks(0, kAdapterTokens), model_->vocab());
  const auto pass = Pass();
  const std::vector<Logits> got = Alone(*pass, 1, 0, kAdapterTokens);
  const std::vector<Logits> base = Alone(*pass, 0, 0, kAdapterTokens);
  double error = 0, change = 0, size = 0;
  for (int32_t i = 0; i < kAdapterTokens; ++i) {
    for (int32_t v = 0; v < model_->vocab(); ++v) {
      error = std::max(error, std::abs(double{got[i][v]} - want[i][v]));
      change = std::max(change, std::abs(double{got[i][v]} - base[i][v]));
      size = std::max(size, std::abs(double{want[i][v]}));
    }
  }
  EXPECT_GT(change, 0.01 * size);
  // Both sides round each of some hundred f32 sums in different orders, layer after layer.
  EXPECT_LT(error, 1e-4 * size);
}

TEST(LoraWeights, RefusesAMatrixThatTheModelLacks) {
  const fs::path dir = fs::temp_directory_path() / ("skein_lora_" + std::to_string(getpid()));
  const std::string name = "base_model.model.model.layers.99.self_attn.q_proj";
  WriteAdapter(dir,
               {{name + ".lora_A.weight", {{1, 4}, std::vector<float>(4)}},
                {name + ".lora_B.weight", {{4, 1}, std::vector<float>(4)}}},
               1, {"q_proj"});
  const LoraAdapter adapter = LoraAdapter::Open(dir).value();
  const auto weights = LoadLoraWeights(adapter, LoadModelConfig(kModelDir).value(), DType::kF32);
  fs::remove_all(dir);
  ASSERT_FALSE(weights.ok());
  EXPECT_NE(weights.status().message().find("model.layers.99"), std::string::npos);
}

// Gemma's gate has another activation; OLMo 2 norms what a product gives; Qwen3.5 has linear layers
// and gates of attention.
constexpr const char* kModels[] = {"llama-default", "gemma3", "olmo2", "qwen3.5"};
INSTANTIATE_TEST_SUITE_P(Isas, MergedAdapterTest,
                         ::testing::Combine(::testing::ValuesIn(kModels), ::testing::Values("f32"),
                                            ::testing::ValuesIn(testing::VectorIsas())));
INSTANTIATE_TEST_SUITE_P(Isas, AdaptersTest,
                         ::testing::Combine(::testing::ValuesIn(kModels),
                                            ::testing::Values("f32", "bf16"),
                                            ::testing::ValuesIn(testing::VectorIsas())));

}  // namespace
}  // namespace skein
