#include "apps/model/model_init.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "apps/model/model_info.h"
#include "model/config/shapes.h"
#include "testing/shared.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ModelInitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() /
            ("skein_init_" + std::to_string(getpid()) +
             ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(root_);
    options_.shape = "tiny";
    options_.dir = (root_ / "model").string();
  }
  void TearDown() override { fs::remove_all(root_); }

  // Makes a tokenizer whose end-of-text token is `eos`, which its config spells `eos_json`.
  std::string MakeTokenizer(int eos, const std::string& eos_json) {
    fs::create_directories(root_ / "tokenizer");
    std::ofstream(root_ / "tokenizer/tokenizer.json")
        << R"({"model": {"vocab": {"a": 0, "b": 1}}, "added_tokens": [{"content": "<end>", "id": )"
        << eos << "}]}";
    // transformers writes this number for "no limit"; it does not fit 64 bits.
    std::ofstream(root_ / "tokenizer/tokenizer_config.json")
        << R"({"model_max_length": 1000000000000000019884624838656, "eos_token": )" << eos_json
        << "}";
    return (root_ / "tokenizer").string();
  }

  fs::path root_;
  ModelInitOptions options_;
};

TEST_F(ModelInitTest, EveryTinyShapeIsAWholeModel) {
  for (const ModelShape& shape : ModelShapes()) {
    if (!std::string(shape.name).starts_with("tiny")) continue;
    SCOPED_TRACE(shape.name);
    options_.shape = shape.name;
    options_.dir = (root_ / shape.name).string();
    options_.dtype = DType::kF32;
    const Result<ModelInitSummary> summary = InitModel(options_);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    const Result<ModelInfo> info = DescribeModel(options_.dir);
    ASSERT_TRUE(info.ok()) << info.status().message();
    EXPECT_THAT(info.value().problems, IsEmpty());
    EXPECT_EQ(info.value().weight_bytes, summary.value().weight_bytes);
    EXPECT_EQ(info.value().weight_bytes, summary.value().num_parameters * 4);
    EXPECT_TRUE(info.value().has_tokenizer && info.value().has_chat_template);
    EXPECT_EQ(info.value().compute_dtype, DType::kF32);
    EXPECT_EQ(info.value().config.vocab_size, 259);
    EXPECT_THAT(info.value().config.eos_token_ids, ElementsAre(258, 256));
  }
}

TEST_F(ModelInitTest, KeepsWhatIsThereUnlessForced) {
  options_.max_shard_bytes = 300'000;
  ASSERT_TRUE(InitModel(options_).ok());
  std::ofstream(fs::path(options_.dir) / "notes.txt") << "mine";
  options_.max_shard_bytes = 1 << 30;
  EXPECT_THAT(InitModel(options_).status().message(), HasSubstr("--force"));
  EXPECT_TRUE(fs::exists(options_.dir + "/model.safetensors.index.json"));
  options_.force = true;
  ASSERT_TRUE(InitModel(options_).ok());
  EXPECT_FALSE(fs::exists(options_.dir + "/model.safetensors.index.json"));  // no stale shards
  EXPECT_TRUE(fs::exists(options_.dir + "/notes.txt"));
  EXPECT_THAT(DescribeModel(options_.dir).value().problems, IsEmpty());
}

TEST_F(ModelInitTest, TakesVocabularyAndEndFromTheTokenizer) {
  for (const char* spelling : {R"("<end>")", R"({"content": "<end>", "special": true})"}) {
    options_.force = true;
    options_.tokenizer_dir = MakeTokenizer(41, spelling);
    ASSERT_TRUE(InitModel(options_).ok());
    const ModelInfo info = DescribeModel(options_.dir).value();
    EXPECT_EQ(info.config.vocab_size, 42);
    EXPECT_THAT(info.config.eos_token_ids, ElementsAre(41));
    EXPECT_FALSE(info.has_chat_template);
  }
}

TEST_F(ModelInitTest, RefusesATokenizerThatDoesNotFit) {
  options_.tokenizer_dir = MakeTokenizer(60000, R"("<end>")");
  options_.shape = "smollm2-135m";
  EXPECT_THAT(InitModel(options_).status().message(), HasSubstr("60001 tokens"));
  EXPECT_FALSE(fs::exists(options_.dir));
  std::ofstream(root_ / "tokenizer/tokenizer.json") << "{\"model\"";
  EXPECT_THAT(InitModel(options_).status().message(), HasSubstr("not valid JSON"));
  fs::remove(root_ / "tokenizer/tokenizer.json");
  EXPECT_EQ(InitModel(options_).status().code(), StatusCode::kNotFound);
}

TEST_F(ModelInitTest, CopiesARealTokenizer) {
  SKEIN_REQUIRE_SHARED();
  options_.tokenizer_dir = ::skein::testing::SharedDir() + "/tokenizers/qwen3";
  ASSERT_TRUE(InitModel(options_).ok());
  const ModelInfo info = DescribeModel(options_.dir).value();
  EXPECT_EQ(info.config.vocab_size, 151669);
  EXPECT_EQ(info.config.eos_token_ids.front(), 151645);
  EXPECT_TRUE(info.has_chat_template);
  EXPECT_EQ(fs::file_size(options_.dir + "/tokenizer.json"),
            fs::file_size(options_.tokenizer_dir + "/tokenizer.json"));
}

TEST_F(ModelInitTest, InfoNamesWeightsThatDoNotFit) {
  ASSERT_TRUE(InitModel(options_).ok());
  std::ifstream in(options_.dir + "/config.json");
  std::string config(std::istreambuf_iterator<char>(in), {});
  const std::string from = "\"intermediate_size\": 384";
  config.replace(config.find(from), from.size(), "\"intermediate_size\": 400");
  std::ofstream(options_.dir + "/config.json") << config;
  const ModelInfo info = DescribeModel(options_.dir).value();
  EXPECT_EQ(info.problems.size(), 12u);  // gate, up and down of four layers
  EXPECT_THAT(info.problems[0], HasSubstr("mlp.gate_proj.weight"));
  EXPECT_THAT(ToText(info), HasSubstr("PROBLEM"));
  EXPECT_EQ(ToJson(info)["problems"].size(), 12u);
}

// Experts in MXFP4 stay packed: 17 bytes for 32 numbers.
TEST(ModelInfoTest, MemoryCountsBlocksAsTheyStay) {
  const ModelInfo info = DescribeModel(SKEIN_SOURCE_DIR "/tests/data/models/gpt-oss-mxfp4").value();
  EXPECT_THAT(info.problems, IsEmpty());
  constexpr int64_t kLayers = 2, kExperts = 3, kNumbers = kLayers * kExperts * 3 * 64 * 64;
  const int64_t cache = info.kv_bytes_per_token * info.config.max_position;
  EXPECT_EQ(info.memory_bytes - cache,
            2 * (info.config.NumParameters() - kNumbers) + kNumbers / 32 * 17);
}

TEST_F(ModelInitTest, TakesTheFirstLayers) {
  options_.shape = "tiny-moe";
  options_.num_layers = 2;
  ASSERT_TRUE(InitModel(options_).ok());
  const ModelInfo info = DescribeModel(options_.dir).value();
  EXPECT_EQ(info.config.num_layers, 2);
  EXPECT_THAT(info.problems, ElementsAre());
  options_.force = true;
  options_.num_layers = 5;
  const Status status = InitModel(options_).status();
  EXPECT_EQ(status.param(), "layers");
  EXPECT_THAT(status.message(), HasSubstr("the shape tiny-moe has 4"));
}

TEST_F(ModelInitTest, MixturesWithASharedExpert) {
  options_.shape = "tiny-qwen3.5-moe";
  ASSERT_TRUE(InitModel(options_).ok());
  const ModelInfo info = DescribeModel(options_.dir).value();
  EXPECT_EQ(info.config.decoder.shared_expert_size, 160);
  EXPECT_THAT(info.problems, ElementsAre());
}

TEST_F(ModelInitTest, RefusesAnUnknownShape) {
  options_.shape = "huge";
  EXPECT_THAT(InitModel(options_).status().message(), HasSubstr("qwen3-0.6b"));
}

}  // namespace
}  // namespace skein
