#include "model/config/encoders/sparse_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace skein {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class SparseConfigTest : public ::testing::Test {
 protected:
  SparseConfigTest()
      : dir_(fs::temp_directory_path() /
             ("skein_sparse_" + std::to_string(getpid()) +
              ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(dir_ / "1_SpladePooling");
  }
  ~SparseConfigTest() override { fs::remove_all(dir_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name) << text;
  }
  void WriteModules(const std::string& before = "") {
    Write("modules.json", before + R"([{"idx": 0, "path": "", "type": "x.models.MLMTransformer"},
        {"idx": 1, "path": "1_SpladePooling", "type": "x.models.SpladePooling"}])");
  }
  Result<std::optional<SparseFields>> Load() { return LoadSparseFields(dir_.string()); }

  fs::path dir_;
};

TEST_F(SparseConfigTest, Poolings) {
  EXPECT_FALSE(Load().value()) << "no modules.json";
  WriteModules("\xef\xbb\xbf");
  EXPECT_THAT(Load().status().message(), HasSubstr("1_SpladePooling/config.json"));
  const auto load = [&](const std::string& config) {
    Write("1_SpladePooling/config.json", config);
    return Load().value().value();
  };
  EXPECT_FALSE(load("{}").sums);
  EXPECT_FALSE(load("{}").log_twice);
  EXPECT_FALSE(load("{}").documents_only);
  EXPECT_TRUE(load(R"({"pooling_strategy": "sum", "activation_function": "relu"})").sums);
  EXPECT_TRUE(
      load(R"({"pooling_strategy": "max", "activation_function": "log1p_relu"})").log_twice);
  const auto refused = [&](const std::string& config) {
    Write("1_SpladePooling/config.json", config);
    EXPECT_EQ(Load().status().code(), StatusCode::kUnsupported);
    return Load().status().message();
  };
  EXPECT_THAT(refused(R"({"pooling_strategy": "mean"})"), HasSubstr("supported are 'max' and"));
  EXPECT_THAT(refused(R"({"activation_function": "elu"})"), HasSubstr("supported are 'relu' and"));
}

TEST_F(SparseConfigTest, OtherModels) {
  for (const char* modules : {R"([{"type": "x.Transformer"}, {"type": "x.Pooling"}])", "[]", "{}",
                              "[5]", "[{}]", R"([{"type": 5}])", "no JSON"}) {
    Write("modules.json", modules);
    EXPECT_TRUE(Load().ok()) << modules;
    EXPECT_FALSE(Load().value()) << modules;
  }
}

TEST_F(SparseConfigTest, RoutersOfDocuments) {
  Write("modules.json", R"([{"path": "", "type": "sentence_transformers.models.Router"}])");
  fs::create_directories(dir_ / "document_1_SpladePooling");
  Write("document_1_SpladePooling/config.json", R"({"activation_function": "log1p_relu"})");
  const std::string types = R"("types": {"": "x.MLMTransformer", "q": "x.SparseStaticEmbedding",
      "document_1_SpladePooling": "x.SpladePooling"})";
  Write("router_config.json", "{" + types + R"(, "structure": {"query": ["q"],
      "document": ["", "document_1_SpladePooling"]}})");
  EXPECT_TRUE(Load().value()->log_twice);
  EXPECT_TRUE(Load().value()->documents_only);
  EXPECT_EQ(fs::path(Load().value()->query_dir).lexically_normal(), dir_ / "q");
  Write("router_config.json", "{" + types + R"(, "structure": {
      "query": ["", "document_1_SpladePooling"], "document": ["", "document_1_SpladePooling"]}})");
  EXPECT_FALSE(Load().value()->documents_only);
  EXPECT_EQ(Load().value()->query_dir, "");
  Write("router_config.json", "{" + types + R"(, "structure": {"query": ["q"]}})");
  EXPECT_FALSE(Load().value());
}

TEST_F(SparseConfigTest, TheHeadFollowsThePooling) {
  ModelConfig config;
  config.architecture = Architecture::kBert;
  config.head = Head::kNone;
  EXPECT_EQ(AdaptHead(Pooling::kSplade, &config).param(), "pooling");
  EXPECT_TRUE(AdaptHead(Pooling::kMean, &config).ok());
  config.encoder.predicts_masked = true;
  ASSERT_TRUE(AdaptHead(Pooling::kSplade, &config).ok());
  EXPECT_EQ(config.head, Head::kMaskedLanguageModel);
  EXPECT_EQ(config.ArchitectureName(), "BertForMaskedLM");
  config.encoder.sparse.sums = true;
  ASSERT_TRUE(AdaptHead(Pooling::kSplade, &config).ok());
  EXPECT_TRUE(config.encoder.sparse.sums) << "that of the files";
  ASSERT_TRUE(AdaptHead(Pooling::kCls, &config).ok());
  EXPECT_EQ(config.head, Head::kNone);
  config.architecture = Architecture::kDebertaV2;
  EXPECT_EQ(AdaptHead(Pooling::kSplade, &config).code(), StatusCode::kUnsupported);
  config.architecture = Architecture::kMpnet;
  EXPECT_THAT(AdaptHead(Pooling::kSplade, &config).message(),
              HasSubstr("for the head of MPNetModel"));
}

}  // namespace
}  // namespace skein
