#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/config/config.h"

namespace skein {

// The names of the tensors of one decoder layer, without ".weight" and ".bias". A name is empty if
// the architecture has no such tensor.
struct DecoderLayerNames {
  std::string attn_norm, post_attn_norm, mlp_norm, post_mlp_norm;
  std::string q, k, v;
  std::string qkv;  // instead of q, k and v: one matrix of q, then k, then v
  std::string q_norm, k_norm, o;
  std::string sinks;  // the complete name
  std::string gate, up;
  std::string gate_up;  // instead of gate and up: one matrix of gate, then up
  std::string down;
  // A linear layer has these instead of q, k, v and o. conv, a_log and dt_bias are complete names.
  std::string linear_qkv, linear_z, linear_b, linear_a;
  // Instead of the first two, and of the others (LinearLayers::fused_qkvz, fused_ba).
  std::string linear_qkvz, linear_ba;
  std::string conv, a_log, dt_bias, linear_norm;
  // A mixture of experts. Expert i is experts + "i." + gate_proj, ... The names of gate, up and
  // down are those of the shared expert, if there is one.
  std::string router, experts, shared_gate;
};
DecoderLayerNames NamesOfDecoderLayer(const ModelConfig& config, int32_t layer);

inline constexpr std::string_view kDecoderEmbedding = "model.embed_tokens";
inline constexpr std::string_view kDecoderNorm = "model.norm";
inline constexpr std::string_view kDecoderOutput = "lm_head";

// The name of a module's weight: "model.norm.weight".
inline std::string WeightName(std::string_view module) {
  return std::string(module).append(".weight");
}

// Whether files may have this tensor, although no pass of the decoder reads it.
bool IsUnusedByDecoder(const ModelConfig& config, const std::string& name);

}  // namespace skein
