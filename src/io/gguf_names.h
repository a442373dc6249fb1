#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace skein {

// The name that a weight has in a GGUF file of this general.architecture:
// "blk.0.attn_q.weight" for "model.layers.0.self_attn.q_proj.weight". Empty if the weight has no
// such name.
std::string GgufTensorName(std::string_view weight, std::string_view architecture);

// The inverse: the name of the weight that a tensor of a GGUF file holds. Empty if the tensor is no
// weight.
std::string WeightOfGgufTensor(std::string_view tensor, std::string_view architecture);

// The same for a decision model of the type laya, whose encoder's layers are followed by those of
// the head: "blk.22.attn_norm.weight" for "head.layers.0.norm1.weight" behind 22 layers.
std::string LayaTensorName(std::string_view weight, int64_t num_encoder_layers);
std::string WeightOfLayaTensor(std::string_view tensor, int64_t num_encoder_layers);

// The layer that a tensor belongs to; -1: none.
int64_t LayerOfGgufTensor(std::string_view tensor);

// The weights that a tensor has one behind the other, each with the same number of elements; empty:
// it is no such tensor. The head of a decision model of the type kev has q, then k. A tensor of a
// mixture of experts has one matrix of each of the `num_experts` experts.
std::vector<std::string> PartsOfGgufTensor(std::string_view tensor, std::string_view architecture,
                                           std::string_view decision_type, int64_t num_experts);

// Whether a tensor has one matrix of each expert of a mixture. Several weights have its name then.
bool HoldsExperts(std::string_view tensor, std::string_view architecture);

// Whether files of this general.architecture have rows 2j and 2j + 1 of a head of q and k where
// HuggingFace has rows j and j + head_dim / 2. Only the Llama family's have.
bool InterleavesHeads(std::string_view architecture);

}  // namespace skein
