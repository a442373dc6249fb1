#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace skein {

// The name that a weight has in a GGUF file of this general.architecture:
// "blk.0.attn_q.weight" for "model.layers.0.self_attn.q_proj.weight". Empty if the weight has no
// such name.
std::string GgufTensorName(std::string_view weight, std::string_view architecture);

// The inverse: the name of the weight that a tensor of a GGUF file holds. Empty if the tensor is no
// weight.
std::string WeightOfGgufTensor(std::string_view tensor, std::string_view architecture);

// The layer that a tensor belongs to; -1: none.
int64_t LayerOfGgufTensor(std::string_view tensor);

// The two weights whose rows a tensor of a decision model has, one behind the other; empty: it is
// no such tensor. Kev's is the head: q, then k.
struct GgufHalves {
  std::string first, second;
};
GgufHalves HalvesOfGgufTensor(std::string_view tensor, std::string_view decision_type);

// Whether files of this general.architecture have rows 2j and 2j + 1 of a head of q and k where
// HuggingFace has rows j and j + head_dim / 2. Only the Llama family's have.
bool InterleavesHeads(std::string_view architecture);

}  // namespace skein
