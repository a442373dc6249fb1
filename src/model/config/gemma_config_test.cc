// The configs of Gemma 1 and 2. tests/data/published_models.json has those of Gemma 3.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "model/config/config.h"

namespace skein {
namespace {

using ::testing::HasSubstr;
using Members = std::map<std::string, std::string>;

// A config.json of both with `changes`. A change to an empty value removes the member.
Result<ModelConfig> Parse(const std::string& architecture, const std::string& type,
                          const Members& changes) {
  Members members = {{"architectures", "[\"" + architecture + "\"]"},
                     {"model_type", "\"" + type + "\""},
                     {"torch_dtype", R"("bfloat16")"},
                     {"head_dim", "16"},
                     {"hidden_size", "96"},
                     {"intermediate_size", "80"},
                     {"max_position_embeddings", "8192"},
                     {"num_attention_heads", "4"},
                     {"num_hidden_layers", "5"},
                     {"num_key_value_heads", "1"},
                     {"rms_norm_eps", "1e-6"},
                     {"rope_theta", "10000.0"},
                     {"vocab_size", "128"}};
  for (const auto& [key, value] : changes) members[key] = value;
  std::string text;
  for (const auto& [key, value] : members) {
    if (!value.empty()) text += (text.empty() ? "{\"" : ", \"") + key + "\": " + value;
  }
  return ParseModelConfig(text + "}");
}

Result<ModelConfig> Gemma1(const Members& changes = {}) {
  return Parse("GemmaForCausalLM", "gemma", changes);
}
Result<ModelConfig> Gemma2(const Members& changes = {}) {
  return Parse("Gemma2ForCausalLM", "gemma2", changes);
}

TEST(GemmaConfigTest, TheFirstHasNeitherCapsNorWindows) {
  const ModelConfig config = Gemma1({{"hidden_act", R"("gelu")"}}).value();
  EXPECT_EQ(config.activation, Activation::kGeluTanh);
  EXPECT_EQ(Gemma1({{"hidden_act", R"("relu")"}}).value().activation, Activation::kRelu);
  EXPECT_EQ(config.decoder.norms, NormPlacement::kBefore);
  EXPECT_EQ(config.decoder.norm_offset, 1);
  EXPECT_EQ(config.decoder.attention_scale, 0);  // that of the head's size
  EXPECT_TRUE(config.tie_embeddings && config.decoder.rounds_embedding_scale);
  EXPECT_FALSE(config.has_local_layers() || config.decoder.qk_norm);
  EXPECT_EQ(config.decoder.score_cap, 0);
  EXPECT_EQ(config.decoder.logits_cap, 0);
  EXPECT_EQ(Gemma1({{"final_logit_softcapping", "30.0"}}).status().param(),
            "final_logit_softcapping");
}

TEST(GemmaConfigTest, TheSecondCapsScoresAndLogits) {
  const ModelConfig config = Gemma2({{"query_pre_attn_scalar", "64"}}).value();
  EXPECT_EQ(config.decoder.norms, NormPlacement::kAround);
  EXPECT_FALSE(config.decoder.qk_norm);
  EXPECT_EQ(config.decoder.attention_scale, 0.125);
  EXPECT_EQ(config.decoder.score_cap, 50);
  EXPECT_EQ(config.decoder.logits_cap, 30);
  EXPECT_THAT(config.local.layers, ::testing::ElementsAre(true, false, true, false, true));
  EXPECT_EQ(config.local.before, 4095);
  EXPECT_EQ(config.local.rope.theta, config.rope.theta);
  const ModelConfig other = Gemma2({{"attn_logit_softcapping", "null"},
                                    {"final_logit_softcapping", "2.5"},
                                    {"sliding_window", "24"}})
                                .value();
  EXPECT_EQ(other.decoder.score_cap, 0);
  EXPECT_EQ(other.decoder.logits_cap, 2.5f);
  EXPECT_EQ(other.local.before, 23);
  EXPECT_FALSE(Gemma2({{"sliding_window", "8192"}}).value().has_local_layers());
}

TEST(GemmaConfigTest, CapsThatAreNoneAreRefused) {
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    for (const char* value : {"0", "-1.0", "1e9"}) {
      const Status status = Gemma2({{key, value}}).status();
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
      EXPECT_EQ(status.param(), key);
      EXPECT_THAT(status.message(), HasSubstr("must be null or in [0.001, 1e6]"));
    }
    EXPECT_EQ(Gemma2({{key, "true"}}).status().param(), key);
  }
}

}  // namespace
}  // namespace skein
