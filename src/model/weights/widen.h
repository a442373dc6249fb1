#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/dtype.h"

namespace skein {

// Widens `count` elements at `src`, at any alignment, to f32 at `out`.
inline void Widen(const std::byte* src, DType dtype, size_t count, float* out) {
  if (dtype == DType::kF32) {
    std::memcpy(out, src, count * sizeof(float));
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, src + 2 * i, 2);
    out[i] = dtype == DType::kBf16 ? ToFloat(Bf16{bits}) : ToFloat(F16{bits});
  }
}

}  // namespace skein
