#pragma once

#include <string>
#include <string_view>

namespace skein {

// The name in a GGUF file of this general.architecture of a decoder's weight, such as
// "blk.0.attn_q.weight" for "model.layers.0.self_attn.q_proj.weight"; empty: the weight has none.
std::string GgufTensorName(std::string_view weight, std::string_view architecture);

// The inverse: the weight that a tensor of a GGUF file is; empty: none.
std::string WeightOfGgufTensor(std::string_view tensor, std::string_view architecture);

// Whether files of this general.architecture have rows 2j and 2j + 1 of a head of q and k where
// HuggingFace has rows j and j + head_dim / 2. Only the Llama family's have.
bool InterleavesHeads(std::string_view architecture);

}  // namespace skein
