#pragma once

#include <cstdint>
#include <string>

#include "model/config/config.h"

namespace skein {

// The names of the tensors of BERT's family in their files, without ".weight" and ".bias".
struct EncoderNames {
  std::string words, norm;
  std::string positions;                 // empty: rope
  std::string segments;                  // empty: no segments
  std::string distances, distance_norm;  // of RelativeAttention; empty: none
  std::string distance_bias;             // of RelativeBias; empty: none
  std::string head_dense, head_out;      // empty: no classifier
  // These are the head's that predicts masked tokens, with head_dense. Files may have the biases of
  // the logits under the decoder's name. Empty: no such head.
  std::string head_norm, decoder, decoder_bias;
  Activation head_activation = Activation::kNone;  // between the two layers of the head
};
EncoderNames NamesOfEncoder(const ModelConfig& config);

struct EncoderLayerNames {
  std::string query, key, value, attn_out, attn_norm, up, down, mlp_norm;
  // An encoder with rope has a gate. These stand in place of q, k and v, and of up and gate.
  std::string gate, qkv, up_gate;
  // The projections of the table of distances, to keys and to queries; empty: no such table.
  std::string distance_key, distance_query;
};
EncoderLayerNames NamesOfEncoderLayer(const ModelConfig& config, int32_t layer);

// The same names for ModernBERT.
struct ModernBertNames {
  std::string words, final_norm;
  std::string head_dense, head_norm, head_out;  // empty: there is no classifier
  std::string decoder;  // of the head that predicts masked tokens; empty: no such head
};
ModernBertNames NamesOfModernBert(const ModelConfig& config);

struct ModernBertLayerNames {
  std::string attn_norm;  // of the first layer: the norm of the embeddings
  std::string qkv, attn_out, mlp_norm;
  std::string gate_up;  // gate, then up
  std::string down;
};
ModernBertLayerNames NamesOfModernBertLayer(const ModelConfig& config, int32_t layer);

// Whether files may have this tensor, although no pass of the encoder reads it.
bool IsUnusedByEncoder(const ModelConfig& config, const std::string& name);

}  // namespace skein
