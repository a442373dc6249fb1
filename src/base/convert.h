#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace skein {

// Widens `count` elements at `from`, of any alignment, to f32: the values of ToFloat.
// REQUIRES: dtype is kF32, kBf16 or kF16.
void Widen(const std::byte* from, DType dtype, int64_t count, float* to);

// Rounds `count` f32 at `from`, of any alignment, as ToBf16 does.
void RoundToBf16(const std::byte* from, int64_t count, Bf16* to);

}  // namespace skein
