#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/config.h"

namespace skein {

// The special tokens that a config names.
struct SpecialTokens {
  int32_t bos = 0;
  std::vector<int32_t> eos;
};

// The shape of a published model, or of a tiny one for tests.
struct ModelShape {
  const char* name;
  Architecture architecture;
  int32_t hidden_size;
  int32_t intermediate_size;  // 0: the config has no such member
  int32_t num_layers, num_heads, num_kv_heads;
  int32_t head_dim;    // 0 if the published config leaves it to hidden_size / num_heads
  int32_t vocab_size;  // 0: the vocabulary of the tokenizer
  int32_t max_position;
  double rope_theta, rms_norm_eps;
  bool tie_embeddings;
  double llama3_factor;  // 0: no scaling
  int32_t llama3_original_max_position;
  SpecialTokens tokens;
  // For a mixture of experts.
  int32_t num_experts = 0, experts_per_token = 0, expert_size = 0;
  int32_t shared_expert_size = 0;  // 0: no shared expert
  // For Qwen3.5, in which every fourth layer attends.
  int32_t linear_k_heads = 0, linear_v_heads = 0, linear_head_dim = 0;
  // For encoders, rms_norm_eps is that of LayerNorm. For ModernBERT, whose rope_theta is that of
  // global layers:
  double local_rope_theta = 0;
  int32_t local_attention = 0;  // tokens of the window of local layers
};

// All shapes, ordered by size within each family.
std::span<const ModelShape> ModelShapes();
const ModelShape* FindModelShape(std::string_view name);  // null if no shape has this name

// The config.json of a model of this shape, with the fields of its family's published files.
// `vocab_size` is used if the shape's is 0.
std::string ShapeConfigJson(const ModelShape& shape, int32_t vocab_size,
                            const SpecialTokens& tokens, DType dtype);
std::string GenerationConfigJson(const SpecialTokens& tokens);

}  // namespace skein
