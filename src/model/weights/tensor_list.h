#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/config/config.h"

namespace skein {

// The role of a weight, as far as it determines its random values.
enum class TensorRole {
  kEmbedding,  // [vocab, hidden]; also the output matrix
  kNorm,       // gains of an RMSNorm
  kBias,
  kInput,   // [out, in]: reads the normalized residual or the activations
  kOutput,  // adds to the residual: o_proj, down_proj
  // In linear layers:
  kConv,       // [conv_width, 1, kConvWidth]
  kDecay,      // A_log
  kPlainNorm,  // gains of an RMSNorm that files always store without an offset
};

struct ModelTensor {
  std::string name;  // as in HuggingFace files: "model.layers.0.self_attn.q_proj.weight"
  std::vector<int64_t> shape;
  TensorRole role = TensorRole::kInput;
};

// Every weight of a model with this config, in the order of the computation. The sizes add up to
// NumParameters().
std::vector<ModelTensor> ListTensors(const ModelConfig& config);

}  // namespace skein
