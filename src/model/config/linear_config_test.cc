// Configs with linear layers: the members that are read, the defaults, and the values that are
// refused by name.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "model/config/config.h"

namespace skein {
namespace {

nlohmann::json LinearTextConfig() {
  return {{"architectures", {"Qwen3_5ForCausalLM"}},
          {"model_type", "qwen3_5_text"},
          {"dtype", "bfloat16"},
          {"hidden_size", 64},
          {"intermediate_size", 96},
          {"num_hidden_layers", 6},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"vocab_size", 100},
          {"max_position_embeddings", 512},
          {"rms_norm_eps", 1e-6},
          {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 1e7}}}};
}

ModelConfig ReadLinearModel(const nlohmann::json& json) {
  return ParseModelConfig(json.dump()).value();
}

// The member that the refusal names; "nothing" if there is no refusal.
std::string RefusedMember(const nlohmann::json& json, StatusCode code = StatusCode::kUnsupported) {
  const Result<ModelConfig> config = ParseModelConfig(json.dump());
  if (config.ok()) return "nothing";
  EXPECT_EQ(config.status().code(), code) << config.status().message();
  return config.status().param();
}

TEST(LinearConfig, TakesTheLibrarysDefaults) {
  const ModelConfig config = ReadLinearModel(LinearTextConfig());
  const LinearLayers& linear = config.decoder.linear;
  EXPECT_EQ(linear.layers, (std::vector<bool>{true, true, true, false, true, true}));
  EXPECT_EQ(linear.num_k_heads, 16);
  EXPECT_EQ(linear.num_v_heads, 32);
  EXPECT_EQ(linear.k_dim, 128);
  EXPECT_EQ(linear.conv_width(), 2 * 16 * 128 + 32 * 128);
  EXPECT_EQ(config.head_dim, 256);
  EXPECT_EQ(RotaryDim(config.rope, config.head_dim), 64);
  EXPECT_EQ(config.decoder.norm_offset, 1);
  EXPECT_EQ(config.num_kv_layers(), 1);
  EXPECT_EQ(config.KvLayer(4), 1);
  EXPECT_EQ(config.KvBytesPerToken(DType::kBf16), 2 * 2 * 256 * 2);
  EXPECT_EQ(config.StateBytes(), 5 * (32 * 128 * 128 + 3 * 8192) * 4);
}

TEST(LinearConfig, ReadsTheTextPartOfAMultimodalModel) {
  nlohmann::json text = LinearTextConfig();
  text.erase("architectures");
  const nlohmann::json json = {{"architectures", {"Qwen3_5ForConditionalGeneration"}},
                               {"model_type", "qwen3_5"},
                               {"tie_word_embeddings", true},
                               {"text_config", text}};
  const ModelConfig config = ReadLinearModel(json);
  EXPECT_EQ(config.architecture, Architecture::kQwen35);
  EXPECT_EQ(config.file_dtype, DType::kBf16);
  EXPECT_TRUE(config.tie_embeddings);
}

TEST(LinearConfig, ReadsOwnShapes) {
  nlohmann::json json = LinearTextConfig();
  json["layer_types"] = {"full_attention",   "linear_attention", "linear_attention",
                         "linear_attention", "full_attention",   "linear_attention"};
  json["linear_num_key_heads"] = 2;
  json["linear_num_value_heads"] = 6;
  json["linear_key_head_dim"] = 20;
  json["linear_value_head_dim"] = 96;
  json["rope_parameters"]["partial_rotary_factor"] = 1.0;
  const ModelConfig config = ReadLinearModel(json);
  EXPECT_EQ(config.num_kv_layers(), 2);
  EXPECT_EQ(config.decoder.linear.width(), 2 * 40 + 2 * 576 + 2 * 6);
  EXPECT_EQ(RotaryDim(config.rope, config.head_dim), 256);
}

TEST(LinearConfig, ReadsMixturesOfExperts) {
  nlohmann::json json = LinearTextConfig();
  json["architectures"] = {"Qwen3_5MoeForCausalLM"};
  json["model_type"] = "qwen3_5_moe_text";
  json.erase("intermediate_size");
  const ModelConfig config = ReadLinearModel(json);
  EXPECT_EQ(config.ArchitectureName(), "Qwen3_5MoeForCausalLM");
  EXPECT_EQ(config.num_experts, 256);
  EXPECT_EQ(config.experts_per_token, 8);
  EXPECT_EQ(config.expert_size, 512);
  EXPECT_EQ(config.decoder.shared_expert_size, 512);
  EXPECT_TRUE(config.norm_expert_weights);
  EXPECT_EQ(config.has_experts, std::vector<bool>(6, true));
  EXPECT_TRUE(config.IsLinear(0));
  json["shared_expert_intermediate_size"] = 40;
  json["moe_intermediate_size"] = 24;
  json["mlp_only_layers"] = {1};  // is in published files, where it has no effect
  const ModelConfig own = ReadLinearModel(json);
  EXPECT_EQ(own.MlpSize(1), 40);
  EXPECT_EQ(own.expert_size, 24);
  // An expert has three matrices, and so has the shared one, with a row that is its gate.
  EXPECT_EQ(config.NumParameters() - own.NumParameters(),
            int64_t{6} * 3 * 64 * (256 * (512 - 24) + 512 - 40));
  json["shared_expert_intermediate_size"] = 0;
  EXPECT_EQ(RefusedMember(json, StatusCode::kInvalidArgument), "shared_expert_intermediate_size");
  json.erase("shared_expert_intermediate_size");
  json["num_experts_per_tok"] = 257;
  EXPECT_EQ(RefusedMember(json, StatusCode::kInvalidArgument), "num_experts_per_tok");
}

TEST(LinearConfig, ReadsQwen3Next) {
  nlohmann::json json = LinearTextConfig();
  json["architectures"] = {"Qwen3NextForCausalLM"};
  json["model_type"] = "qwen3_next";
  json["num_experts"] = 512;
  json["num_experts_per_tok"] = 10;
  json["moe_intermediate_size"] = 32;
  json["shared_expert_intermediate_size"] = 48;
  json["mlp_only_layers"] = {2};
  const ModelConfig config = ReadLinearModel(json);
  EXPECT_TRUE(config.decoder.linear.fused_qkvz && config.decoder.linear.fused_ba);
  EXPECT_TRUE(config.norm_expert_weights);
  EXPECT_EQ(config.MlpSize(1), 48);
  EXPECT_EQ(config.MlpSize(2), 96);
  EXPECT_EQ(RotaryDim(config.rope, config.head_dim), 64);
  json["norm_topk_prob"] = false;
  EXPECT_FALSE(ReadLinearModel(json).norm_expert_weights);
  json.erase("intermediate_size");
  EXPECT_EQ(RefusedMember(json, StatusCode::kInvalidArgument), "intermediate_size");
}

TEST(LinearConfig, RefusesByName) {
  for (const auto& [key, value] :
       {std::pair<const char*, nlohmann::json>("attn_output_gate", false),
        {"attention_bias", true},
        {"linear_conv_kernel_dim", 3},
        {"linear_key_head_dim", 130},
        {"linear_key_head_dim", 512},
        {"linear_value_head_dim", 48},
        {"hidden_act", "gelu"}}) {
    nlohmann::json json = LinearTextConfig();
    json[key] = value;
    EXPECT_EQ(RefusedMember(json), key) << value;
  }
  nlohmann::json json = LinearTextConfig();
  json["layer_types"] = {"full_attention", "sliding_attention", "full_attention",
                         "full_attention", "full_attention",    "full_attention"};
  EXPECT_EQ(RefusedMember(json), "layer_types");
  json["layer_types"] = {"full_attention"};
  EXPECT_EQ(RefusedMember(json, StatusCode::kInvalidArgument), "layer_types");
  json = LinearTextConfig();
  json["full_attention_interval"] = 7;
  EXPECT_EQ(RefusedMember(json), "layer_types");
  json = LinearTextConfig();
  json["linear_num_value_heads"] = 24;
  EXPECT_EQ(RefusedMember(json, StatusCode::kInvalidArgument), "linear_num_value_heads");
  json = LinearTextConfig();
  json["architectures"] = {"Qwen3_5MoeForCausalLM"};
  EXPECT_EQ(RefusedMember(json, StatusCode::kInvalidArgument), "model_type");
}

}  // namespace
}  // namespace skein
