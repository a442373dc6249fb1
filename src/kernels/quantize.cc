#include "kernels/quantize.h"

#include <algorithm>

namespace skein {

float QuantizeRow(const float* x, int32_t n, int8_t* out) {
  uint32_t largest = 0;
  for (int32_t i = 0; i < n; ++i) {
    largest = std::max(largest, std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu);
  }
  const Int8Scale scale = Int8ScaleOf(largest);
  if (scale.inverse == 0.0f) {
    std::fill_n(out, n, int8_t{0});
    return scale.scale;
  }
  // Adding 1.5 * 2^23 rounds to an integer, ties to even, in the low bits of the sum.
  constexpr float kMagic = 0x1.8p23f;
  for (int32_t i = 0; i < n; ++i) {
    const float shifted = x[i] * scale.inverse + kMagic;
    out[i] = static_cast<int8_t>(std::bit_cast<uint32_t>(shifted));
  }
  return scale.scale;
}

}  // namespace skein
