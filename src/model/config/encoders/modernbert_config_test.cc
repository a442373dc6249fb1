#include "model/config/encoders/modernbert_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Members = std::map<std::string, std::string>;

// A config.json in the spelling of published files, with `changes` applied. A change to an empty
// value removes the member.
std::string ModernBertJson(const Members& changes) {
  Members members = {{"architectures", R"(["ModernBertModel"])"},
                     {"model_type", R"("modernbert")"},
                     {"torch_dtype", R"("float32")"},
                     {"classifier_activation", R"("gelu")"},
                     {"classifier_pooling", R"("mean")"},
                     {"global_attn_every_n_layers", "3"},
                     {"global_rope_theta", "160000.0"},
                     {"hidden_activation", R"("gelu")"},
                     {"hidden_size", "32"},
                     {"intermediate_size", "56"},
                     {"local_attention", "128"},
                     {"local_rope_theta", "10000.0"},
                     {"max_position_embeddings", "8192"},
                     {"norm_eps", "1e-5"},
                     {"num_attention_heads", "4"},
                     {"num_hidden_layers", "5"},
                     {"position_embedding_type", R"("absolute")"},
                     {"vocab_size", "64"}};
  for (const auto& [key, value] : changes) members[key] = value;
  std::string text;
  for (const auto& [key, value] : members) {
    if (!value.empty()) text += (text.empty() ? "{\"" : ", \"") + key + "\": " + value;
  }
  return text + "}";
}

ModelConfig Good(const Members& changes) {
  return ParseModelConfig(ModernBertJson(changes)).value();
}

TEST(ModernBertConfigTest, PublishedSpelling) {
  const ModelConfig config = Good({});
  EXPECT_TRUE(config.is_encoder());
  EXPECT_FALSE(config.is_bert_family());
  EXPECT_EQ(config.head, Head::kNone);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.num_kv_heads, 4);
  EXPECT_EQ(config.max_position, 8192);
  EXPECT_EQ(config.activation, Activation::kGelu);
  EXPECT_EQ(config.encoder.layer_norm_eps, 1e-5f);
  EXPECT_FALSE(config.encoder.norm_bias || config.qkv_bias || config.o_bias || config.mlp_bias);
  EXPECT_THAT(config.local.layers, ElementsAre(false, true, true, false, true));
  EXPECT_EQ(config.local.before, 64);
  EXPECT_EQ(config.rope.theta, 160000);
  EXPECT_EQ(config.local.rope.theta, 10000);
  EXPECT_EQ(Good({{"local_rope_theta", "null"}}).local.rope.theta, 160000);
  EXPECT_EQ(config.ArchitectureName(), "ModernBertModel");
}

TEST(ModernBertConfigTest, NewerSpelling) {
  const Members newer = {{"global_attn_every_n_layers", ""},
                         {"global_rope_theta", ""},
                         {"local_rope_theta", ""},
                         {"num_hidden_layers", "2"},
                         {"layer_types", R"(["sliding_attention", "full_attention"])"},
                         {"rope_parameters",
                          R"({"full_attention": {"rope_type": "default", "rope_theta": 5e4},
           "sliding_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 7e3}})"}};
  const ModelConfig config = Good(newer);
  EXPECT_THAT(config.local.layers, ElementsAre(true, false));
  EXPECT_EQ(config.rope.theta, 5e4);
  EXPECT_EQ(config.rope.type, RopeType::kDefault);
  EXPECT_EQ(config.local.rope.theta, 7e3);
  EXPECT_EQ(config.local.rope.type, RopeType::kLinear);
  EXPECT_EQ(config.local.rope.factor, 2);
}

TEST(ModernBertConfigTest, Heads) {
  const ModelConfig masked = Good({{"architectures", R"(["ModernBertForMaskedLM"])"}});
  EXPECT_EQ(masked.head, Head::kNone);
  const std::string classifier = R"(["ModernBertForSequenceClassification"])";
  const ModelConfig mean = Good({{"architectures", classifier}, {"num_labels", "3"}});
  EXPECT_EQ(mean.head, Head::kClassifier);
  EXPECT_EQ(mean.num_classes, 3);
  EXPECT_TRUE(mean.encoder.classifies_mean);
  EXPECT_EQ(mean.encoder.head_activation, Activation::kGelu);
  EXPECT_FALSE(mean.encoder.head_bias);
  const ModelConfig cls = Good({{"architectures", classifier},
                                {"classifier_bias", "true"},
                                {"classifier_pooling", R"("cls")"}});
  EXPECT_FALSE(cls.encoder.classifies_mean);
  EXPECT_TRUE(cls.encoder.head_bias);
}

TEST(ModernBertConfigTest, RefusesByName) {
  const auto error = [](const Members& changes) {
    const auto config = ParseModelConfig(ModernBertJson(changes));
    return config.ok() ? "accepted" : config.status().message();
  };
  EXPECT_THAT(error({{"hidden_activation", R"("mish")"}}), HasSubstr("'hidden_activation' is"));
  EXPECT_THAT(error({{"num_attention_heads", "32"}}), HasSubstr("no multiple of twice the 32"));
  EXPECT_THAT(error({{"local_attention", ""}}), HasSubstr("'local_attention' is missing"));
  EXPECT_THAT(error({{"local_attention", "-1"}}), HasSubstr("'local_attention'"));
  EXPECT_THAT(error({{"global_attn_every_n_layers", ""}}), HasSubstr("and so is 'layer_types'"));
  EXPECT_THAT(error({{"layer_types", R"(["full_attention"])"}}),
              HasSubstr("has 1 entries; the model has 5 layers"));
  EXPECT_THAT(error({{"num_hidden_layers", "1"}, {"layer_types", R"(["chunked_attention"])"}}),
              HasSubstr("holds 'chunked_attention'"));
  EXPECT_THAT(error({{"global_rope_theta", ""}}), HasSubstr("'global_rope_theta' is missing"));
  EXPECT_THAT(error({{"rope_scaling", R"({"rope_type": "linear", "factor": 2.0})"}}),
              HasSubstr("'rope_scaling' is there"));
  EXPECT_THAT(error({{"rope_parameters", R"({"full_attention": {"rope_theta": 1e4}})"}}),
              HasSubstr("'sliding_attention' is missing"));
  EXPECT_THAT(error({{"norm_eps", "0"}}), HasSubstr("must be in (0, 1)"));
  EXPECT_THAT(error({{"architectures", R"(["ModernBertForSequenceClassification"])"},
                     {"classifier_pooling", R"("max")"}}),
              HasSubstr("'classifier_pooling' is 'max'"));
  EXPECT_THAT(error({{"architectures", R"(["ModernBertForTokenClassification"])"}}),
              HasSubstr("'architectures' is ModernBertForTokenClassification"));
}

}  // namespace
}  // namespace skein
