#include "apps/host/model_traits.h"

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
using ::testing::IsEmpty;
using ::testing::Pair;

class ModelTraitsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() /
           ("skein_traits_" + std::to_string(getpid()) +
            ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(dir_);
    config_.architecture = Architecture::kBert;
    config_.head = Head::kNone;
    config_.hidden_size = 384;
  }
  void TearDown() override { fs::remove_all(dir_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name) << text;
  }
  Result<ModelUse> Load(const std::string& name = "some-model") {
    return LoadModelTraits(dir_.string(), name, config_);
  }

  fs::path dir_;
  ModelConfig config_;
};

TEST_F(ModelTraitsTest, ABareEncoderEmbeds) {
  Write("config.json", "{}");
  const ModelTraits traits = Load()->traits;
  EXPECT_TRUE(traits.embeds);
  EXPECT_FALSE(traits.generates);
  EXPECT_FALSE(traits.classifies);
  EXPECT_EQ(traits.embedding_size, 384);
  EXPECT_TRUE(traits.normalizes);
  EXPECT_FALSE(traits.any_dimensions);
  EXPECT_THAT(traits.matryoshka_dimensions, IsEmpty());
}

TEST_F(ModelTraitsTest, SentenceTransformersFiles) {
  Write("config.json", R"({"matryoshka_dimensions": [256, 64]})");
  Write("modules.json", R"([{"idx": 0, "type": "sentence_transformers.models.Transformer"},
                            {"idx": 1, "type": "sentence_transformers.models.Pooling"}])");
  Write("config_sentence_transformers.json",
        R"({"prompts": {"query": "query: ", "document": ""}, "default_prompt_name": "query"})");
  Write("sentence_bert_config.json", R"({"max_seq_length": 256, "do_lower_case": false})");
  const ModelUse use = Load().value();
  EXPECT_FALSE(use.traits.normalizes) << "no Normalize among the modules";
  EXPECT_THAT(use.traits.matryoshka_dimensions, ElementsAre(64, 256));
  EXPECT_THAT(use.traits.prompts, ElementsAre(Pair("document", ""), Pair("query", "query: ")));
  EXPECT_EQ(use.traits.default_prompt, "query");
  EXPECT_EQ(use.max_seq_length, 256);
  Write("sentence_bert_config.json", R"({"max_seq_length": 1000000000000000019884624838656})");
  EXPECT_EQ(Load().value().max_seq_length, 0) << "no limit";
  Write("modules.json", R"([{"type": "sentence_transformers.models.Normalize"}])");
  EXPECT_TRUE(Load()->traits.normalizes);
}

TEST_F(ModelTraitsTest, RefusesWhatItWouldLeaveOut) {
  Write("config.json", "{}");
  Write("modules.json", R"([{"type": "sentence_transformers.models.CNN"}])");
  EXPECT_EQ(Load().status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(Load().status().message(), HasSubstr("models.CNN"));
  Write("modules.json", "[]");
  Write("sentence_bert_config.json", R"({"do_lower_case": true})");
  EXPECT_EQ(Load().status().code(), StatusCode::kUnsupported);
  Write("sentence_bert_config.json", R"({"max_seq_length": 0})");
  EXPECT_THAT(Load().status().message(), HasSubstr("'max_seq_length' is 0"));
  Write("sentence_bert_config.json", "{}");
  Write("config_sentence_transformers.json",
        R"({"prompts": {"query": "q"}, "default_prompt_name": "document"})");
  EXPECT_THAT(Load().status().message(), HasSubstr("'default_prompt_name' is \"document\""));
  Write("config_sentence_transformers.json", "[1]");
  EXPECT_THAT(Load().status().message(), HasSubstr("is not a JSON object"));
}

TEST_F(ModelTraitsTest, DenseModulesBehindThePooling) {
  Write("config.json", "{}");
  const std::string before = R"([{"type": "sentence_transformers.models.Transformer"},
      {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},)";
  const std::string dense = R"({"type": "sentence_transformers.models.Dense", "path": "2_Dense"})";
  const std::string normalize = R"({"type": "sentence_transformers.models.Normalize"})";
  fs::create_directories(dir_ / "2_Dense");
  const auto write_dense = [&](const std::string& members) {
    Write("2_Dense/config.json", R"({"in_features": 384, "out_features": 96)" + members + "}");
  };
  Write("modules.json", before + dense + "," + normalize + "]");
  write_dense("");
  const ModelUse use = Load().value();
  EXPECT_EQ(use.traits.embedding_size, 96);
  EXPECT_TRUE(use.traits.normalizes);
  ASSERT_EQ(use.dense.size(), 1u);
  EXPECT_EQ(use.dense[0].in_features, 384);
  EXPECT_TRUE(use.dense[0].has_bias);
  EXPECT_EQ(use.dense[0].activation, Activation::kTanh) << "the library's default";
  write_dense(R"(, "bias": false, "activation_function": "torch.nn.modules.linear.Identity")");
  EXPECT_FALSE(Load()->dense[0].has_bias);
  EXPECT_EQ(Load()->dense[0].activation, Activation::kNone);

  const auto expect_refused = [&](const std::string& part) {
    EXPECT_FALSE(Load().ok());
    EXPECT_THAT(Load().status().message(), HasSubstr(part));
  };
  write_dense(R"(, "activation_function": "torch.nn.modules.activation.Mish")");
  expect_refused("activation.Mish'; supported are");
  write_dense(R"(, "use_residual": true)");
  expect_refused("'use_residual' is true");
  write_dense(R"(, "module_input_name": "token_embeddings")");
  expect_refused("'module_input_name' is 'token_embeddings'");
  write_dense("");
  Write("modules.json", before + dense + "," + dense + "]");
  expect_refused("'in_features' is 384; the modules before it give 96");
  Write("modules.json", before + normalize + "," + dense + "]");
  expect_refused("in this order");
  Write("modules.json", before + R"({"type": "Dense"}])");
  expect_refused("a Dense module without a 'path'");
  Write("modules.json", before + R"({"type": "Dense", "path": "3_Dense"}])");
  expect_refused("3_Dense/config.json");
}

TEST_F(ModelTraitsTest, PoolingByOption) {
  Write("config.json", "{}");
  fs::create_directories(dir_ / "1_Pooling");
  Write("1_Pooling/config.json", R"({"pooling_mode": "mean"})");
  EXPECT_EQ(Load()->pooling, Pooling::kMean);
  const auto load = [&](Pooling pooling) {
    return LoadModelTraits(dir_.string(), "some-model", config_, pooling);
  };
  EXPECT_EQ(load(Pooling::kCls)->pooling, Pooling::kCls);
  // With a pooling alone, a language model gives embeddings, and can still generate.
  config_.architecture = Architecture::kLlama;
  config_.head = Head::kLanguageModel;
  EXPECT_FALSE(Load()->traits.embeds);
  const ModelUse use = load(Pooling::kLast).value();
  EXPECT_TRUE(use.traits.embeds);
  EXPECT_TRUE(use.traits.generates);
  EXPECT_EQ(use.traits.embedding_size, 384);
  EXPECT_EQ(use.pooling, Pooling::kLast);
  config_.head = Head::kClassifier;
  EXPECT_EQ(load(Pooling::kLast).status().param(), "pooling");
}

TEST_F(ModelTraitsTest, Splade) {
  Write("config.json", "{}");
  Write("modules.json", R"([{"type": "sentence_transformers.sparse_encoder.models.MLMTransformer"},
      {"type": "sentence_transformers.sparse_encoder.models.SpladePooling", "path": "1_Splade"}])");
  config_.vocab_size = 30522;
  EXPECT_THAT(Load().status().message(), HasSubstr("MLMTransformer' is not supported"));
  config_.encoder.predicts_masked = true;
  const auto load = [&](Pooling pooling) {
    return LoadModelTraits(dir_.string(), "some-model", config_, pooling);
  };
  config_.head = Head::kMaskedLanguageModel;
  const ModelUse use = Load().value();
  EXPECT_EQ(use.pooling, Pooling::kSplade);
  EXPECT_TRUE(use.traits.embeds);
  EXPECT_FALSE(use.traits.normalizes);
  ASSERT_TRUE(use.traits.sparse);
  EXPECT_FALSE(use.traits.sparse->documents_only);
  EXPECT_EQ(use.traits.embedding_size, 30522);
  config_.encoder.sparse.documents_only = true;
  EXPECT_TRUE(Load()->traits.sparse->documents_only);
  EXPECT_FALSE(load(Pooling::kMean)->traits.sparse);
  EXPECT_EQ(load(Pooling::kMean)->traits.embedding_size, 384);
  // By the option alone.
  fs::remove(dir_ / "modules.json");
  config_.head = Head::kNone;
  EXPECT_FALSE(Load()->traits.sparse);
  EXPECT_TRUE(load(Pooling::kSplade)->traits.sparse);
  EXPECT_FALSE(load(Pooling::kSplade)->traits.normalizes);
  config_.encoder.predicts_masked = false;
  EXPECT_THAT(load(Pooling::kSplade).status().message(), HasSubstr("the model is a BertModel"));
}

TEST_F(ModelTraitsTest, RerankTemplate) {
  config_.architecture = Architecture::kQwen2;
  config_.head = Head::kLanguageModel;
  Write("config.json", "{}");
  ModelTraits traits = Load("some-chat")->traits;
  EXPECT_TRUE(SetRerankTemplate(RerankTemplate::kAuto, config_, &traits).ok());
  EXPECT_FALSE(traits.qwen3_reranker);
  EXPECT_TRUE(SetRerankTemplate(RerankTemplate::kQwen3, config_, &traits).ok());
  EXPECT_TRUE(traits.qwen3_reranker);
  EXPECT_TRUE(SetRerankTemplate(RerankTemplate::kNone, config_, &traits).ok());
  EXPECT_FALSE(traits.qwen3_reranker);
  config_.head = Head::kNone;
  EXPECT_THAT(SetRerankTemplate(RerankTemplate::kQwen3, config_, &traits).message(),
              HasSubstr("Qwen2Model"));
  config_.architecture = Architecture::kBert;
  config_.head = Head::kClassifier;
  EXPECT_EQ(SetRerankTemplate(RerankTemplate::kQwen3, config_, &traits).code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(SetRerankTemplate(RerankTemplate::kNone, config_, &traits).ok());
}

TEST_F(ModelTraitsTest, Classifiers) {
  config_.head = Head::kClassifier;
  config_.num_classes = 3;
  Write("config.json", R"({"id2label": {"2": "bad", "0": "good", "1": "fair"}})");
  ModelTraits traits = Load()->traits;
  EXPECT_TRUE(traits.classifies);
  EXPECT_TRUE(traits.encodes_pairs);
  EXPECT_FALSE(traits.embeds);
  EXPECT_FALSE(traits.multi_label);
  EXPECT_THAT(traits.class_labels, ElementsAre("good", "fair", "bad"));
  Write("config.json", R"({"num_labels": 3, "problem_type": "multi_label_classification"})");
  traits = Load()->traits;
  EXPECT_TRUE(traits.multi_label);
  EXPECT_THAT(traits.class_labels, ElementsAre("LABEL_0", "LABEL_1", "LABEL_2"));
  Write("config.json", R"({"id2label": {"1": "good", "2": "fair", "3": "bad"}})");
  EXPECT_THAT(Load().status().message(), HasSubstr("no text for \"0\""));
}

TEST_F(ModelTraitsTest, Qwen3ByItsName) {
  config_.architecture = Architecture::kQwen3;
  config_.head = Head::kLanguageModel;
  Write("config.json", "{}");
  EXPECT_TRUE(Load("Qwen/Qwen3-Reranker-0.6B")->traits.qwen3_reranker);
  EXPECT_TRUE(Load("Qwen/Qwen3-Reranker-0.6B")->traits.generates);
  EXPECT_FALSE(Load("Qwen/Qwen3-0.6B")->traits.qwen3_reranker);
  EXPECT_FALSE(Load("Qwen/Qwen3-0.6B")->traits.embeds);
  config_.head = Head::kClassifier;
  EXPECT_TRUE(Load("someone/Qwen3-Reranker-0.6B-seq-cls")->traits.qwen3_reranker);
  config_.head = Head::kLanguageModel;
  Write("modules.json", R"([{"type": "sentence_transformers.models.Normalize"}])");
  const ModelTraits traits = Load("Qwen3-Embedding-0.6B")->traits;
  EXPECT_TRUE(traits.embeds);
  EXPECT_TRUE(traits.any_dimensions);
}

}  // namespace
}  // namespace skein
