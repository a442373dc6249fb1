#pragma once

#include <string>
#include <string_view>

namespace skein {

// The name in a GGUF file of a decoder's weight, such as "blk.0.attn_q.weight" for
// "model.layers.0.self_attn.q_proj.weight"; empty: the weight has none.
std::string GgufTensorName(std::string_view weight);

// The inverse: the weight that a tensor of a GGUF file is; empty: none.
std::string WeightOfGgufTensor(std::string_view tensor);

}  // namespace skein
