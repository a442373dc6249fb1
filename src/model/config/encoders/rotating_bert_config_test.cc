#include "model/config/encoders/rotating_bert_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

namespace skein {
namespace {

using ::testing::HasSubstr;
using RotatingMembers = std::map<std::string, std::string>;

std::string ConfigText(RotatingMembers members, const RotatingMembers& changes) {
  for (const auto& [key, value] : changes) members[key] = value;
  std::string text;
  for (const auto& [key, value] : members) {
    if (!value.empty()) text += (text.empty() ? "{\"" : ", \"") + key + "\": " + value;
  }
  return text + "}";
}

// As NomicBERT's publisher spells it.
std::string NomicText(const RotatingMembers& changes = {}) {
  return ConfigText({{"architectures", R"(["NomicBertModel"])"},
                     {"model_type", R"("nomic_bert")"},
                     {"torch_dtype", R"("float32")"},
                     {"activation_function", R"("swiglu")"},
                     {"layer_norm_epsilon", "1e-12"},
                     {"n_embd", "32"},
                     {"n_head", "2"},
                     {"n_inner", "56"},
                     {"n_layer", "3"},
                     {"n_positions", "128"},
                     {"max_position_embeddings", "64"},
                     {"rotary_emb_base", "1000"},
                     {"rotary_emb_fraction", "1.0"},
                     {"rotary_scaling_factor", "null"},
                     {"type_vocab_size", "2"},
                     {"vocab_size", "64"}},
                    changes);
}

std::string GteText(const RotatingMembers& changes = {}) {
  return ConfigText({{"architectures", R"(["NewModel", "NewForTokenClassification"])"},
                     {"model_type", R"("new")"},
                     {"torch_dtype", R"("float16")"},
                     {"hidden_act", R"("gelu")"},
                     {"hidden_size", "32"},
                     {"intermediate_size", "56"},
                     {"layer_norm_eps", "1e-12"},
                     {"max_position_embeddings", "128"},
                     {"num_attention_heads", "2"},
                     {"num_hidden_layers", "3"},
                     {"rope_theta", "20000"},
                     {"rope_scaling", R"({"type": "ntk", "factor": 8.0})"},
                     {"type_vocab_size", "0"},
                     {"vocab_size", "64"}},
                    changes);
}

TEST(RotatingBertConfigTest, PublishedSpellings) {
  const ModelConfig nomic = ParseModelConfig(NomicText()).value();
  EXPECT_TRUE(nomic.is_bert_family() && nomic.has_rope() && nomic.HasGate(0) && nomic.Rotates(0));
  EXPECT_FALSE(nomic.qkv_bias || nomic.o_bias || nomic.mlp_bias);
  EXPECT_EQ(nomic.max_position, 128);
  EXPECT_EQ(nomic.num_layers, 3);
  EXPECT_EQ(nomic.activation, Activation::kSilu);
  EXPECT_EQ(nomic.rope.theta, 1000);
  EXPECT_EQ(nomic.encoder.num_segments, 2);
  const ModelConfig gte = ParseModelConfig(GteText()).value();
  EXPECT_TRUE(gte.qkv_bias && gte.o_bias && gte.mlp_bias && gte.HasGate(0));
  EXPECT_EQ(gte.head, Head::kNone);
  EXPECT_EQ(gte.encoder.num_segments, 0);
  // Frequencies 20000^(-2i/16) * 8^(-2(i+1)/16).
  const RopeTable table = MakeRopeTable(gte.rope, gte.head_dim);
  for (int i = 0; i < 8; ++i) {
    const double expected = std::pow(20000.0, -i / 8.0) * std::pow(8.0, -(i + 1) / 8.0);
    EXPECT_NEAR(table.inv_freq[i] / expected, 1, 1e-6) << i;
  }
}

TEST(RotatingBertConfigTest, RefusesByName) {
  const auto error = [](const std::string& text) {
    const auto config = ParseModelConfig(text);
    return config.ok() ? "accepted" : config.status().message();
  };
  EXPECT_THAT(error(NomicText({{"prenorm", "true"}})), HasSubstr("'prenorm' is true; only false"));
  EXPECT_THAT(error(NomicText({{"qkv_proj_bias", "true"}})), HasSubstr("'qkv_proj_bias' is true"));
  EXPECT_THAT(error(NomicText({{"num_experts", "8"}})), HasSubstr("'num_experts' is 8"));
  EXPECT_THAT(error(NomicText({{"rotary_emb_fraction", "0.5"}})),
              HasSubstr("'rotary_emb_fraction'"));
  EXPECT_THAT(error(NomicText({{"rotary_scaling_factor", "2"}})),
              HasSubstr("'rotary_scaling_factor'"));
  EXPECT_THAT(error(NomicText({{"activation_function", R"("gelu")"}})),
              HasSubstr("'activation_function' is 'gelu'; only 'swiglu'"));
  EXPECT_THAT(error(NomicText({{"n_embd", "30"}})),
              HasSubstr("'n_embd' is 30, no multiple of twice"));
  EXPECT_THAT(error(GteText({{"position_embedding_type", R"("absolute")"}})),
              HasSubstr("'position_embedding_type' is 'absolute'"));
  EXPECT_THAT(error(GteText({{"logn_attention_scale", "true"}})),
              HasSubstr("'logn_attention_scale'"));
  EXPECT_THAT(error(GteText({{"rope_scaling", R"({"type": "ntk", "factor": 0.5})"}})),
              HasSubstr("'factor' must be a number in [1, 1000]"));
  EXPECT_THAT(error(GteText({{"rope_scaling", R"({"type": "su", "factor": 2})"}})),
              HasSubstr("is 'su'"));
  EXPECT_THAT(error(GteText({{"type_vocab_size", "-1"}})), HasSubstr("must be in [0, "));
}

}  // namespace
}  // namespace skein
