#include "model/config/shapes.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

namespace skein {
namespace {

// The members of a JSON object. Their values are JSON text; they are sorted, as HuggingFace writes
// them.
using Members = std::map<std::string, std::string>;

// Formats a number as Python does: whole numbers end in ".0"; other numbers have the shortest form
// that reads back to the same value.
std::string Number(double value) {
  char text[32];
  if (value == static_cast<double>(static_cast<int64_t>(value))) {
    std::snprintf(text, sizeof(text), "%.1f", value);
    return text;
  }
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  return text;
}

std::string Quoted(const std::string& text) { return "\"" + text + "\""; }
std::string Flag(bool value) { return value ? "true" : "false"; }

std::string Ids(const std::vector<int32_t>& ids) {
  if (ids.size() == 1) return std::to_string(ids[0]);
  std::string text;
  for (const int32_t id : ids) text += (text.empty() ? "" : ", ") + std::to_string(id);
  return "[" + text + "]";
}

std::string Object(const Members& members) {
  std::string text = "{";
  for (const auto& [key, value] : members) {
    text += (text.size() == 1 ? "\n  \"" : ",\n  \"") + key + "\": " + value;
  }
  return text + "\n}\n";
}

std::string ScalingJson(const ModelShape& shape) {
  if (shape.llama3_factor == 0) return "null";
  return "{\"factor\": " + Number(shape.llama3_factor) +
         ", \"high_freq_factor\": 4.0, \"low_freq_factor\": 1.0, "
         "\"original_max_position_embeddings\": " +
         std::to_string(shape.llama3_original_max_position) + ", \"rope_type\": \"llama3\"}";
}

void AddQwen35(const ModelShape& shape, Members* members) {
  Members& m = *members;
  m["model_type"] = Quoted("qwen3_5_text");
  m["attention_bias"] = "false";
  m["attn_output_gate"] = "true";
  m["full_attention_interval"] = "4";
  m["linear_conv_kernel_dim"] = "4";
  m["linear_key_head_dim"] = m["linear_value_head_dim"] = std::to_string(shape.linear_head_dim);
  m["linear_num_key_heads"] = std::to_string(shape.linear_k_heads);
  m["linear_num_value_heads"] = std::to_string(shape.linear_v_heads);
  m["mamba_ssm_dtype"] = Quoted("float32");
  m["rope_parameters"] = "{\"partial_rotary_factor\": 0.25, \"rope_theta\": " + m["rope_theta"] +
                         ", \"rope_type\": \"default\"}";
  m.erase("rope_theta");
}

void AddExperts(const ModelShape& shape, Members* members) {
  Members& m = *members;
  m["moe_intermediate_size"] = std::to_string(shape.expert_size);
  m["num_experts"] = std::to_string(shape.num_experts);
  m["num_experts_per_tok"] = std::to_string(shape.experts_per_token);
  m["output_router_logits"] = "false";
  m["router_aux_loss_coef"] = "0.001";
  if (shape.shared_expert_size == 0) return;
  m["shared_expert_intermediate_size"] = std::to_string(shape.shared_expert_size);
}

void AddGptOss(const ModelShape& shape, Members* members) {
  Members& m = *members;
  m["model_type"] = Quoted("gpt_oss");
  m["attention_bias"] = "true";
  m["experts_per_token"] = m["num_experts_per_tok"] = std::to_string(shape.experts_per_token);
  m["num_local_experts"] = std::to_string(shape.num_experts);
  m["output_router_logits"] = "false";
  m["rope_scaling"] =
      "{\"beta_fast\": 32.0, \"beta_slow\": 1.0, \"factor\": 32.0, "
      "\"original_max_position_embeddings\": " +
      std::to_string(shape.max_position / 32) + ", \"rope_type\": \"yarn\", \"truncate\": false}";
  m["router_aux_loss_coef"] = "0.9";
  m["sliding_window"] = "128";
  m["swiglu_limit"] = "7.0";
}

void AddFamily(const ModelShape& shape, Members* members) {
  Members& m = *members;
  switch (shape.architecture) {
    case Architecture::kLlama:
      m["model_type"] = Quoted("llama");
      m["attention_bias"] = m["mlp_bias"] = "false";
      m["pretraining_tp"] = "1";
      m["rope_scaling"] = ScalingJson(shape);
      break;
    case Architecture::kMistral:
      m["model_type"] = Quoted("mistral");
      m["sliding_window"] = "null";
      break;
    case Architecture::kQwen2:
      m["model_type"] = Quoted("qwen2");
      m["max_window_layers"] = std::to_string(shape.num_layers);
      m["sliding_window"] = std::to_string(shape.max_position);
      m["use_sliding_window"] = "false";
      break;
    case Architecture::kQwen3:
      m["model_type"] = Quoted("qwen3");
      m["attention_bias"] = "false";
      m["max_window_layers"] = std::to_string(shape.num_layers);
      m["rope_scaling"] = m["sliding_window"] = "null";
      m["use_sliding_window"] = "false";
      break;
    case Architecture::kQwen3Moe:
      m["model_type"] = Quoted("qwen3_moe");
      m["attention_bias"] = "false";
      m["max_window_layers"] = std::to_string(shape.num_layers);
      m["rope_scaling"] = m["sliding_window"] = "null";
      m["use_sliding_window"] = "false";
      m["decoder_sparse_step"] = "1";
      m["mlp_only_layers"] = "[]";
      m["norm_topk_prob"] = "true";
      AddExperts(shape, members);
      break;
    case Architecture::kMixtral:
      m["model_type"] = Quoted("mixtral");
      m["num_experts_per_tok"] = std::to_string(shape.experts_per_token);
      m["num_local_experts"] = std::to_string(shape.num_experts);
      m["output_router_logits"] = "false";
      m["router_aux_loss_coef"] = "0.02";
      m["sliding_window"] = "null";
      break;
    case Architecture::kGptOss:
      AddGptOss(shape, members);
      break;
    case Architecture::kQwen35:
      AddQwen35(shape, members);
      break;
    case Architecture::kQwen35Moe:
      AddQwen35(shape, members);
      AddExperts(shape, members);
      m["model_type"] = Quoted("qwen3_5_moe_text");
      m.erase("intermediate_size");
      break;
    default:  // encoders have AddEncoder
      break;
  }
}

// Replaces the members of decoders by those of an encoder.
void AddEncoder(const ModelShape& shape, Members* members) {
  Members& m = *members;
  for (const char* key : {"attention_dropout", "hidden_act", "num_key_value_heads", "rms_norm_eps",
                          "rope_theta", "use_cache"}) {
    m.erase(key);
  }
  if (shape.architecture == Architecture::kMpnet) {
    m["model_type"] = Quoted("mpnet");
    m["hidden_act"] = Quoted("gelu");
    m["layer_norm_eps"] = Number(shape.rms_norm_eps);
    m["pad_token_id"] = "1";
    m["relative_attention_num_buckets"] = "32";
    return;
  }
  m["model_type"] = Quoted("modernbert");
  m["attention_bias"] = m["mlp_bias"] = m["norm_bias"] = "false";
  m["global_attn_every_n_layers"] = "3";
  m["global_rope_theta"] = Number(shape.rope_theta);
  m["local_rope_theta"] = Number(shape.local_rope_theta);
  m["local_attention"] = std::to_string(shape.local_attention);
  m["hidden_activation"] = Quoted("gelu");
  m["norm_eps"] = Number(shape.rms_norm_eps);
}

std::vector<ModelShape> EncoderShapes() {
  struct Shape {
    const char* name;
    int32_t hidden_size, intermediate_size, num_layers, num_heads, vocab_size, max_position;
    double local_rope_theta;
    SpecialTokens tokens;
  };
  const SpecialTokens modernbert = {50281, {50282}}, mmbert = {2, {1}};
  std::vector<ModelShape> shapes;
  for (const Shape& s :
       {Shape{"tiny-modernbert", 128, 192, 4, 4, 0, 2048, 1e4, {0, {0}}},
        Shape{"mmbert-small", 384, 1152, 22, 6, 256000, 8192, 1.6e5, mmbert},
        Shape{"mmbert-base", 768, 1152, 22, 12, 256000, 8192, 1.6e5, mmbert},
        Shape{"modernbert-base", 768, 1152, 22, 12, 50368, 8192, 1e4, modernbert},
        Shape{"modernbert-large", 1024, 2624, 28, 16, 50368, 8192, 1e4, modernbert}}) {
    shapes.push_back({.name = s.name,
                      .architecture = Architecture::kModernBert,
                      .hidden_size = s.hidden_size,
                      .intermediate_size = s.intermediate_size,
                      .num_layers = s.num_layers,
                      .num_heads = s.num_heads,
                      .num_kv_heads = s.num_heads,
                      .vocab_size = s.vocab_size,
                      .max_position = s.max_position,
                      .rope_theta = 1.6e5,
                      .rms_norm_eps = 1e-5,
                      .tie_embeddings = true,
                      .tokens = s.tokens,
                      .local_rope_theta = s.local_rope_theta,
                      .local_attention = 128});
  }
  return shapes;
}

std::vector<ModelShape> MpnetShapes() {
  ModelShape base = {.name = "all-mpnet-base-v2",
                     .architecture = Architecture::kMpnet,
                     .hidden_size = 768,
                     .intermediate_size = 3072,
                     .num_layers = 12,
                     .num_heads = 12,
                     .num_kv_heads = 12,
                     .vocab_size = 30527,
                     .max_position = 514,
                     .rms_norm_eps = 1e-5,
                     .tie_embeddings = true,
                     .tokens = {0, {2}}};
  ModelShape tiny = base;
  tiny.name = "tiny-mpnet";
  tiny.hidden_size = 128;
  tiny.intermediate_size = 384;
  tiny.num_layers = tiny.num_heads = tiny.num_kv_heads = 4;
  tiny.vocab_size = 0;
  return {std::move(tiny), std::move(base)};
}

std::vector<ModelShape> LinearShapes() {
  struct Shape {
    const char* name;
    int32_t hidden_size, intermediate_size, num_layers, num_heads, num_kv_heads, head_dim;
    int32_t linear_k_heads, linear_v_heads, linear_head_dim, vocab_size, max_position;
    double rope_theta;
    SpecialTokens tokens;
    // For a mixture of experts.
    int32_t num_experts = 0, experts_per_token = 0, expert_size = 0, shared_expert_size = 0;
  };
  const SpecialTokens qwen = {248044, {248046, 248044}};
  std::vector<ModelShape> shapes;
  for (const Shape& s :
       {Shape{"tiny-qwen3.5", 128, 384, 4, 4, 2, 32, 2, 4, 32, 0, 2048, 1e4, {0, {0}}},
        Shape{"tiny-qwen3.5-moe",
              128,
              0,
              4,
              4,
              2,
              32,
              2,
              4,
              32,
              0,
              2048,
              1e4,
              {0, {0}},
              16,
              4,
              96,
              160},
        Shape{"qwen3.5-0.8b", 1024, 3584, 24, 8, 2, 256, 16, 16, 128, 248320, 262144, 1e7, qwen},
        Shape{"qwen3.5-35b-a3b", 2048, 0, 40, 16, 2, 256, 16, 32, 128, 248320, 262144, 1e7, qwen,
              256, 8, 512, 512}}) {
    const bool is_moe = s.num_experts > 0;
    shapes.push_back({.name = s.name,
                      .architecture = is_moe ? Architecture::kQwen35Moe : Architecture::kQwen35,
                      .hidden_size = s.hidden_size,
                      .intermediate_size = s.intermediate_size,
                      .num_layers = s.num_layers,
                      .num_heads = s.num_heads,
                      .num_kv_heads = s.num_kv_heads,
                      .head_dim = s.head_dim,
                      .vocab_size = s.vocab_size,
                      .max_position = s.max_position,
                      .rope_theta = s.rope_theta,
                      .rms_norm_eps = 1e-6,
                      .tie_embeddings = !is_moe,
                      .tokens = s.tokens,
                      .num_experts = s.num_experts,
                      .experts_per_token = s.experts_per_token,
                      .expert_size = s.expert_size,
                      .shared_expert_size = s.shared_expert_size,
                      .linear_k_heads = s.linear_k_heads,
                      .linear_v_heads = s.linear_v_heads,
                      .linear_head_dim = s.linear_head_dim});
  }
  return shapes;
}

std::vector<ModelShape> DecoderShapes() {
  using A = Architecture;
  const SpecialTokens qwen = {151643, {151645, 151643}};
  const SpecialTokens llama3 = {128000, {128001, 128008, 128009}};
  const SpecialTokens small = {1, {2}};
  const SpecialTokens tiny = {0, {0}};
  // The values of the published configs, in the order of ModelShape's members.
  return {
      {"tiny", A::kQwen3, 128, 384, 4, 4, 2, 32, 0, 2048, 1e4, 1e-6, true, 0, 0, tiny},
      {"tiny-llama", A::kLlama, 96, 256, 3, 6, 2, 0, 0, 2048, 1e4, 1e-5, false, 8, 256, tiny},
      {"tiny-mistral", A::kMistral, 96, 256, 3, 3, 3, 0, 0, 2048, 1e6, 1e-5, false, 0, 0, tiny},
      {"tiny-qwen2", A::kQwen2, 112, 304, 3, 7, 1, 0, 0, 2048, 1e6, 1e-6, true, 0, 0, tiny},
      {"tiny-moe", A::kQwen3Moe, 128, 384, 4, 4, 2, 32, 0, 2048, 1e4, 1e-6, true, 0, 0, tiny, 16, 4,
       96},
      {"smollm2-135m", A::kLlama, 576, 1536, 30, 9, 3, 0, 49152, 8192, 1e5, 1e-5, true, 0, 0,
       small},
      {"smollm2-360m", A::kLlama, 960, 2560, 32, 15, 5, 0, 49152, 8192, 1e5, 1e-5, true, 0, 0,
       small},
      {"qwen2.5-0.5b", A::kQwen2, 896, 4864, 24, 14, 2, 0, 151936, 32768, 1e6, 1e-6, true, 0, 0,
       qwen},
      {"qwen2.5-1.5b", A::kQwen2, 1536, 8960, 28, 12, 2, 0, 151936, 32768, 1e6, 1e-6, true, 0, 0,
       qwen},
      {"qwen2.5-3b", A::kQwen2, 2048, 11008, 36, 16, 2, 0, 151936, 32768, 1e6, 1e-6, true, 0, 0,
       qwen},
      {"qwen2.5-7b", A::kQwen2, 3584, 18944, 28, 28, 4, 0, 152064, 32768, 1e6, 1e-6, false, 0, 0,
       qwen},
      {"qwen3-0.6b", A::kQwen3, 1024, 3072, 28, 16, 8, 128, 151936, 40960, 1e6, 1e-6, true, 0, 0,
       qwen},
      {"qwen3-1.7b", A::kQwen3, 2048, 6144, 28, 16, 8, 128, 151936, 40960, 1e6, 1e-6, true, 0, 0,
       qwen},
      {"qwen3-4b", A::kQwen3, 2560, 9728, 36, 32, 8, 128, 151936, 40960, 1e6, 1e-6, true, 0, 0,
       qwen},
      {"qwen3-8b", A::kQwen3, 4096, 12288, 36, 32, 8, 128, 151936, 40960, 1e6, 1e-6, false, 0, 0,
       qwen},
      {"qwen3-30b-a3b", A::kQwen3Moe, 2048, 6144, 48, 32, 4, 128, 151936, 40960, 1e6, 1e-6, false,
       0, 0, qwen, 128, 8, 768},
      {"llama3.2-1b", A::kLlama, 2048, 8192, 16, 32, 8, 64, 128256, 131072, 5e5, 1e-5, true, 32,
       8192, llama3},
      {"llama3.2-3b", A::kLlama, 3072, 8192, 28, 24, 8, 128, 128256, 131072, 5e5, 1e-5, true, 32,
       8192, llama3},
      {"llama3-8b", A::kLlama, 4096, 14336, 32, 32, 8, 0, 128256, 131072, 5e5, 1e-5, false, 8, 8192,
       llama3},
      {"mistral-7b", A::kMistral, 4096, 14336, 32, 32, 8, 0, 32768, 32768, 1e6, 1e-5, false, 0, 0,
       small},
  };
}

// Decoders in which every layer is a mixture of experts of the size of an MLP.
std::vector<ModelShape> MixtureShapes() {
  using A = Architecture;
  const SpecialTokens tiny = {0, {0}}, small = {1, {2}};
  const SpecialTokens harmony = {199998, {200002, 199999, 200012}};
  return {
      {"mixtral-8x7b", A::kMixtral, 4096, 14336, 32, 32, 8, 0, 32000, 32768, 1e6, 1e-5, false, 0, 0,
       small, 8, 2, 14336},
      {"tiny-gpt-oss", A::kGptOss, 128, 96, 4, 4, 2, 32, 0, 2048, 1.5e5, 1e-5, false, 0, 0, tiny, 8,
       3, 96},
      {"gpt-oss-20b", A::kGptOss, 2880, 2880, 24, 64, 8, 64, 201088, 131072, 1.5e5, 1e-5, false, 0,
       0, harmony, 32, 4, 2880},
      {"gpt-oss-120b", A::kGptOss, 2880, 2880, 36, 64, 8, 64, 201088, 131072, 1.5e5, 1e-5, false, 0,
       0, harmony, 128, 4, 2880},
  };
}

}  // namespace

std::span<const ModelShape> ModelShapes() {
  static const std::vector<ModelShape> kShapes = [] {
    std::vector<ModelShape> shapes = DecoderShapes();
    for (ModelShape& shape : MixtureShapes()) shapes.push_back(std::move(shape));
    for (ModelShape& shape : LinearShapes()) shapes.push_back(std::move(shape));
    for (ModelShape& shape : EncoderShapes()) shapes.push_back(std::move(shape));
    for (ModelShape& shape : MpnetShapes()) shapes.push_back(std::move(shape));
    return shapes;
  }();
  return kShapes;
}

const ModelShape* FindModelShape(std::string_view name) {
  for (const ModelShape& shape : ModelShapes()) {
    if (shape.name == name) return &shape;
  }
  return nullptr;
}

std::string ShapeConfigJson(const ModelShape& shape, int32_t vocab_size,
                            const SpecialTokens& tokens, DType dtype) {
  const char* torch_dtype = dtype == DType::kF32    ? "float32"
                            : dtype == DType::kBf16 ? "bfloat16"
                                                    : "float16";
  Members members = {
      {"architectures", "[\n    " + Quoted(NameOf(shape.architecture)) + "\n  ]"},
      {"attention_dropout", "0.0"},
      {"bos_token_id", std::to_string(tokens.bos)},
      {"eos_token_id", std::to_string(tokens.eos.front())},
      {"hidden_act", Quoted("silu")},
      {"hidden_size", std::to_string(shape.hidden_size)},
      {"initializer_range", "0.02"},
      {"intermediate_size", std::to_string(shape.intermediate_size)},
      {"max_position_embeddings", std::to_string(shape.max_position)},
      {"num_attention_heads", std::to_string(shape.num_heads)},
      {"num_hidden_layers", std::to_string(shape.num_layers)},
      {"num_key_value_heads", std::to_string(shape.num_kv_heads)},
      {"rms_norm_eps", Number(shape.rms_norm_eps)},
      {"rope_theta", Number(shape.rope_theta)},
      {"tie_word_embeddings", Flag(shape.tie_embeddings)},
      {"torch_dtype", Quoted(torch_dtype)},
      {"use_cache", "true"},
      {"vocab_size", std::to_string(shape.vocab_size > 0 ? shape.vocab_size : vocab_size)},
  };
  if (shape.head_dim > 0) members["head_dim"] = std::to_string(shape.head_dim);
  shape.architecture >= Architecture::kBert ? AddEncoder(shape, &members)
                                            : AddFamily(shape, &members);
  return Object(members);
}

std::string GenerationConfigJson(const SpecialTokens& tokens) {
  return Object({{"bos_token_id", std::to_string(tokens.bos)}, {"eos_token_id", Ids(tokens.eos)}});
}

}  // namespace skein
