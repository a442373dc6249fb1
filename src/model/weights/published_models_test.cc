// The configs of published models (tests/data/published_models.json). Each one is read and, scaled
// down, loaded with random weights and run. Or it is refused, and the refusal says what is
// supported.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "model/weights/random_model.h"
#include "testing/loaded_model.h"

namespace skein {
namespace {

using Json = nlohmann::json;

const Json& PublishedModels() {
  static const Json kModels = [] {
    std::ifstream file(SKEIN_SOURCE_DIR "/tests/data/published_models.json");
    return Json::parse(file)["models"];
  }();
  return kModels;
}

void SetIfThere(Json& config, const char* key, const Json& value) {
  if (config.contains(key)) config[key] = value;
}

// Cuts a list that has an entry for each layer.
void CutIfThere(Json& config, const char* key, size_t size) {
  if (config.contains(key)) config[key].erase(config[key].begin() + size, config[key].end());
}

// The config of a small model of the same architecture: 4 layers, and heads of 16 elements.
Json ScaledDown(Json config) {
  if (config.contains("text_config")) {
    config["text_config"] = ScaledDown(config["text_config"]);
    return config;
  }
  constexpr int kLayers = 4, kHeads = 4, kHeadDim = 16, kVocab = 127, kContext = 128;
  const int64_t heads = config.value("num_attention_heads", int64_t{1});
  const int64_t kv_heads = config.value("num_key_value_heads", heads);
  for (const char* key : {"hidden_size", "dim", "n_embd"})
    SetIfThere(config, key, kHeads * kHeadDim);
  for (const char* key : {"intermediate_size", "hidden_dim", "n_inner"})
    SetIfThere(config, key, 80);
  for (const char* key : {"num_hidden_layers", "n_layers", "n_layer"})
    SetIfThere(config, key, kLayers);
  for (const char* key : {"num_attention_heads", "n_heads", "n_head"})
    SetIfThere(config, key, kHeads);
  SetIfThere(config, "num_key_value_heads", std::max<int64_t>(kHeads * kv_heads / heads, 1));
  SetIfThere(config, "head_dim", kHeadDim);
  SetIfThere(config, "moe_intermediate_size", 32);
  SetIfThere(config, "shared_expert_intermediate_size", 24);
  SetIfThere(config, "num_experts", 8);
  SetIfThere(config, "num_local_experts", 8);
  SetIfThere(config, "num_experts_per_tok", 2);
  for (const char* key : {"max_position_embeddings", "n_positions"}) {
    SetIfThere(config, key, kContext);
  }
  SetIfThere(config, "original_max_position_embeddings", kContext / 2);
  SetIfThere(config, "position_buckets", 32);
  SetIfThere(config, "pooler_hidden_size", kHeads * kHeadDim);
  SetIfThere(config, "linear_num_key_heads", 2);
  SetIfThere(config, "linear_num_value_heads", 4);
  SetIfThere(config, "linear_key_head_dim", kHeadDim);
  SetIfThere(config, "linear_value_head_dim", 32);
  CutIfThere(config, "layer_types", kLayers);
  CutIfThere(config, "no_rope_layers", kLayers);
  const double part = config.value("partial_rotary_factor", 1.0);
  for (const char* key : {"short_factor", "long_factor"}) {
    if (!config.contains("rope_scaling") || !config["rope_scaling"].contains(key)) continue;
    config["rope_scaling"][key] = std::vector<double>(static_cast<size_t>(kHeadDim * part / 2), 2);
  }
  for (const char* key : {"sliding_window", "local_attention"}) {
    if (config.contains(key) && !config[key].is_null()) config[key] = 24;
  }
  // Without these members, the model would have the library's own sizes, which are large.
  if (config.value("model_type", "") == "gemma3_text") {
    config["num_attention_heads"] = kHeads;
    config["num_key_value_heads"] = 1;
    config["head_dim"] = kHeadDim;
    config["max_position_embeddings"] = kContext;
  }
  config["vocab_size"] = kVocab;
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    const Json ids = config.contains(key) ? config[key] : Json();
    if (ids.is_array() || (ids.is_number() && ids >= kVocab)) config.erase(key);
  }
  return config;
}

class PublishedModelTest : public ::testing::TestWithParam<size_t> {
 protected:
  const Json& model() const { return PublishedModels()[GetParam()]; }
};

TEST_P(PublishedModelTest, IsReadOrRefusedByName) {
  SCOPED_TRACE(model()["name"].get<std::string>());
  const Result<ModelConfig> config = ParseModelConfig(model()["config"].dump());
  if (model().contains("refused")) {
    ASSERT_FALSE(config.ok());
    const Status status = config.status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_EQ(status.param(), model()["refused"].get<std::string>());
    const auto architecture = model()["config"]["architectures"][0].get<std::string>();
    EXPECT_NE(status.message().find(architecture), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("supported are LlamaForCausalLM"), std::string::npos);
    return;
  }
  if (model().contains("unsupported")) {  // a member of an architecture that is known
    ASSERT_FALSE(config.ok());
    EXPECT_EQ(config.status().code(), StatusCode::kUnsupported);
    EXPECT_EQ(config.status().param(), model()["unsupported"].get<std::string>());
    return;
  }
  ASSERT_TRUE(config.ok()) << config.status().message();
  if (model().contains("parameters")) {
    EXPECT_EQ(config.value().NumParameters(), model()["parameters"].get<int64_t>());
  }
}

TEST_P(PublishedModelTest, RunsScaledDown) {
  if (model().contains("refused") || model().contains("unsupported")) GTEST_SKIP() << "refused";
  SCOPED_TRACE(model()["name"].get<std::string>());
  const std::string dir =
      std::filesystem::temp_directory_path() / ("skein_published_" + std::to_string(getpid()));
  std::filesystem::create_directories(dir);
  std::ofstream(dir + "/config.json") << ScaledDown(model()["config"]).dump();
  const Result<ModelConfig> config = LoadModelConfig(dir);
  ASSERT_TRUE(config.ok()) << config.status().message();
  ThreadTeam team(1);
  const Status written =
      WriteRandomWeights(config.value(), {.dtype = DType::kF32, .seed = 3}, dir, &team, {});
  ASSERT_TRUE(written.ok()) << written.message();
  const testing::LoadedModel loaded(dir, {.dtype = "f32"});
  std::filesystem::remove_all(dir);
  const std::vector<int32_t> tokens = {3, 1, 4, 1, 5, 9, 2, 6};
  const std::vector<int32_t> blocks = testing::Blocks(0, 8);
  ForwardPass pass(loaded.context(), {.max_tokens = 8});
  pass.batch().AddRow(tokens, 0, blocks, loaded.config().head == Head::kLanguageModel);
  if (loaded.config().head == Head::kNone) pass.batch().embedded_rows = {0};
  if (loaded.config().head == Head::kClassifier) pass.batch().classified_rows = {0};
  int num_outputs = 0;
  pass.Begin();
  while (pass.Run(nullptr) != ForwardStatus::kDone) {
    ++num_outputs;
    EXPECT_TRUE(std::isfinite(pass.output(0)[0]));
    EXPECT_NE(pass.output(0)[0], 0);
  }
  EXPECT_EQ(num_outputs, 1);
}

INSTANTIATE_TEST_SUITE_P(Models, PublishedModelTest,
                         ::testing::Range(size_t{0}, PublishedModels().size()));

}  // namespace
}  // namespace skein
