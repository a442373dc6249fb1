#include "model/config/encoders/encoder_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

namespace skein {
namespace {

using ::testing::HasSubstr;
using Members = std::map<std::string, std::string>;

// A config.json with `changes` applied. A change to an empty value removes the member.
std::string Config(const Members& changes) {
  Members members = {{"architectures", R"(["RobertaModel"])"},
                     {"model_type", R"("roberta")"},
                     {"dtype", R"("float32")"},
                     {"hidden_act", R"("gelu")"},
                     {"hidden_size", "32"},
                     {"intermediate_size", "56"},
                     {"layer_norm_eps", "1e-5"},
                     {"max_position_embeddings", "514"},
                     {"num_attention_heads", "4"},
                     {"num_hidden_layers", "2"},
                     {"pad_token_id", "1"},
                     {"type_vocab_size", "1"},
                     {"vocab_size", "64"}};
  for (const auto& [key, value] : changes) members[key] = value;
  std::string text;
  for (const auto& [key, value] : members) {
    if (!value.empty()) text += (text.empty() ? "{\"" : ", \"") + key + "\": " + value;
  }
  return text + "}";
}

TEST(EncoderConfigTest, RobertaPositionsStartBehindThePaddingToken) {
  const ModelConfig config = ParseModelConfig(Config({})).value();
  EXPECT_TRUE(config.is_encoder());
  EXPECT_EQ(config.head, Head::kNone);
  EXPECT_EQ(config.encoder.first_position, 2);
  EXPECT_EQ(config.max_position, 512);
  EXPECT_EQ(config.num_kv_heads, 4);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.activation, Activation::kGelu);
  EXPECT_EQ(config.encoder.num_segments, 1);
  EXPECT_EQ(config.ArchitectureName(), "RobertaModel");
}

TEST(EncoderConfigTest, NumberOfClasses) {
  const auto classes = [](const Members& changes) {
    Members all = {{"architectures", R"(["RobertaForSequenceClassification"])"}};
    all.insert(changes.begin(), changes.end());
    return ParseModelConfig(Config(all)).value().num_classes;
  };
  EXPECT_EQ(classes({}), 2);
  EXPECT_EQ(classes({{"num_labels", "5"}}), 5);
  EXPECT_EQ(classes({{"id2label", R"({"0": "a", "1": "b", "2": "c"})"}}), 3);
  EXPECT_EQ(ParseModelConfig(Config({})).value().num_classes, 0);
}

TEST(EncoderConfigTest, RefusesByName) {
  const auto error = [](const Members& changes) {
    const auto config = ParseModelConfig(Config(changes));
    return config.ok() ? "accepted" : config.status().message();
  };
  EXPECT_THAT(error({{"hidden_act", R"("mish")"}}), HasSubstr("'hidden_act' is 'mish'"));
  EXPECT_THAT(error({{"position_embedding_type", R"("relative_key")"}}),
              HasSubstr("'position_embedding_type' is 'relative_key'"));
  EXPECT_THAT(error({{"pad_token_id", ""}}), HasSubstr("'pad_token_id' is missing"));
  EXPECT_THAT(error({{"pad_token_id", "513"}}), HasSubstr("must be in [0, 513)"));
  EXPECT_THAT(error({{"num_attention_heads", "5"}}), HasSubstr("no multiple of the 5"));
  EXPECT_THAT(error({{"layer_norm_eps", ""}}), HasSubstr("'layer_norm_eps' is missing"));
  EXPECT_THAT(error({{"layer_norm_eps", "0"}}), HasSubstr("must be in (0, 1)"));
  EXPECT_THAT(error({{"is_decoder", "true"}}), HasSubstr("'is_decoder' is true"));
  EXPECT_THAT(error({{"type_vocab_size", ""}}), HasSubstr("'type_vocab_size' is missing"));
  EXPECT_THAT(error({{"model_type", R"("bert")"}}), HasSubstr("does not go with RobertaModel"));
  EXPECT_THAT(error({{"quantization_config", R"({"quant_method": "gptq", "bits": 4})"}}),
              HasSubstr("quantized weights are supported for decoders only"));
}

TEST(EncoderConfigTest, MpnetStatesItsDistancesAndPositionsInItsCode) {
  const Members mpnet = {{"architectures", R"(["MPNetForMaskedLM"])"},
                         {"model_type", R"("mpnet")"},
                         {"pad_token_id", ""},
                         {"type_vocab_size", ""}};
  const ModelConfig config = ParseModelConfig(Config(mpnet)).value();
  EXPECT_TRUE(config.is_bert_family() && config.bidirectional && !config.has_rope());
  EXPECT_TRUE(config.encoder.predicts_masked);
  EXPECT_EQ(config.head, Head::kNone);
  EXPECT_EQ(config.ArchitectureName(), "MPNetModel");
  EXPECT_EQ(config.encoder.first_position, 2);
  EXPECT_EQ(config.max_position, 512);
  EXPECT_EQ(config.encoder.num_segments, 0);
  EXPECT_EQ(config.encoder.relative_bias.num_buckets, 32);
  EXPECT_EQ(config.encoder.relative_bias.max_distance, 128);
  Members other = mpnet;
  other["relative_attention_num_buckets"] = "64";
  const Status status = ParseModelConfig(Config(other)).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("'relative_attention_num_buckets' is 64; only 32"));
}

// As published for v3. A change to an empty value removes the member.
std::string DebertaText(const Members& changes) {
  Members members = {{"architectures", R"(["DebertaV2ForSequenceClassification"])"},
                     {"model_type", R"("deberta-v2")"},
                     {"torch_dtype", R"("float32")"},
                     {"hidden_act", R"("gelu")"},
                     {"hidden_size", "32"},
                     {"intermediate_size", "56"},
                     {"layer_norm_eps", "1e-7"},
                     {"max_position_embeddings", "512"},
                     {"max_relative_positions", "-1"},
                     {"norm_rel_ebd", R"("layer_norm")"},
                     {"num_attention_heads", "4"},
                     {"num_hidden_layers", "2"},
                     {"pos_att_type", R"("p2c|c2p")"},
                     {"position_biased_input", "false"},
                     {"position_buckets", "256"},
                     {"relative_attention", "true"},
                     {"share_att_key", "true"},
                     {"type_vocab_size", "0"},
                     {"vocab_size", "64"}};
  for (const auto& [key, value] : changes) members[key] = value;
  std::string text;
  for (const auto& [key, value] : members) {
    if (!value.empty()) text += (text.empty() ? "{\"" : ", \"") + key + "\": " + value;
  }
  return text + "}";
}

TEST(DebertaConfigTest, AsV3IsPublished) {
  const ModelConfig config = ParseModelConfig(DebertaText({})).value();
  EXPECT_TRUE(config.is_bert_family() && config.bidirectional && !config.has_rope());
  EXPECT_GT(config.num_layers, 1);
  EXPECT_EQ(config.num_kv_layers(), 1);
  EXPECT_EQ(config.KvLayer(config.num_layers - 1), 0);
  EXPECT_EQ(config.num_linear_layers(), 0);
  EXPECT_EQ(config.KvBytesPerToken(DType::kF32), 8 * config.num_kv_heads * config.head_dim);
  EXPECT_EQ(config.ArchitectureName(), "DebertaV2ForSequenceClassification");
  EXPECT_EQ(config.encoder.relative.span, 256);
  EXPECT_EQ(config.encoder.relative.max_distance, 512);
  EXPECT_TRUE(config.encoder.relative.normed && config.encoder.relative.shares_projections);
  EXPECT_FALSE(config.encoder.has_positions);
  EXPECT_EQ(config.encoder.num_segments, 0);
  EXPECT_EQ(config.encoder.head_activation, Activation::kGelu);
  EXPECT_EQ(config.num_classes, 2);
}

TEST(DebertaConfigTest, OtherSpellings) {
  const ModelConfig config = ParseModelConfig(DebertaText({{"pos_att_type", R"(["c2p", "p2c"])"},
                                                           {"position_buckets", "-1"},
                                                           {"max_relative_positions", "40"},
                                                           {"norm_rel_ebd", R"("none")"},
                                                           {"share_att_key", ""},
                                                           {"position_biased_input", ""},
                                                           {"type_vocab_size", "2"}}))
                                 .value();
  EXPECT_EQ(config.encoder.relative.span, 40);
  EXPECT_EQ(config.encoder.relative.max_distance, 0);
  EXPECT_FALSE(config.encoder.relative.normed || config.encoder.relative.shares_projections);
  EXPECT_TRUE(config.encoder.has_positions);
  EXPECT_EQ(config.encoder.num_segments, 2);
}

TEST(DebertaConfigTest, RefusalsNameTheMember) {
  const std::pair<Members, const char*> cases[] = {
      {{{"relative_attention", "false"}}, "'relative_attention' is false"},
      {{{"pos_att_type", R"("c2p")"}}, "'pos_att_type' must name c2p and p2c"},
      {{{"pos_att_type", R"(["c2p", "p2c", "p2p"])"}}, "'pos_att_type' must name c2p and p2c"},
      {{{"pos_att_type", ""}}, "'pos_att_type' must name c2p and p2c"},
      {{{"position_buckets", "12"}}, "'position_buckets' makes 12 distances"},
      {{{"position_buckets", "1024"}}, "'position_buckets' makes 1024 distances"},
      {{{"max_relative_positions", "129"}}, "'max_relative_positions' is 129"},
      {{{"norm_rel_ebd", R"("rms")"}}, "'norm_rel_ebd' is 'rms'"},
      {{{"conv_kernel_size", "3"}}, "'conv_kernel_size' is 3"},
      {{{"embedding_size", "16"}}, "'embedding_size' is 16"},
      {{{"attention_head_size", "16"}}, "'attention_head_size' is 16"},
      {{{"pooler_hidden_size", "64"}}, "'pooler_hidden_size' is 64"},
      {{{"max_position_embeddings", "65536"}}, "'max_position_embeddings'"},
      {{{"hidden_size", "30"}}, "'hidden_size' is 30"},
  };
  for (const auto& [changes, message] : cases) {
    const Result<ModelConfig> config = ParseModelConfig(DebertaText(changes));
    ASSERT_FALSE(config.ok()) << message;
    EXPECT_THAT(config.status().message(), HasSubstr(message));
  }
}

}  // namespace
}  // namespace skein
