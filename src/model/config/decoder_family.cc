#include "model/config/decoder_family.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "model/config/config_fields.h"

namespace skein {
namespace {

// Published configs of Gemma 3 omit these members if their values are the defaults of HuggingFace's
// transformers.
constexpr SizeDefault kGemma3Sizes[] = {
    {"vocab_size", 262208},     {"num_attention_heads", 8},
    {"num_key_value_heads", 4}, {"max_position_embeddings", 131072},
    {"sliding_window", 4096},   {"query_pre_attn_scalar", 256},
};

// The same for Gemma 2.
constexpr SizeDefault kGemma2Sizes[] = {
    {"max_position_embeddings", 8192},
    {"sliding_window", 4096},
    {"query_pre_attn_scalar", 256},
};

// The defaults of transformers for Qwen3.5.
constexpr SizeDefault kQwen35Sizes[] = {
    {"vocab_size", 248320},         {"hidden_size", 4096},          {"intermediate_size", 12288},
    {"num_hidden_layers", 32},      {"num_attention_heads", 16},    {"num_key_value_heads", 4},
    {"linear_key_head_dim", 128},   {"linear_value_head_dim", 128}, {"linear_num_key_heads", 16},
    {"linear_num_value_heads", 32}, {"linear_conv_kernel_dim", 4},  {"full_attention_interval", 4},
};

// The defaults of transformers for gpt-oss.
constexpr SizeDefault kGptOssSizes[] = {{"sliding_window", 128}};

// The defaults of transformers for Qwen3.5's mixtures of experts.
constexpr SizeDefault kQwen35MoeSizes[] = {
    {"vocab_size", 248320},         {"hidden_size", 2048},
    {"num_hidden_layers", 40},      {"num_attention_heads", 16},
    {"num_key_value_heads", 2},     {"max_position_embeddings", 32768},
    {"linear_key_head_dim", 128},   {"linear_value_head_dim", 128},
    {"linear_num_key_heads", 16},   {"linear_num_value_heads", 32},
    {"linear_conv_kernel_dim", 4},  {"full_attention_interval", 4},
    {"moe_intermediate_size", 512}, {"shared_expert_intermediate_size", 512},
    {"num_experts", 256},           {"num_experts_per_tok", 8},
};

// The defaults of transformers for Qwen3-Next's linear layers.
constexpr SizeDefault kQwen3NextSizes[] = {
    {"linear_key_head_dim", 128},   {"linear_value_head_dim", 128}, {"linear_num_key_heads", 16},
    {"linear_num_value_heads", 32}, {"linear_conv_kernel_dim", 4},  {"full_attention_interval", 4},
};

constexpr DecoderFamily kFamilies[] = {
    {.architecture = Architecture::kLlama,
     .attention_bias = true,
     .mlp_bias = true,
     .kv_heads_may_lack = true,
     .rope_theta = 1e4},  // Llama 1 and 2 were published without rope_theta
    {.architecture = Architecture::kMistral, .window = WindowRule::kEveryLayer},
    {.architecture = Architecture::kQwen2, .qkv_bias = true, .window = WindowRule::kSwitched},
    {.architecture = Architecture::kQwen3,
     .attention_bias = true,
     .qk_norm = true,
     .window = WindowRule::kSwitched,
     .head_dim = 128},
    {.architecture = Architecture::kQwen3Moe,
     .attention_bias = true,
     .qk_norm = true,
     .window = WindowRule::kSwitched,
     .experts = {.exist = true}},
    {.architecture = Architecture::kQwen2Moe,
     .qkv_bias = true,
     .qkv_bias_may_lack = true,
     .window = WindowRule::kAlternate,
     .experts = {.exist = true, .has_shared = true}},
    {.architecture = Architecture::kOlmoe,
     .attention_bias = true,
     .qk_norm = true,
     .qk_norm_spans_heads = true,
     .may_clip = true,
     .kv_heads_may_lack = true,
     .experts = {.exist = true, .in_every_layer = true, .size_key = "intermediate_size"}},
    {.architecture = Architecture::kMixtral,
     .window = WindowRule::kEveryLayer,
     .window_may_lack = true,
     .experts = {.exist = true,
                 .in_every_layer = true,
                 .size_key = "intermediate_size",
                 .norms_weights = true,
                 .has_norm_flag = false}},
    {.architecture = Architecture::kGemma,
     .attention_bias = true,
     .is_gemma = true,
     .tie_embeddings = true,
     .head_dim = 256,
     .rope_theta = 1e4},
    {.architecture = Architecture::kGemma2,
     .attention_bias = true,
     .norms = NormPlacement::kAround,
     .is_gemma = true,
     .score_cap = 50,
     .logits_cap = 30,
     .tie_embeddings = true,
     .window = WindowRule::kPattern,
     .head_dim = 256,
     .rope_theta = 1e4,
     .window_pattern = 2,
     .defaults = kGemma2Sizes},
    {.architecture = Architecture::kGemma3,
     .attention_bias = true,
     .qk_norm = true,
     .norms = NormPlacement::kAround,
     .is_gemma = true,
     .tie_embeddings = true,
     .window = WindowRule::kPattern,
     .head_dim = 256,
     .rope_theta = 1e6,
     .local_rope_theta = 1e4,
     .window_pattern = 6,
     .defaults = kGemma3Sizes},
    {.architecture = Architecture::kPhi3,
     .fused_projections = true,
     .partial_rotation = true,
     .window = WindowRule::kEveryLayer,
     .window_may_lack = true},
    {.architecture = Architecture::kOlmo2,
     .attention_bias = true,
     .qk_norm = true,
     .qk_norm_spans_heads = true,
     .norms = NormPlacement::kBehind,
     .kv_heads_may_lack = true},
    {.architecture = Architecture::kOlmo3,
     .attention_bias = true,
     .qk_norm = true,
     .qk_norm_spans_heads = true,
     .norms = NormPlacement::kBehind,
     .window = WindowRule::kPattern,
     .kv_heads_may_lack = true,
     .local_rope_is_plain = true,
     .window_pattern = 4},
    {.architecture = Architecture::kGranite,
     .attention_bias = true,
     .mlp_bias = true,
     .has_multipliers = true,
     .kv_heads_may_lack = true},
    {.architecture = Architecture::kSmolLm3,
     .attention_bias = true,
     .mlp_bias = true,
     .may_not_rotate = true,
     .tie_embeddings = true,
     .window = WindowRule::kSwitched,
     .rope_theta = 2e6},
    {.architecture = Architecture::kQwen35,
     .qk_norm = true,
     .partial_rotation = true,
     .head_dim = 256,
     .has_linear_layers = true,
     .rotated_part = 0.25,
     .defaults = kQwen35Sizes},
    {.architecture = Architecture::kGptOss,
     .window = WindowRule::kPattern,
     .head_dim = 64,
     .rope_theta = 150000,
     .window_pattern = 2,
     .experts = {.exist = true,
                 .in_every_layer = true,
                 .size_key = "intermediate_size",
                 .norms_weights = true,
                 .has_norm_flag = false},
     .defaults = kGptOssSizes},
    {.architecture = Architecture::kQwen35Moe,
     .qk_norm = true,
     .partial_rotation = true,
     .head_dim = 256,
     .has_linear_layers = true,
     .rotated_part = 0.25,
     .experts = {.exist = true,
                 .in_every_layer = true,
                 .replace_mlps = true,
                 .has_shared = true,
                 .norms_weights = true,
                 .has_norm_flag = false},
     .defaults = kQwen35MoeSizes},
    {.architecture = Architecture::kQwen3Next,
     .qk_norm = true,
     .partial_rotation = true,
     .head_dim = 256,
     .has_linear_layers = true,
     .fused_linear_inputs = true,
     .rotated_part = 0.25,
     .experts = {.exist = true, .has_shared = true, .norms_weights = true},
     .defaults = kQwen3NextSizes},
};

}  // namespace

std::optional<int32_t> DefaultOf(const DecoderFamily& family, std::string_view key) {
  for (const SizeDefault& entry : family.defaults) {
    if (entry.key == key) return entry.value;
  }
  return std::nullopt;
}

Status ReadOwnSize(const JsonObject& json, const DecoderFamily& family, const char* key,
                   int64_t max, int32_t* out) {
  const auto standard = DefaultOf(family, key);
  if (!standard || json.Has(key)) return RequireSize(json, key, max, out);
  *out = *standard;
  return Status::Ok();
}

const DecoderFamily& FamilyOf(Architecture architecture) {
  const auto* found = std::ranges::find(kFamilies, architecture, &DecoderFamily::architecture);
  SKEIN_CHECK(found != std::end(kFamilies));
  return *found;
}

}  // namespace skein
