#pragma once

#include <cstddef>
#include <span>

#include "base/block_format.h"

namespace skein {

// Whether QuantizeBlocks writes this format: Q8_0, Q4_0 and Q4_K.
bool CanQuantize(BlockFormat format);

// Rounds x [k] to blocks as in the file, k / traits.file_elements of them. The scales of a block
// are searched for the least squared error of its elements (block_quantizer.cc says where). A block
// with a NaN or an infinity is all NaN. REQUIRES: CanQuantize(format), and k is whole blocks.
void QuantizeBlocks(BlockFormat format, std::span<const float> x, std::byte* out);

}  // namespace skein
