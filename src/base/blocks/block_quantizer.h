#pragma once

#include <cstddef>
#include <span>

#include "base/blocks/block_format.h"

namespace skein {

// Whether QuantizeBlocks can write this format: it writes Q8_0, Q4_0 and Q4_K.
bool CanQuantize(BlockFormat format);

// Rounds x [k] to k / traits.file_elements blocks, as they are in a file. The scales of a block are
// searched for the least squared error of its elements (see block_quantizer.cc). A block with a NaN
// or an infinity becomes all NaN. REQUIRES: CanQuantize(format), and k is a multiple of the block's
// elements.
void QuantizeBlocks(BlockFormat format, std::span<const float> x, std::byte* out);

}  // namespace skein
