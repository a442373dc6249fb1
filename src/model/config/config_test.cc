#include "model/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "testing/shared.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A model directory that contains only configs.
class ConfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const ::testing::TestInfo* info = ::testing::UnitTest::GetInstance()->current_test_info();
    dir_ = std::filesystem::temp_directory_path() /
           ("skein_config_" + std::string(info->name()) + std::to_string(getpid()));
    std::filesystem::create_directories(dir_);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name) << text;
  }
  Result<ModelConfig> Load(const std::string& config) {
    Write("config.json", config);
    return LoadModelConfig(dir_.string());
  }
  ModelConfig Good(const std::string& config) {
    Result<ModelConfig> result = Load(config);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? *result : ModelConfig();
  }

  struct Refusal {
    std::string config;
    StatusCode code;
    std::string param;
  };
  void ExpectRefused(const std::vector<Refusal>& refusals) {
    for (const Refusal& r : refusals) {
      const Status status = Load(r.config).status();
      EXPECT_EQ(status.code(), r.code) << r.param << ": " << status.message();
      EXPECT_EQ(status.param(), r.param) << status.message();
    }
  }

  std::filesystem::path dir_;
};

// The relevant fields, in the spelling of the published files of each family.
constexpr char kLlama31[] = R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false,
  "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], "hidden_act": "silu",
  "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 131072,
  "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
  "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192, "rope_type": "llama3"},
  "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
  "vocab_size": 128256})";
constexpr char kMistral03[] = R"({"architectures": ["MistralForCausalLM"], "bos_token_id": 1,
  "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
  "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
  "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
  "rope_theta": 1000000.0, "sliding_window": null, "tie_word_embeddings": false,
  "torch_dtype": "bfloat16", "vocab_size": 32768})";
constexpr char kQwen25[] = R"({"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0,
  "bos_token_id": 151643, "eos_token_id": 151645, "hidden_act": "silu", "hidden_size": 896,
  "intermediate_size": 4864, "max_position_embeddings": 32768, "max_window_layers": 21,
  "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 24,
  "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
  "sliding_window": 32768, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
  "use_sliding_window": false, "vocab_size": 151936})";
constexpr char kQwen3[] = R"({"architectures": ["Qwen3ForCausalLM"], "attention_bias": false,
  "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu",
  "hidden_size": 1024, "intermediate_size": 3072, "max_position_embeddings": 40960,
  "max_window_layers": 28, "model_type": "qwen3", "num_attention_heads": 16,
  "num_hidden_layers": 28, "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null,
  "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": true,
  "torch_dtype": "bfloat16", "use_sliding_window": false, "vocab_size": 151936})";

constexpr char kQwen3Moe[] = R"({"architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false,
  "bos_token_id": 151643, "decoder_sparse_step": 1, "eos_token_id": 151645, "head_dim": 128,
  "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 6144,
  "max_position_embeddings": 40960, "max_window_layers": 48, "mlp_only_layers": [],
  "model_type": "qwen3_moe", "moe_intermediate_size": 768, "norm_topk_prob": true,
  "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48,
  "num_key_value_heads": 4, "output_router_logits": false, "rms_norm_eps": 1e-06,
  "rope_scaling": null, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001,
  "sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
  "use_sliding_window": false, "vocab_size": 151936})";

// Returns `text` with the first occurrence of `from` replaced by `to`. `from` must occur.
std::string Edit(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST_F(ConfigTest, Llama31) {
  Write("generation_config.json", R"({"eos_token_id": [128001, 128009], "temperature": 0.6})");
  const ModelConfig config = Good(kLlama31);
  EXPECT_EQ(config.architecture, Architecture::kLlama);
  EXPECT_EQ(config.head_dim, 128);
  EXPECT_EQ(config.num_kv_heads, 8);
  EXPECT_FALSE(config.qkv_bias || config.o_bias || config.mlp_bias || config.decoder.qk_norm);
  EXPECT_FALSE(config.tie_embeddings);
  EXPECT_EQ(config.rope.type, RopeType::kLlama3);
  EXPECT_EQ(config.rope.theta, 500000);
  EXPECT_EQ(config.rope.factor, 8);
  EXPECT_EQ(config.rope.original_max_position, 8192);
  EXPECT_EQ(config.file_dtype, DType::kBf16);
  EXPECT_EQ(config.bos_token_id, 128000);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(128001, 128009));
  EXPECT_EQ(config.NumParameters(), 8030261248);  // as published
  EXPECT_EQ(config.KvBytesPerToken(DType::kBf16), 131072);
}

TEST_F(ConfigTest, Mistral) {
  const ModelConfig config = Good(kMistral03);
  EXPECT_EQ(config.architecture, Architecture::kMistral);
  EXPECT_EQ(config.rope.type, RopeType::kDefault);
  EXPECT_EQ(config.NumParameters(), 7248023552);  // as published
  EXPECT_THAT(config.eos_token_ids, ElementsAre(2));
  // Mistral has no biases.
  EXPECT_FALSE(Good(Edit(kMistral03, "{", R"({"attention_bias": true, )")).qkv_bias);
}

TEST_F(ConfigTest, Qwen25) {
  const ModelConfig config = Good(kQwen25);
  EXPECT_EQ(config.head_dim, 64);
  EXPECT_TRUE(config.qkv_bias);
  EXPECT_FALSE(config.o_bias || config.mlp_bias || config.decoder.qk_norm);
  EXPECT_TRUE(config.tie_embeddings);
  EXPECT_EQ(config.NumParameters(), 494032768);  // as published
}

TEST_F(ConfigTest, Qwen3) {
  const ModelConfig config = Good(kQwen3);
  EXPECT_EQ(config.head_dim, 128);
  EXPECT_TRUE(config.decoder.qk_norm);
  EXPECT_FALSE(config.qkv_bias || config.o_bias);
  EXPECT_EQ(config.NumParameters(), 596049920);  // as published
  EXPECT_EQ(config.KvBytesPerToken(DType::kBf16), 114688);
  EXPECT_EQ(Good(Edit(kQwen3, R"("head_dim": 128, )", "")).head_dim, 128);  // not 1024 / 16
  const ModelConfig biased = Good(Edit(kQwen3, R"(n_bias": false)", R"(n_bias": true)"));
  EXPECT_TRUE(biased.qkv_bias && biased.o_bias);
}

TEST_F(ConfigTest, Qwen3Moe) {
  const ModelConfig c = Good(kQwen3Moe);
  EXPECT_EQ(c.architecture, Architecture::kQwen3Moe);
  EXPECT_EQ(c.ArchitectureName(), "Qwen3MoeForCausalLM");
  EXPECT_TRUE(c.decoder.qk_norm);
  EXPECT_EQ(c.num_experts, 128);
  EXPECT_EQ(c.experts_per_token, 8);
  EXPECT_EQ(c.expert_size, 768);
  EXPECT_TRUE(c.norm_expert_weights);
  EXPECT_EQ(std::ranges::count(c.has_experts, true), 48);
  EXPECT_EQ(Good(Edit(kQwen3Moe, R"("num_experts")", R"("num_local_experts")")).num_experts, 128);
  EXPECT_EQ(Good(Edit(kQwen3Moe, R"("head_dim": 128,)", "")).head_dim, 2048 / 32);
  EXPECT_FALSE(Good(Edit(kQwen3Moe, R"("norm_topk_prob": true,)", "")).norm_expert_weights);

  const std::string sparse = Edit(kQwen3Moe, "sparse_step\": 1", "sparse_step\": 3");
  const ModelConfig mixed = Good(Edit(sparse, "layers\": []", "layers\": [5, 6]"));
  EXPECT_FALSE(mixed.HasExperts(0));
  EXPECT_TRUE(mixed.HasExperts(2));
  EXPECT_FALSE(mixed.HasExperts(5));
  EXPECT_EQ(std::ranges::count(mixed.has_experts, true), 15);
}

TEST_F(ConfigTest, Qwen2Moe) {
  const std::string text =
      Edit(Edit(Edit(kQwen3Moe, "Qwen3MoeFor", "Qwen2MoeFor"), "qwen3_moe", "qwen2_moe"), "{",
           R"({"shared_expert_intermediate_size": 5632, )");
  const ModelConfig c = Good(text);
  EXPECT_EQ(c.decoder.shared_expert_size, 5632);
  EXPECT_EQ(c.MlpSize(0), 5632);
  EXPECT_TRUE(c.qkv_bias && !c.o_bias && !c.decoder.qk_norm);
  EXPECT_FALSE(Good(Edit(text, "{", R"({"qkv_bias": false, )")).qkv_bias);
  EXPECT_EQ(Load(Edit(text, "5632", "0")).status().param(), "shared_expert_intermediate_size");
  // A window that is switched off may have any size. Switched on, every other layer has it.
  EXPECT_FALSE(
      Good(Edit(text, R"("sliding_window": null)", R"("sliding_window": 0)")).has_local_layers());
  const std::string on =
      Edit(text, R"("use_sliding_window": false)", R"("use_sliding_window": true)");
  EXPECT_EQ(Load(Edit(on, R"("sliding_window": null)", R"("sliding_window": 0)")).status().param(),
            "sliding_window");
  const ModelConfig windows =
      Good(Edit(Edit(on, R"("sliding_window": null)", R"("sliding_window": 4096)"),
                R"("max_window_layers": 48)", R"("max_window_layers": 3)"));
  EXPECT_EQ(std::ranges::count(windows.local.layers, true), 2);
  EXPECT_TRUE(windows.IsLocal(0) && windows.IsLocal(2));
}

TEST_F(ConfigTest, ExpertsOfTheSizeOfAnMlp) {
  const std::string mixtral =
      Edit(Edit(Edit(kMistral03, "MistralFor", "MixtralFor"), R"("mistral")", R"("mixtral")"), "{",
           R"({"num_local_experts": 8, "num_experts_per_tok": 2, )");
  const ModelConfig c = Good(mixtral);
  EXPECT_EQ(c.num_experts, 8);
  EXPECT_EQ(c.expert_size, 14336);
  EXPECT_TRUE(c.norm_expert_weights && c.HasExperts(0) && c.HasExperts(31));
  EXPECT_EQ(c.MlpSize(0), 0);
  const std::string olmoe =
      Edit(Edit(Edit(kMistral03, "MistralFor", "OlmoeFor"), R"("mistral")", R"("olmoe")"), "{",
           R"({"num_experts": 64, "num_experts_per_tok": 8, "clip_qkv": null, )");
  const ModelConfig o = Good(olmoe);
  EXPECT_EQ(o.expert_size, 14336);
  EXPECT_TRUE(o.decoder.qk_norm_spans_heads && !o.norm_expert_weights);
  EXPECT_TRUE(Good(Edit(olmoe, "{", R"({"norm_topk_prob": true, )")).norm_expert_weights);
  const Status clipped = Load(Edit(olmoe, "null", "8.0")).status();
  EXPECT_EQ(clipped.code(), StatusCode::kUnsupported);
  EXPECT_EQ(clipped.param(), "clip_qkv");
}

TEST_F(ConfigTest, Stories260K) {
  SKEIN_REQUIRE_SHARED();
  const Result<ModelConfig> config =
      LoadModelConfig(::skein::testing::SharedDir() + "/models/stories260K");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config.value().NumParameters(), 260032);
  EXPECT_EQ(config.value().file_dtype, DType::kF32);
}

TEST_F(ConfigTest, DefaultsOfAbsentFields) {
  const std::string no_kv = Edit(kLlama31, R"("num_key_value_heads": 8, )", "");
  EXPECT_EQ(Good(no_kv).num_kv_heads, 32);
  EXPECT_FALSE(Good(Edit(kQwen25, R"("tie_word_embeddings": true, )", "")).tie_embeddings);
  EXPECT_THAT(
      Good(Edit(kQwen3, R"("eos_token_id": 151645)", R"("eos_token_id": null)")).eos_token_ids,
      IsEmpty());
  EXPECT_EQ(Good(Edit(kLlama31, R"("hidden_act")", R"("head_dim": null, "hidden_act")")).head_dim,
            128);
}

TEST_F(ConfigTest, BiasesOfLlama) {
  const ModelConfig config = Good(Edit(Edit(kLlama31, R"(n_bias": false)", R"(n_bias": true)"),
                                       R"("mlp_bias": false)", R"("mlp_bias": true)"));
  EXPECT_TRUE(config.qkv_bias && config.o_bias && config.mlp_bias);
  EXPECT_EQ(config.NumParameters(), 8030261248 + 32 * (4096 + 2 * 1024 + 4096 + 2 * 14336 + 4096));
}

TEST_F(ConfigTest, RopeParameters) {
  const std::string theta = R"("rope_theta": 1000000.0, )";
  const std::string newer = Edit(
      kMistral03, theta, R"("rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}, )");
  EXPECT_EQ(Good(newer).rope.theta, 500000);
  EXPECT_EQ(Good(Edit(kLlama31, R"("rope_theta": 500000.0, )", "")).rope.theta, 10000);
  const std::string bare = Edit(kMistral03, theta, R"("rope_parameters": {"rope_theta": 7}, )");
  EXPECT_EQ(Good(bare).rope.theta, 7);
  const std::string yarn = Edit(kMistral03, theta, R"("rope_parameters": {"rope_theta": 5e5,
      "rope_type": "yarn", "factor": 8, "original_max_position_embeddings": 16384,
      "beta_fast": 4.0, "mscale": 1.0, "mscale_all_dim": 0.5, "truncate": false}, )");
  const ModelConfig config = Good(yarn);
  EXPECT_EQ(config.rope.type, RopeType::kYarn);
  EXPECT_EQ(config.rope.beta_fast, 4);
  EXPECT_EQ(config.rope.beta_slow, 1);
  EXPECT_EQ(config.rope.mscale_all_dim, 0.5);
  EXPECT_FALSE(config.rope.truncate);
  EXPECT_EQ(config.max_position, 131072);
}

TEST_F(ConfigTest, OldSpellingOfScaling) {
  const ModelConfig linear = Good(Edit(kQwen3, R"("rope_scaling": null)",
                                       R"("rope_scaling": {"type": "linear", "factor": 2})"));
  EXPECT_EQ(linear.rope.type, RopeType::kLinear);
  EXPECT_EQ(linear.rope.factor, 2);
  const ModelConfig yarn = Good(Edit(kQwen3, R"("rope_scaling": null)", R"("rope_scaling":
      {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768})"));
  EXPECT_EQ(yarn.rope.original_max_position, 32768);
  EXPECT_EQ(yarn.max_position, 131072);
}

TEST_F(ConfigTest, DTypes) {
  EXPECT_EQ(Good(Edit(kQwen3, "bfloat16", "torch.float16")).file_dtype, DType::kF16);
  EXPECT_EQ(Good(Edit(kQwen3, R"("torch_dtype": "bfloat16")", R"("dtype": "float32")")).file_dtype,
            DType::kF32);
  const Status status = Load(Edit(kQwen3, "bfloat16", "float8_e4m3fn")).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("float8_e4m3fn"));
  EXPECT_EQ(Load(Edit(kQwen3, R"("torch_dtype": "bfloat16", )", "")).status().code(),
            StatusCode::kNotFound);  // there are no weights that state a dtype
}

// Empty values count as absent, as in transformers.
TEST_F(ConfigTest, EmptyValuesAreAbsent) {
  const std::string empty =
      Edit(kQwen3, R"("rope_scaling": null)", R"("rope_scaling": {}, "quantization_config": {})");
  EXPECT_EQ(Good("\xEF\xBB\xBF" + empty).rope.type, RopeType::kDefault);
  const ModelConfig none = Good(Edit(Edit(kQwen3, "151643", "-1"), R"("eos_token_id": 151645)",
                                     R"("eos_token_id": [-1, 3])"));
  EXPECT_FALSE(none.bos_token_id.has_value());
  EXPECT_THAT(none.eos_token_ids, ElementsAre(3));
  // The dtype is that of the weights, and there are no weights here.
  EXPECT_EQ(Load(Edit(kQwen3, "bfloat16", "auto")).status().code(), StatusCode::kNotFound);
}

TEST_F(ConfigTest, SlidingWindows) {
  const std::string window = R"("sliding_window": null)";
  const ModelConfig mistral = Good(Edit(kMistral03, window, R"("sliding_window": 4096)"));
  EXPECT_EQ(std::ranges::count(mistral.local.layers, true), 32);
  EXPECT_EQ(mistral.local.before, 4095);
  EXPECT_EQ(mistral.local.after, 0);
  EXPECT_EQ(mistral.local.rope.theta, 1e6);
  // A window that hides no key is ignored.
  EXPECT_FALSE(Good(Edit(kMistral03, window, R"("sliding_window": 32768)")).has_local_layers());
  EXPECT_EQ(Load(Edit(kMistral03, window, R"("sliding_window": 0)")).status().param(),
            "sliding_window");

  const std::string on =
      Edit(Edit(kQwen25, R"(w": false)", R"(w": true)"), ": 32768, \"tie", ": 4096, \"tie");
  const ModelConfig qwen = Good(on);
  EXPECT_FALSE(qwen.IsLocal(20));
  EXPECT_TRUE(qwen.IsLocal(21));
  EXPECT_FALSE(Good(Edit(on, R"(layers": 21)", R"(layers": 24)")).has_local_layers());
  const std::string off =
      Edit(on, R"("use_sliding_window": true)", R"("use_sliding_window": false)");
  EXPECT_FALSE(Good(off).has_local_layers());
  const std::string layers =
      Edit(Edit(kQwen3, R"("num_hidden_layers": 28)", R"("num_hidden_layers": 2)"), "{",
           R"({"layer_types": ["full_attention", "sliding_attention"], )");
  EXPECT_EQ(Load(layers).status().param(), "layer_types");
  const ModelConfig typed =
      Good(Edit(Edit(layers, R"("use_sliding_window": false)", R"("use_sliding_window": true)"),
                R"("sliding_window": null)", R"("sliding_window": 4096)"));
  EXPECT_THAT(typed.local.layers, ElementsAre(false, true));
  // In a mixture of experts, all layers have the window.
  const ModelConfig mixture =
      Good(Edit(Edit(kQwen3Moe, R"("use_sliding_window": false)", R"("use_sliding_window": true)"),
                R"("sliding_window": null)", R"("sliding_window": 4096)"));
  EXPECT_EQ(std::ranges::count(mixture.local.layers, true), 48);
  EXPECT_THAT(Load(Edit(layers, "sliding_att", "linear_att")).status().message(),
              HasSubstr("linear_attention"));
}

// Every kind of refusal: the change of the config, the code, and the field that the error names.
TEST_F(ConfigTest, Refusals) {
  using Code = StatusCode;
  ExpectRefused({
      {Edit(kQwen3, "Qwen3For", "Qwen3OmniFor"), Code::kUnsupported, "architectures"},
      {Edit(kQwen3, R"(["Qwen3ForCausalLM"])", "[]"), Code::kInvalidArgument, "architectures"},
      {Edit(kQwen3, R"("qwen3")", R"("gemma")"), Code::kInvalidArgument, "model_type"},
      {Edit(kQwen3, "silu", "gelu"), Code::kUnsupported, "hidden_act"},
      {Edit(kQwen3, "{", R"({"quantization_config": {"quant_method": "quip"}, )"),
       Code::kUnsupported, "quantization_config"},
      {Edit(kQwen3, R"("rope_theta": 1000000, )", ""), Code::kInvalidArgument, "rope_theta"},
      {Edit(kQwen3, "1000000,", "-1,"), Code::kInvalidArgument, "rope_theta"},
      {Edit(kQwen3, "{", R"({"rope_parameters": {"rope_theta": 3.0}, )"), Code::kInvalidArgument,
       "rope_theta"},
      {Edit(kLlama31, R"("llama3")", R"("dynamic")"), Code::kUnsupported, "rope_type"},
      {Edit(kLlama31, R"("llama3")", R"("longrope")"), Code::kUnsupported, "rope_type"},
      {Edit(kLlama31, R"(, "rope_type": "llama3")", ""), Code::kInvalidArgument, "rope_type"},
      {Edit(kLlama31, R"("factor": 8.0, )", ""), Code::kInvalidArgument, "factor"},
      {Edit(kLlama31, R"("factor": 8.0)", R"("factor": 0.5)"), Code::kInvalidArgument, "factor"},
      {Edit(kLlama31, "500000.0", "1e300"), Code::kInvalidArgument, "rope_theta"},
      {Edit(kLlama31, R"(_factor": 4.0)", R"(_factor": 1.0)"), Code::kInvalidArgument,
       "high_freq_factor"},
      {Edit(kLlama31, "8192", "0"), Code::kInvalidArgument, "original_max_position_embeddings"},
      {Edit(kLlama31, "{", R"({"rope_parameters": {"rope_type": "default"}, )"),
       Code::kInvalidArgument, "rope_scaling"},
      {Edit(kQwen3, "{", R"({"partial_rotary_factor": 0.5, )"), Code::kUnsupported,
       "partial_rotary_factor"},
      {Edit(kQwen3, "151936", "-5"), Code::kInvalidArgument, "vocab_size"},
      {Edit(kQwen3, "151936", "1e5"), Code::kInvalidArgument, "vocab_size"},
      {Edit(kQwen3, "151936", "99999999999999"), Code::kInvalidArgument, "vocab_size"},
      {Edit(kQwen3, "151936", "99999999999999999999"), Code::kInvalidArgument, "vocab_size"},
      {Edit(kQwen3, R"("hidden_size": 1024)", R"("hidden_size": "x")"), Code::kInvalidArgument,
       "hidden_size"},
      {Edit(kQwen3, R"("hidden_size": 1024, )", ""), Code::kInvalidArgument, "hidden_size"},
      {Edit(kQwen3, R"(value_heads": 8)", R"(value_heads": 5)"), Code::kInvalidArgument,
       "num_key_value_heads"},
      {Edit(kQwen3, R"("num_key_value_heads": 8, )", ""), Code::kInvalidArgument,
       "num_key_value_heads"},
      {Edit(kQwen3, R"("head_dim": 128)", R"("head_dim": 127)"), Code::kInvalidArgument,
       "head_dim"},
      {Edit(kLlama31, R"("hidden_size": 4096)", R"("hidden_size": 4097)"), Code::kInvalidArgument,
       "hidden_size"},
      {Edit(kQwen3, "1e-06", "0"), Code::kInvalidArgument, "rms_norm_eps"},
      {Edit(kQwen3, R"("rms_norm_eps": 1e-06, )", ""), Code::kInvalidArgument, "rms_norm_eps"},
      {Edit(kQwen3, "151645", "151936"), Code::kInvalidArgument, "eos_token_id"},
      {Edit(kQwen3, "151645", "[1, 2.5]"), Code::kInvalidArgument, "eos_token_id"},
      {Edit(kQwen3, "{", R"({"vocab_size": 5, )"), Code::kInvalidArgument, "vocab_size"},
      {"[1]", Code::kInvalidArgument, ""},
      {"{\"a\": ", Code::kInvalidArgument, ""},
      {"", Code::kInvalidArgument, ""},
  });
}

TEST_F(ConfigTest, RefusalsOfMixtures) {
  using Code = StatusCode;
  ExpectRefused({
      {Edit(kQwen3Moe, R"("num_experts": 128, )", ""), Code::kInvalidArgument, "num_experts"},
      {Edit(kQwen3Moe, R"(per_tok": 8)", R"(per_tok": 129)"), Code::kInvalidArgument,
       "num_experts_per_tok"},
      {Edit(kQwen3Moe, R"("moe_intermediate_size": 768, )", ""), Code::kInvalidArgument,
       "moe_intermediate_size"},
      {Edit(kQwen3Moe, "layers\": []", "layers\": [48]"), Code::kInvalidArgument,
       "mlp_only_layers"},
      {Edit(kQwen3Moe, "sparse_step\": 1", "sparse_step\": 49"), Code::kInvalidArgument,
       "mlp_only_layers"},
  });
}

TEST_F(ConfigTest, RewardModelsHaveOneOutput) {
  const std::string classifier = std::string(SKEIN_SOURCE_DIR) + "/tests/data/heads/";
  const ModelConfig plain = LoadModelConfig(classifier + "qwen2-classifier").value();
  EXPECT_FALSE(plain.decoder.reward_mlp);
  EXPECT_EQ(plain.num_classes, 2);
  EXPECT_EQ(plain.ArchitectureName(), "Qwen2ForSequenceClassification");
  const ModelConfig reward = LoadModelConfig(classifier + "qwen2-reward").value();
  EXPECT_EQ(reward.head, Head::kClassifier);
  EXPECT_TRUE(reward.decoder.reward_mlp);
  EXPECT_EQ(reward.num_classes, 1) << "although its config has two labels";
  EXPECT_EQ(reward.ArchitectureName(), "Qwen2ForRewardModel");
  // The head has two layers instead of one, and one row of outputs instead of two.
  EXPECT_EQ(reward.NumParameters(), plain.NumParameters() - 2 * 64 + 64 * 64 + 64 + 64 + 1);
}

// A damaged config is refused or has sensible values; none crashes the process.
TEST(ConfigDamage, SurvivesRandomDamage) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string alphabet = "{}[]\",:0123456789-eE.tF null";
  int accepted = 0;
  for (int n = 0; n < 8000; ++n) {
    std::string text = n % 2 == 0 ? kLlama31 : kQwen3;
    for (uint32_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      if (random() % 3 == 0) text.erase(at, 1 + random() % 3);
      if (random() % 3 == 0) text.insert(at, 1, alphabet[random() % alphabet.size()]);
      if (random() % 3 == 0) text[at % text.size()] = alphabet[random() % alphabet.size()];
    }
    const Result<ModelConfig> result = ParseModelConfig(text);
    if (!result.ok()) continue;
    ++accepted;
    const ModelConfig& config = result.value();
    ASSERT_GT(config.NumParameters(), 0) << text;
    ASSERT_GT(config.KvBytesPerToken(DType::kF32), 0) << text;
    ASSERT_EQ(config.num_heads % config.num_kv_heads, 0) << text;
    for (const double freq : MakeRopeTable(config.rope, config.head_dim).inv_freq) {
      ASSERT_TRUE(std::isfinite(freq) && freq >= 0) << text;
    }
  }
  EXPECT_GT(accepted, 100);
}

TEST_F(ConfigTest, BrokenGenerationConfigIsAnError) {
  Write("generation_config.json", "{");
  EXPECT_THAT(Load(kQwen3).status().message(), HasSubstr("generation_config.json"));
}

// transformers writes this number for "no limit". The test has it in a member that is not read, and
// in members that are read.
TEST_F(ConfigTest, NumbersBeyond64Bits) {
  const std::string huge = "1000000000000000019884624838656";
  std::string config = kQwen3;
  config.insert(config.find('{') + 1, "\"unknown\": [" + huge + ", -" + huge + ", 1e999],");
  Write("generation_config.json", "{\"max_length\": " + huge + "}");
  EXPECT_EQ(Good(config).hidden_size, Good(kQwen3).hidden_size);
  Write("generation_config.json", "{\"eos_token_id\": " + huge + "}");
  const Status status = Load(kQwen3).status();
  EXPECT_THAT(status.message(), HasSubstr("'eos_token_id' must be an integer"));
  EXPECT_THAT(status.message(), HasSubstr("is too large"));
}

TEST_F(ConfigTest, NoConfig) {
  EXPECT_EQ(LoadModelConfig(dir_.string()).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace skein
