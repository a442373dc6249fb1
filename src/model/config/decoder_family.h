#pragma once

#include <cstdint>

#include "model/config/config.h"

namespace skein {

// Which layers of a family have a sliding window, where the config gives its size.
enum class WindowRule : uint8_t {
  kNone,        // the family has none
  kEveryLayer,  // Mistral, Phi-3
  kSwitched,    // Qwen: with `use_sliding_window`, the layers from `max_window_layers` on
};

// The facts that a family of decoders fixes, beside the sizes that its config.json states. They are
// those of the reference library's model of that name.
struct DecoderFamily {
  Architecture architecture;
  bool qkv_bias = false;        // q, k and v always have biases
  bool attention_bias = false;  // `attention_bias` gives biases to q, k, v and o
  bool mlp_bias = false;        // `mlp_bias` gives biases to gate, up and down
  bool qk_norm = false;         // RMSNorm over each head of q and k
  WindowRule window = WindowRule::kNone;
  int32_t head_dim = 0;            // where `head_dim` is absent; 0: hidden_size / heads
  bool kv_heads_may_lack = false;  // without `num_key_value_heads`, each head has its own k and v
  double rope_theta = 0;           // where `rope_theta` is absent; 0: that is an error
};

// REQUIRES: a decoder.
const DecoderFamily& FamilyOf(Architecture architecture);

}  // namespace skein
