#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "io/model_files.h"
#include "kernels/packed_weight.h"
#include "model/config/config.h"
#include "model/weights/tensor_list.h"

namespace skein {

// A matrix and its biases.
struct BiasedWeight {
  PackedWeight weight;      // [n, k] in f32
  std::vector<float> bias;  // [n]
};

// The parameters of a LayerNorm.
struct LayerNormWeights {
  std::vector<float> weight, bias;  // [width]
};

// A layer of a compact head, which normalizes before attention and before the MLP.
struct CompactHeadLayer {
  LayerNormWeights attn_norm, mlp_norm;
  BiasedWeight qkv;   // [3 * width, width]
  BiasedWeight o;     // [width, width]
  BiasedWeight up;    // [4 * width, width]
  BiasedWeight down;  // [width, 4 * width]
};

// The head of a model of the package sysone, always in f32. Its sequence is a question's type, its
// options and the summary, without positions. The head computes x = norm(type or in · state), runs
// its layers over x, and then y = norm(x). The logit of option i is
//
//   (summary · y_summary) · (option · y_i) / sqrt(width)
//
// A pointer head (ModelConfig::decision.is_pointer) has only `summary` and `option`,
// [width, hidden]. They multiply the states instead of y.
struct CompactHeadWeights {
  BiasedWeight in;                    // [width, hidden]
  std::vector<float> type_embedding;  // [kTypeEmbeddings, width]: choice, score, noul
  LayerNormWeights input_norm, final_norm;
  std::vector<CompactHeadLayer> layers;
  BiasedWeight summary, option;  // [width, width]

  size_t bytes() const;
};

// The prefixes of the head's tensors in the files of a model (model/weights/model_weight_files.h).
inline constexpr char kCompactHeadPrefix[] = "sysone_head.";
inline constexpr char kKevHeadPrefix[] = "kev.";

// The tensors of the head, in the order of the computation.
std::vector<ModelTensor> ListCompactHeadTensors(const ModelConfig& config);

// Reads the head. REQUIRES: the files have every tensor that ListCompactHeadTensors lists.
Result<CompactHeadWeights> LoadCompactHead(const ModelFiles& files, const ModelConfig& config);

}  // namespace skein
