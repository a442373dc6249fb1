#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/config.h"

namespace skein {

// The layers of a family that have a sliding window, if the config gives the window's size.
enum class WindowRule : uint8_t {
  kNone,        // no layer
  kEveryLayer,  // every layer: Mistral; Phi-3, whose config may lack a window
  kSwitched,    // Qwen: with `use_sliding_window`, the layers from `max_window_layers` on
  kAlternate,   // Qwen2-MoE: with `use_sliding_window`, every other layer below `max_window_layers`
  kPattern,     // Gemma 2 and 3, OLMo 3: all but every n-th layer, by `sliding_window_pattern`
};

// The default of a size whose member is absent.
struct SizeDefault {
  const char* key;
  int32_t value;
};

// The facts of a family's mixtures of experts.
struct ExpertRules {
  bool exist = false;  // whether the family has experts
  // Every layer has them; else every `decoder_sparse_step`-th one that `mlp_only_layers` does not
  // name.
  bool in_every_layer = false;
  bool replace_mlps = false;  // the config has no `intermediate_size`, as no layer has such an MLP
  const char* size_key = "moe_intermediate_size";  // the intermediate size of an expert
  bool has_shared = false;                         // `shared_expert_intermediate_size`
  bool norms_weights = false;                      // if `norm_topk_prob` is absent
  bool has_norm_flag = true;                       // whether the family knows `norm_topk_prob`
};

// The facts that a family of decoders fixes, besides the sizes in its config.json. They are those
// of the reference library's model with the family's name.
struct DecoderFamily {
  Architecture architecture;
  bool qkv_bias = false;             // q, k and v always have biases
  bool qkv_bias_may_lack = false;    // but not if `qkv_bias` is false
  bool attention_bias = false;       // `attention_bias` gives biases to q, k, v and o
  bool mlp_bias = false;             // `mlp_bias` gives biases to gate, up and down
  bool qk_norm = false;              // RMSNorm over each head of q and k
  bool qk_norm_spans_heads = false;  // the norm spans all heads
  bool fused_projections = false;    // q, k, v are one matrix; so are gate, up
  bool partial_rotation = false;     // `partial_rotary_factor`, and longrope
  bool has_multipliers = false;      // Granite's four multipliers
  bool may_clip = false;             // OLMoE: `clip_qkv` bounds q, k and v; only null is supported
  bool may_not_rotate = false;       // SmolLM3: `no_rope_layers` tells which layers have rope
  NormPlacement norms = NormPlacement::kBefore;
  // Gemma: gains are stored minus one, embeddings are multiplied by sqrt(hidden_size); the config
  // has `hidden_activation`, and from Gemma 2 on `query_pre_attn_scalar`.
  bool is_gemma = false;
  // Gemma 2: if `attn_logit_softcapping` and `final_logit_softcapping` are absent. 0: only null is
  // supported.
  float score_cap = 0, logits_cap = 0;
  bool tie_embeddings = false;  // if `tie_word_embeddings` is absent
  WindowRule window = WindowRule::kNone;
  int32_t head_dim = 0;              // if `head_dim` is absent; 0: hidden_size / heads
  bool kv_heads_may_lack = false;    // without `num_key_value_heads`, each head has its own k and v
  double rope_theta = 0;             // if `rope_theta` is absent; 0: an error then
  double local_rope_theta = 0;       // if `rope_local_base_freq` is absent; 0: local layers have
                                     // the rope of global layers
  bool local_rope_is_plain = false;  // local layers have the global rope without its scaling
  bool window_may_lack = false;      // without `sliding_window` there is no window
  bool has_linear_layers = false;    // Qwen3.5: `layer_types`, gates of attention, gains minus one
  bool fused_linear_inputs = false;  // LinearLayers::fused_qkvz
  double rotated_part = 1;           // if `partial_rotary_factor` is absent
  int32_t window_pattern = 0;        // if `sliding_window_pattern` is absent
  ExpertRules experts = {};
  std::span<const SizeDefault> defaults = {};  // of other absent members
};

// The family's default for `key`; nullopt if there is none.
std::optional<int32_t> DefaultOf(const DecoderFamily& family, std::string_view key);

// Reads an integer in [1, max]. If the member is absent, the family's default is used; without one,
// that is an error.
Status ReadOwnSize(const JsonObject& json, const DecoderFamily& family, const char* key,
                   int64_t max, int32_t* out);

// REQUIRES: the architecture is a decoder.
const DecoderFamily& FamilyOf(Architecture architecture);

}  // namespace skein
