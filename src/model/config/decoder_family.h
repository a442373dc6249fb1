#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "model/config/config.h"

namespace skein {

// Which layers of a family have a sliding window, where the config gives its size.
enum class WindowRule : uint8_t {
  kNone,        // the family has none
  kEveryLayer,  // Mistral; Phi-3, where it may lack
  kSwitched,    // Qwen: with `use_sliding_window`, the layers from `max_window_layers` on
  kPattern,     // Gemma 3, OLMo 3: all but every n-th layer, by `sliding_window_pattern`
};

// The size that a member stands for where it is absent.
struct SizeDefault {
  const char* key;
  int32_t value;
};

// The facts that a family of decoders fixes, beside the sizes that its config.json states. They are
// those of the reference library's model of that name.
struct DecoderFamily {
  Architecture architecture;
  bool qkv_bias = false;             // q, k and v always have biases
  bool attention_bias = false;       // `attention_bias` gives biases to q, k, v and o
  bool mlp_bias = false;             // `mlp_bias` gives biases to gate, up and down
  bool qk_norm = false;              // RMSNorm over each head of q and k
  bool qk_norm_spans_heads = false;  // over all of them instead
  bool fused_projections = false;    // q, k, v are one matrix; so are gate, up
  bool partial_rotation = false;     // `partial_rotary_factor`, and longrope
  bool has_multipliers = false;      // Granite's four
  bool may_not_rotate = false;       // SmolLM3: `no_rope_layers` names the layers with rope
  NormPlacement norms = NormPlacement::kBefore;
  // Gemma: gains less one, embeddings times sqrt(hidden_size), `query_pre_attn_scalar`,
  // `hidden_activation`.
  bool is_gemma = false;
  bool tie_embeddings = false;  // where `tie_word_embeddings` is absent
  WindowRule window = WindowRule::kNone;
  int32_t head_dim = 0;              // where `head_dim` is absent; 0: hidden_size / heads
  bool kv_heads_may_lack = false;    // without `num_key_value_heads`, each head has its own k and v
  double rope_theta = 0;             // where `rope_theta` is absent; 0: that is an error
  double local_rope_theta = 0;       // where `rope_local_base_freq` is absent; 0: local layers have
                                     // the rope of global ones
  bool local_rope_is_plain = false;  // that rope without its scaling
  bool window_may_lack = false;      // without `sliding_window` there is none
  bool has_linear_layers = false;    // Qwen3.5: `layer_types`, gates of attention, gains less one
  double rotated_part = 1;           // where `partial_rotary_factor` is absent
  int32_t window_pattern = 0;        // where `sliding_window_pattern` is absent
  std::span<const SizeDefault> defaults = {};  // of other members
};

// The family's default for `key`; nullopt if it has none.
std::optional<int32_t> DefaultOf(const DecoderFamily& family, std::string_view key);

// REQUIRES: a decoder.
const DecoderFamily& FamilyOf(Architecture architecture);

}  // namespace skein
