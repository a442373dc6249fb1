#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/config/config.h"

namespace skein {

// What a weight does, as far as its numbers depend on it.
enum class TensorRole {
  kEmbedding,  // [vocab, hidden]; the output matrix too
  kNorm,       // gains of an RMSNorm
  kBias,
  kInput,   // a projection that reads the normalized residual or the activations [out, in]
  kOutput,  // one that adds to the residual: o_proj, down_proj
};

struct ModelTensor {
  std::string name;  // as in HuggingFace files: "model.layers.0.self_attn.q_proj.weight"
  std::vector<int64_t> shape;
  TensorRole role = TensorRole::kInput;
};

// Every weight that a model of this config has, in the order of the computation. The sizes add up
// to NumParameters().
std::vector<ModelTensor> ListTensors(const ModelConfig& config);

}  // namespace skein
