#include "model/config/encoders/colbert_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace skein {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ColbertConfigTest : public ::testing::Test {
 protected:
  ColbertConfigTest()
      : dir_(fs::temp_directory_path() /
             ("skein_colbert_" + std::to_string(getpid()) +
              ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(dir_ / "2_MultiVectorMask");
    Write("config.json", R"({"architectures": ["BertModel"]})");
  }
  ~ColbertConfigTest() override { fs::remove_all(dir_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name) << text;
  }
  Result<std::optional<ColbertConfig>> Load() { return LoadColbertConfig(dir_.string()); }

  fs::path dir_;
};

TEST_F(ColbertConfigTest, OtherModels) {
  EXPECT_FALSE(Load().value());
  Write("config_sentence_transformers.json", R"({"model_type": "SentenceTransformer"})");
  EXPECT_FALSE(Load().value());
  Write("config_sentence_transformers.json", "no JSON");
  EXPECT_FALSE(Load().value());
}

TEST_F(ColbertConfigTest, Stanford) {
  Write("config.json", R"({"architectures": ["HF_ColBERT"]})");
  ColbertConfig colbert = Load().value().value();
  EXPECT_EQ(colbert.query_marker, "[unused0]");
  EXPECT_EQ(colbert.document_marker, "[unused1]");
  EXPECT_EQ(colbert.expansion_length, 32);
  EXPECT_EQ(colbert.query_length, 32);
  EXPECT_EQ(colbert.document_length, 0);
  EXPECT_FALSE(colbert.attends_to_expansion);
  EXPECT_EQ(colbert.skipped_tokens.size(), 32u);
  Write("artifact.metadata", R"({"query_maxlen": 48, "doc_maxlen": 300, "query_token_id": "[Q]",
      "mask_punctuation": false, "attend_to_mask_tokens": true, "nranks": 4})");
  colbert = Load().value().value();
  EXPECT_EQ(colbert.query_marker, "[Q]");
  EXPECT_EQ(colbert.expansion_length, 48);
  EXPECT_EQ(colbert.document_length, 300);
  EXPECT_TRUE(colbert.attends_to_expansion);
  EXPECT_TRUE(colbert.skipped_tokens.empty());
  Write("artifact.metadata", R"({"query_maxlen": 0})");
  EXPECT_THAT(Load().status().message(), HasSubstr("'query_maxlen' is 0"));
}

TEST_F(ColbertConfigTest, Pylate) {
  Write("config_sentence_transformers.json", R"({"model_type": "ColBERT", "query_prefix": "[Q] ",
      "document_prefix": "[D] ", "query_length": 48, "document_length": 519,
      "attend_to_expansion_tokens": true, "skiplist_words": ["!", "?"]})");
  ColbertConfig colbert = Load().value().value();
  EXPECT_EQ(colbert.query_marker, "[Q] ");
  EXPECT_EQ(colbert.document_marker, "[D] ");
  EXPECT_EQ(colbert.expansion_length, 48);
  EXPECT_EQ(colbert.document_length, 519);
  EXPECT_TRUE(colbert.attends_to_expansion);
  EXPECT_THAT(colbert.skipped_tokens, ElementsAre("!", "?"));
  Write("config_sentence_transformers.json",
        R"({"model_type": "ColBERT", "query_length": 48, "do_query_expansion": false})");
  colbert = Load().value().value();
  EXPECT_EQ(colbert.expansion_length, 0);
  EXPECT_EQ(colbert.query_length, 48);
  EXPECT_EQ(colbert.query_marker, "");
  EXPECT_EQ(colbert.skipped_tokens.size(), 32u) << "PyLate's default";
  Write("config_sentence_transformers.json",
        R"({"query_prefix": "[Q] ", "query_length": 32, "document_length": 300})");
  EXPECT_EQ(Load().value()->document_length, 300) << "an earlier version";
}

TEST_F(ColbertConfigTest, SentenceTransformers) {
  Write("config_sentence_transformers.json", R"({"model_type": "MultiVectorEncoder"})");
  EXPECT_EQ(Load().value()->expansion_length, 0);
  EXPECT_TRUE(Load().value()->skipped_tokens.empty());
  Write("modules.json", R"([{"path": "2_MultiVectorMask", "type": "x.MultiVectorMask"}])");
  Write("2_MultiVectorMask/config.json", R"({"skiplist_words": [","],
      "skiplist_tasks": ["document"], "keep_only_token_ids": null})");
  Write("sentence_bert_config.json", R"({"document_length": 70, "query_length": 30,
      "query_expansion": {"strategy": "min", "attend": true, "token": "[PAD]", "length": 20}})");
  const ColbertConfig colbert = Load().value().value();
  EXPECT_EQ(colbert.expansion_length, 20);
  EXPECT_EQ(colbert.query_length, 30);
  EXPECT_EQ(colbert.document_length, 70);
  EXPECT_EQ(colbert.expansion_token, "[PAD]");
  EXPECT_TRUE(colbert.attends_to_expansion);
  EXPECT_THAT(colbert.skipped_tokens, ElementsAre(","));
  Write("sentence_bert_config.json", R"({"query_expansion": {"strategy": "fixed", "length": 20}})");
  EXPECT_EQ(Load().value()->query_length, 20);
  Write("sentence_bert_config.json", R"({"query_expansion": {"strategy": "all", "length": 20}})");
  EXPECT_THAT(Load().status().message(), HasSubstr("'strategy' is 'all'"));
  Write("sentence_bert_config.json", "{}");
  Write("2_MultiVectorMask/config.json", R"({"skiplist_tasks": ["query"]})");
  EXPECT_EQ(Load().status().param(), "skiplist_tasks");
  Write("2_MultiVectorMask/config.json", R"({"keep_only_token_ids": [5]})");
  EXPECT_EQ(Load().status().param(), "keep_only_token_ids");
}

TEST_F(ColbertConfigTest, OnlyEncodersWithoutAHead) {
  ModelConfig config;
  config.architecture = Architecture::kModernBert;
  config.head = Head::kNone;
  ASSERT_TRUE(UseTokenVectors(dir_.string(), &config).ok());
  EXPECT_EQ(config.head, Head::kTokenVectors);
  EXPECT_EQ(config.encoder.token_width, 0);
  EXPECT_EQ(config.ArchitectureName(), "ModernBertModel");
  for (const Architecture architecture : {Architecture::kQwen3, Architecture::kDebertaV2}) {
    config.architecture = architecture;
    config.head = Head::kNone;
    EXPECT_EQ(UseTokenVectors(dir_.string(), &config).code(), StatusCode::kUnsupported);
  }
}

}  // namespace
}  // namespace skein
