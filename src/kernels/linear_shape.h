#pragma once

#include <cstdint>

namespace skein {

// The taps of the convolution in linear layers.
inline constexpr int32_t kConvWidth = 4;
// Added to the square of the length of a head of q or k.
inline constexpr float kDeltaLengthEps = 1e-6f;
// The columns of a state that one call of the delta rule has.
inline constexpr int32_t kDeltaCols = 32;
inline constexpr int32_t kMaxDeltaDim = 256;  // bounds k_dim: a caller keeps a state on its stack

}  // namespace skein
