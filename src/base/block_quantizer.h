#pragma once

#include <cstddef>
#include <span>

namespace skein {

// Rounds x [k] to blocks of Q4_0 as in the file, k / 32 of 18 bytes. Each block takes the scale, of
// several, with the least squared error. A block with a NaN or an infinity is all NaN.
void QuantizeQ4Row(std::span<const float> x, std::byte* out);

}  // namespace skein
