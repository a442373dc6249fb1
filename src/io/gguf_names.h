#pragma once

#include <string>
#include <string_view>

namespace skein {

// The name that a decoder's weight has in a GGUF file of this general.architecture:
// "blk.0.attn_q.weight" for "model.layers.0.self_attn.q_proj.weight". Empty if the weight has no
// such name.
std::string GgufTensorName(std::string_view weight, std::string_view architecture);

// The inverse: the name of the weight that a tensor of a GGUF file holds. Empty if the tensor is no
// weight.
std::string WeightOfGgufTensor(std::string_view tensor, std::string_view architecture);

// Whether files of this general.architecture store rows j and j + head_dim / 2 of a head of q and
// k, in HuggingFace's order, as rows 2j and 2j + 1. Only files of the Llama family do.
bool InterleavesHeads(std::string_view architecture);

}  // namespace skein
