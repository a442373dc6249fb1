#pragma once

#include <cstdint>
#include <string>

#include "model/config/config.h"

namespace skein {

// The names of an encoder's tensors in its files, without ".weight" and ".bias".
struct EncoderNames {
  std::string words, positions, norm;
  std::string segments;                            // empty: no segments
  std::string head_dense, head_out;                // empty: no classifier
  Activation head_activation = Activation::kNone;  // between the two layers of the head
};
EncoderNames NamesOfEncoder(const ModelConfig& config);

struct EncoderLayerNames {
  std::string query, key, value, attn_out, attn_norm, up, down, mlp_norm;
};
EncoderLayerNames NamesOfEncoderLayer(const ModelConfig& config, int32_t layer);

}  // namespace skein
