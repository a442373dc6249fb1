#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "kernels/kernels.h"
#include "kernels/packed_weight.h"

namespace skein {

// A Dense module of sentence-transformers: it turns a pooled state x [in_features] into
// activation(W x + b) [out_features].
struct DenseModule {
  std::string dir;  // the directory of its config.json and model.safetensors
  int32_t in_features = 0;
  int32_t out_features = 0;
  bool has_bias = true;
  Activation activation = Activation::kTanh;
};

// The weights of a Dense module; the matrix is in the compute type.
struct DenseWeights {
  PackedWeight weight;      // [out_features, in_features]
  std::vector<float> bias;  // [out_features]; empty: no biases
  Activation activation = Activation::kNone;
};

// Reads dir/config.json. Fails with kUnsupported, naming the member, if this engine would compute
// the module differently: other activations, residuals, or inputs other than the embedding, or
// other than the tokens' states if the module is `of_tokens`.
Result<DenseModule> LoadDenseModule(const std::string& dir, bool of_tokens = false);

// Reads dir/model.safetensors.
Result<DenseWeights> LoadDenseWeights(const DenseModule& module, DType dtype);

}  // namespace skein
