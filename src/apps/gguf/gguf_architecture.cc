#include "apps/gguf/gguf_architecture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/gguf/gguf_encoder.h"
#include "apps/gguf/gguf_keys.h"
#include "apps/gguf/gguf_labels.h"
#include "model/config/linear_config.h"
#include "model/config/rope.h"
#include "server/json/json.h"

namespace skein {
namespace {

constexpr char kLlama[] = "llama", kQwen3[] = "qwen3", kQwen35[] = "qwen35",
               kQwen35Moe[] = "qwen35moe", kQwen3Next[] = "qwen3next", kQwen2Moe[] = "qwen2moe",
               kOlmoe[] = "olmoe", kGptOss[] = "gpt-oss";
constexpr char kGemma[] = "gemma", kGemma2[] = "gemma2", kGemma3[] = "gemma3";
constexpr char kGemmaEmbedding[] = "gemma-embedding";

constexpr GgufArchitecture kArchitectures[] = {
    {kLlama, "LlamaForCausalLM", "llama"},
    {kLlama, "MixtralForCausalLM", "mixtral", true, false, true},
    {"qwen2", "Qwen2ForCausalLM", "qwen2"},
    {kQwen3, "Qwen3ForCausalLM", "qwen3"},
    {"qwen3moe", "Qwen3MoeForCausalLM", "qwen3_moe", true, false, true},
    {kQwen2Moe, "Qwen2MoeForCausalLM", "qwen2_moe", true, false, true},
    {kOlmoe, "OlmoeForCausalLM", "olmoe", true, false, true},
    {kGptOss, "GptOssForCausalLM", "gpt_oss", false, false, true},
    {kGemma, "GemmaForCausalLM", "gemma"},
    {kGemma2, "Gemma2ForCausalLM", "gemma2"},
    {kGemma3, "Gemma3ForCausalLM", "gemma3_text"},
    {kQwen35, "Qwen3_5ForCausalLM", "qwen3_5_text", false},
    {kQwen35Moe, "Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", false, false, true},
    {kQwen3Next, "Qwen3NextForCausalLM", "qwen3_next", false, false, true},
    {kGemmaEmbedding, "Gemma3TextModel", "gemma3_text", false},
    {kGgufBert, "BertModel", "bert", false, true},
    {kGgufNomicBert, "NomicBertModel", "nomic_bert", false, true},
    {kGgufModernBert, "ModernBertModel", "modernbert", false, true},
};

// Refuses settings of a file that the config of a plain decoder cannot express, except those that
// the architecture has.
Status CheckPlain(const GgufKeys& keys, const std::vector<std::string_view>& own) {
  for (const char* name : {"expert_count", "expert_shared_count", "attention.sliding_window",
                           "nextn_predict_layers"}) {
    if (std::ranges::find(own, std::string_view(name)) != own.end()) continue;
    SKEIN_ASSIGN_OR_RETURN(const auto count, keys.Int(name));
    if (count.value_or(0) != 0) {
      return keys.Unsupported(name, "is " + std::to_string(*count) + "; only 0 is supported");
    }
  }
  return Status::Ok();
}

constexpr char kRopeFactors[] = "rope_freqs.weight";

// The RoPE scaling of Llama 3.1 and 3.2, which a file stores as one factor per frequency. All
// published models have the parameters used here; a file with other factors is refused.
Result<Json> Llama3Scaling(const GgufModel& file, const Json& config) {
  const auto head_dim = config["head_dim"].get<int32_t>();
  SKEIN_ASSIGN_OR_RETURN(const GgufTensor factors, file.Find(kRopeFactors));
  if (factors.num_rows() != 1 || factors.row_elements() != head_dim / 2) {
    return Status(StatusCode::kInvalidArgument, file.path() + ": tensor '" + kRopeFactors +
                                                    "' must have " + std::to_string(head_dim / 2) +
                                                    " elements");
  }
  std::vector<float> found(static_cast<size_t>(head_dim / 2));
  factors.ReadRows(0, 1, found.data());
  RopeConfig rope = {.theta = config["rope_theta"].get<double>()};
  const RopeTable plain = MakeRopeTable(rope, head_dim);
  rope.type = RopeType::kLlama3;
  rope.original_max_position = 8192;
  for (const double factor : {8.0, 32.0}) {
    rope.factor = factor;
    const RopeTable scaled = MakeRopeTable(rope, head_dim);
    bool is_same = true;
    for (size_t i = 0; i < found.size(); ++i) {
      const double expected = plain.inv_freq[i] / scaled.inv_freq[i];
      is_same = is_same && std::abs(found[i] - expected) <= 1e-4 * expected;
    }
    if (is_same) {
      return Json{{"rope_type", "llama3"},
                  {"factor", factor},
                  {"low_freq_factor", rope.low_freq_factor},
                  {"high_freq_factor", rope.high_freq_factor},
                  {"original_max_position_embeddings", rope.original_max_position}};
    }
  }
  return Status(StatusCode::kUnsupported,
                file.path() + ": tensor '" + kRopeFactors +
                    "' is not the table of Llama 3.1 or 3.2; no other is supported");
}

Status ReadRopeScaling(const GgufModel& file, const GgufKeys& keys, Json* config) {
  if (file.Has(kRopeFactors)) {
    SKEIN_ASSIGN_OR_RETURN((*config)["rope_scaling"], Llama3Scaling(file, *config));
    return Status::Ok();
  }
  SKEIN_ASSIGN_OR_RETURN(const auto type, keys.String("rope.scaling.type"));
  if (!type || *type == "none") return Status::Ok();
  if (*type != "linear" && *type != "yarn") {
    return keys.Unsupported("rope.scaling.type",
                            "is '" + std::string(*type) + "'; supported are none, linear and yarn");
  }
  SKEIN_ASSIGN_OR_RETURN(const auto factor, keys.Double("rope.scaling.factor"));
  if (!factor) return keys.Error("rope.scaling.factor", "is missing");
  Json scaling = {{"rope_type", *type}, {"factor", ShortestDecimal(*factor)}};
  if (*type == "yarn") {
    SKEIN_RETURN_IF_ERROR(keys.Require("rope.scaling.original_context_length",
                                       "original_max_position_embeddings", &scaling));
    // Files do not state that the borders are not rounded.
    if ((*config)["model_type"] == "gpt_oss") scaling["truncate"] = false;
  }
  (*config)["rope_scaling"] = std::move(scaling);
  return Status::Ok();
}

// Keys and values must have one size, and the rotation must cover all of it unless a part may be
// `rotated`.
Status ReadHeadDim(const GgufKeys& keys, bool part_may_rotate, Json* config) {
  const int64_t heads = (*config)["num_attention_heads"].get<int64_t>();
  const int64_t hidden = (*config)["hidden_size"].get<int64_t>();
  SKEIN_ASSIGN_OR_RETURN(const auto key_length, keys.Int("attention.key_length"));
  if (!key_length && (heads <= 0 || hidden % heads != 0)) {
    return keys.Error("attention.head_count", "is " + std::to_string(heads) +
                                                  "; it must divide the embedding length " +
                                                  std::to_string(hidden));
  }
  const int64_t head_dim = key_length ? *key_length : hidden / heads;
  for (const char* name : {"attention.value_length", "rope.dimension_count"}) {
    if (part_may_rotate && name == std::string_view("rope.dimension_count")) continue;
    SKEIN_ASSIGN_OR_RETURN(const auto length, keys.Int(name));
    if (length.value_or(head_dim) != head_dim) {
      return keys.Unsupported(name, "is " + std::to_string(*length) + "; only the key length " +
                                        std::to_string(head_dim) + " is supported");
    }
  }
  (*config)["head_dim"] = head_dim;
  return Status::Ok();
}

// Scores are scaled by the head's size, except in the models with 27B parameters. Files do not
// state it.
void AddQueryScalar(int32_t layers_of_27b, Json* config) {
  const int64_t heads = (*config)["num_attention_heads"].get<int64_t>();
  const bool of_27b = (*config)["num_hidden_layers"] == layers_of_27b && heads > 0;
  (*config)["query_pre_attn_scalar"] =
      of_27b ? Json((*config)["hidden_size"].get<int64_t>() / heads) : (*config)["head_dim"];
}

// Reads the members that only Gemma 2 has. Files may leave out those of the published models.
Status ReadGemma2(const GgufKeys& keys, Json* config) {
  (*config)["hidden_activation"] = "gelu_pytorch_tanh";
  for (const char* name : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    SKEIN_ASSIGN_OR_RETURN(const auto cap, keys.Double(name));
    if (cap) (*config)[name] = ShortestDecimal(*cap);
  }
  SKEIN_ASSIGN_OR_RETURN(const auto window, keys.Int("attention.sliding_window"));
  if (window) (*config)["sliding_window"] = *window;
  AddQueryScalar(46, config);
  return Status::Ok();
}

// Reads the members that only Gemma 3 has. Files do not state that every sixth layer is global and
// that local layers have the theta 10,000.
Status ReadGemma3(const GgufKeys& keys, Json* config) {
  for (const char* name : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    SKEIN_ASSIGN_OR_RETURN(const auto cap, keys.Double(name));
    if (cap.value_or(0) != 0) return keys.Unsupported(name, "is there; only 0 is supported");
  }
  SKEIN_RETURN_IF_ERROR(keys.Require("attention.sliding_window", "sliding_window", config));
  (*config)["hidden_activation"] = "gelu_pytorch_tanh";
  (*config)["sliding_window_pattern"] = 6;
  (*config)["rope_local_base_freq"] = 10000.0;
  AddQueryScalar(62, config);
  return Status::Ok();
}

// Reads the members of a family, apart from sizes, rope and experts.
Status ReadFamily(const GgufKeys& keys, std::string_view architecture, Json* config) {
  (*config)["attention_bias"] = architecture == kGptOss;
  if (architecture == kGemma) {
    (*config)["hidden_act"] = "gelu_pytorch_tanh";
    return Status::Ok();
  }
  if (architecture == kGemma2) return ReadGemma2(keys, config);
  if (architecture == kGemma3) return ReadGemma3(keys, config);
  if (architecture == kGemmaEmbedding) {
    SKEIN_RETURN_IF_ERROR(ReadGemma3(keys, config));
    (*config)["use_bidirectional_attention"] = true;
    return Status::Ok();
  }
  (*config)["hidden_act"] = "silu";
  if (architecture != kGptOss) return Status::Ok();
  return keys.Require("attention.sliding_window", "sliding_window", config);
}

// Which layers of Qwen3.5 attend: by a flag for each, or every n-th.
Status ReadLinearLayerTypes(const GgufKeys& keys, Json* config) {
  constexpr char kFlags[] = "attention.recurrent_layers";
  constexpr int64_t kUsualInterval = 4;
  SKEIN_ASSIGN_OR_RETURN(const auto interval, keys.Int("full_attention_interval"));
  (*config)["full_attention_interval"] = interval.value_or(kUsualInterval);
  SKEIN_ASSIGN_OR_RETURN(const auto flags, keys.Ints(kFlags));
  if (!flags) return Status::Ok();
  const int64_t num_layers = (*config)["num_hidden_layers"].get<int64_t>();
  if (std::ssize(*flags) < num_layers) {
    return keys.Error(kFlags, "has " + std::to_string(flags->size()) + " elements, but there are " +
                                  std::to_string(num_layers) + " layers");
  }
  Json types = Json::array();
  for (int64_t i = 0; i < num_layers; ++i) {
    types.push_back((*flags)[static_cast<size_t>(i)] != 0 ? "linear_attention" : "full_attention");
  }
  (*config)["layer_types"] = std::move(types);
  return Status::Ok();
}

// Whether layers are linear: Qwen3.5 and Qwen3-Next.
bool HasLinearLayers(const GgufArchitecture& architecture) {
  return std::ranges::any_of(std::array{kQwen35, kQwen35Moe, kQwen3Next}, [&](const char* name) {
    return architecture.name == std::string_view(name);
  });
}

// The members that only Qwen3.5 has. Its block_count includes layers that guess further tokens.
Status ReadQwen35(const GgufKeys& keys, double theta, Json* config) {
  SKEIN_ASSIGN_OR_RETURN(const auto further, keys.Int("nextn_predict_layers"));
  const int64_t num_layers = (*config)["num_hidden_layers"].get<int64_t>();
  if (further.value_or(0) < 0 || further.value_or(0) >= num_layers) {
    return keys.Error("nextn_predict_layers", "is " + std::to_string(*further) + " of " +
                                                  std::to_string(num_layers) + " layers");
  }
  (*config)["num_hidden_layers"] = num_layers - further.value_or(0);
  SKEIN_RETURN_IF_ERROR(ReadLinearLayerTypes(keys, config));
  SKEIN_RETURN_IF_ERROR(keys.Require("ssm.conv_kernel", "linear_conv_kernel_dim", config));
  SKEIN_RETURN_IF_ERROR(keys.Require("ssm.group_count", "linear_num_key_heads", config));
  SKEIN_RETURN_IF_ERROR(keys.Require("ssm.state_size", "linear_key_head_dim", config));
  SKEIN_RETURN_IF_ERROR(keys.Require("ssm.time_step_rank", "linear_num_value_heads", config));
  SKEIN_RETURN_IF_ERROR(keys.Require("ssm.inner_size", "linear_value_head_dim", config));
  const int64_t v_heads = (*config)["linear_num_value_heads"].get<int64_t>();
  const int64_t v_width = (*config)["linear_value_head_dim"].get<int64_t>();
  if (v_heads < 1 || v_width % v_heads != 0) {
    return keys.Error("ssm.time_step_rank", "is " + std::to_string(v_heads) +
                                                "; it must divide the inner size " +
                                                std::to_string(v_width));
  }
  (*config)["linear_value_head_dim"] = v_width / v_heads;
  const int64_t head_dim = (*config)["head_dim"].get<int64_t>();
  SKEIN_ASSIGN_OR_RETURN(const auto rotated, keys.Int("rope.dimension_count"));
  const double part = static_cast<double>(rotated.value_or(head_dim)) /
                      static_cast<double>(std::max<int64_t>(head_dim, 1));
  (*config)["rope_parameters"] = {
      {"rope_type", "default"}, {"rope_theta", theta}, {"partial_rotary_factor", part}};
  return Status::Ok();
}

// The members that only a mixture of experts has. Files do not state whether the weights of the
// chosen experts sum to 1: that depends on the architecture, as in llama.cpp.
Status ReadExperts(const GgufKeys& keys, const GgufArchitecture& architecture, Json* config) {
  const std::string_view name = architecture.name;
  const bool is_gpt_oss = name == kGptOss;
  const char* const count = name == kLlama || is_gpt_oss ? "num_local_experts" : "num_experts";
  SKEIN_RETURN_IF_ERROR(keys.Require("expert_count", count, config));
  SKEIN_RETURN_IF_ERROR(keys.Require("expert_used_count", "num_experts_per_tok", config));
  if (is_gpt_oss) return keys.Require("expert_feed_forward_length", "intermediate_size", config);
  if (name != kLlama) (*config)["norm_topk_prob"] = name != kQwen2Moe && name != kOlmoe;
  if (name == kLlama || name == kOlmoe) return Status::Ok();  // experts have the size of an MLP
  SKEIN_RETURN_IF_ERROR(
      keys.Require("expert_feed_forward_length", "moe_intermediate_size", config));
  if (name != kQwen2Moe && name != kQwen35Moe && name != kQwen3Next) return Status::Ok();
  return keys.Require("expert_shared_feed_forward_length", "shared_expert_intermediate_size",
                      config);
}

// A decoder with the tensor cls.output gives classes. Only Qwen3's reranker has such files: the
// classes are the rows of the output matrix for "yes" and "no".
Status ReadDecoderClasses(const GgufModel& file, const GgufKeys& keys,
                          const GgufArchitecture& architecture, Json* config) {
  SKEIN_ASSIGN_OR_RETURN(const auto decision_type, keys.String("decision.type"));
  if (!file.Has(kGgufClasses) || decision_type) return Status::Ok();
  if (architecture.name != std::string_view(kQwen3)) {
    return Status(StatusCode::kUnsupported, file.path() + ": tensor '" + kGgufClasses +
                                                "' is there; supported are classifiers on " +
                                                kQwen3 + " and on encoders");
  }
  (*config)["architectures"] = Json::array({"Qwen3ForSequenceClassification"});
  return ReadGgufLabels(file, keys, config);
}

Status ReadSpecialTokens(const GgufMetadata& metadata, Json* config) {
  const std::pair<const char*, const char*> kTokens[] = {
      {"tokenizer.ggml.bos_token_id", "bos_token_id"},
      {"tokenizer.ggml.eos_token_id", "eos_token_id"},
      {"tokenizer.ggml.padding_token_id", "pad_token_id"}};
  for (const auto& [key, member] : kTokens) {
    SKEIN_ASSIGN_OR_RETURN(const auto id, metadata.Int(key));
    if (id) (*config)[member] = *id;
  }
  if (!config->contains("eos_token_id")) return Status::Ok();
  // The tokens that end a turn and a message, unless they also end a text.
  Json ends = Json::array({(*config)["eos_token_id"]});
  for (const char* key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    SKEIN_ASSIGN_OR_RETURN(const auto id, metadata.Int(key));
    if (id && std::ranges::find(ends, Json(*id)) == ends.end()) ends.push_back(*id);
  }
  if (ends.size() > 1) (*config)["eos_token_id"] = std::move(ends);
  return Status::Ok();
}

}  // namespace

std::span<const GgufArchitecture> GgufArchitectures() { return kArchitectures; }

Result<const GgufArchitecture*> FindGgufArchitecture(const GgufMetadata& metadata) {
  constexpr char kKey[] = "general.architecture";
  SKEIN_ASSIGN_OR_RETURN(const auto name, metadata.String(kKey));
  if (!name) return metadata.Error(kKey, "is missing");
  std::string known;
  SKEIN_ASSIGN_OR_RETURN(const auto experts, metadata.Int(std::string(*name) + ".expert_count"));
  for (const GgufArchitecture& architecture : kArchitectures) {
    // A file of Mixtral has the name of Llama's, and experts.
    const bool is_llama = architecture.name == std::string_view(kLlama);
    const bool fits = !is_llama || architecture.has_experts == (experts.value_or(0) > 0);
    if (*name == architecture.name && fits) return &architecture;
    if (is_llama && architecture.has_experts) continue;
    known += (known.empty() ? "" : ", ") + std::string(architecture.name);
  }
  return metadata.Unsupported(kKey, "is '" + std::string(*name) + "'; supported are " + known);
}

Result<Json> GgufConfigJson(const GgufModel& file, DType dtype) {
  const GgufMetadata& metadata = file.metadata();
  SKEIN_ASSIGN_OR_RETURN(const GgufArchitecture* const architecture,
                         FindGgufArchitecture(metadata));
  const GgufKeys keys(metadata, architecture->name);
  if (architecture->is_encoder) {
    SKEIN_ASSIGN_OR_RETURN(Json encoder, GgufEncoderConfigJson(file, *architecture));
    SKEIN_RETURN_IF_ERROR(ReadSpecialTokens(metadata, &encoder));
    return encoder;
  }
  const std::string_view name = architecture->name;
  const bool is_gemma3 = name == kGemma3 || name == kGemmaEmbedding;
  const bool is_linear = HasLinearLayers(*architecture);
  std::vector<std::string_view> own;
  if (is_gemma3 || name == kGemma2 || name == kGptOss) own.push_back("attention.sliding_window");
  if (architecture->has_experts) own.push_back("expert_count");
  if (is_linear) own.push_back("nextn_predict_layers");
  SKEIN_RETURN_IF_ERROR(CheckPlain(keys, own));
  SKEIN_ASSIGN_OR_RETURN(const GgufTensor embedding, file.Find("token_embd.weight"));

  Json config;
  config["architectures"] = Json::array({architecture->hugging_face});
  config["model_type"] = architecture->model_type;
  config["vocab_size"] = embedding.num_rows();
  SKEIN_RETURN_IF_ERROR(keys.Require("embedding_length", "hidden_size", &config));
  if (architecture->name != std::string_view(kQwen35Moe)) {
    SKEIN_RETURN_IF_ERROR(keys.Require("feed_forward_length", "intermediate_size", &config));
  }
  SKEIN_RETURN_IF_ERROR(keys.Require("block_count", "num_hidden_layers", &config));
  SKEIN_RETURN_IF_ERROR(keys.Require("attention.head_count", "num_attention_heads", &config));
  SKEIN_ASSIGN_OR_RETURN(const auto kv_heads, keys.Int("attention.head_count_kv"));
  config["num_key_value_heads"] = kv_heads ? Json(*kv_heads) : Json(config["num_attention_heads"]);
  SKEIN_RETURN_IF_ERROR(ReadHeadDim(keys, is_linear, &config));
  SKEIN_RETURN_IF_ERROR(keys.Require("context_length", "max_position_embeddings", &config));
  SKEIN_RETURN_IF_ERROR(ReadFamily(keys, name, &config));
  SKEIN_RETURN_IF_ERROR(
      keys.RequireDouble("attention.layer_norm_rms_epsilon", "rms_norm_eps", &config));
  SKEIN_ASSIGN_OR_RETURN(const auto theta, keys.Double("rope.freq_base"));
  config["rope_theta"] = ShortestDecimal(theta.value_or(is_gemma3 ? 1e6 : 1e4));
  SKEIN_RETURN_IF_ERROR(ReadRopeScaling(file, keys, &config));
  if (is_linear) {
    SKEIN_RETURN_IF_ERROR(ReadQwen35(keys, config["rope_theta"].get<double>(), &config));
    const bool is_next = architecture->name == std::string_view(kQwen3Next);
    if (!is_next) config[kTiledValueHeads] = true;
    // The first files of Qwen3-Next have the published matrices.
    if (is_next && !file.Has("blk.0.ssm_in.weight")) config[kSplitLinearInputs] = true;
  }
  if (architecture->has_experts) {
    SKEIN_RETURN_IF_ERROR(ReadExperts(keys, *architecture, &config));
  }
  SKEIN_RETURN_IF_ERROR(ReadDecoderClasses(file, keys, *architecture, &config));
  config["mlp_bias"] = false;
  config["tie_word_embeddings"] = !file.Has("output.weight");
  config["torch_dtype"] = dtype == DType::kF32 ? "float32" : "bfloat16";
  SKEIN_RETURN_IF_ERROR(ReadSpecialTokens(metadata, &config));
  return config;
}

}  // namespace skein
