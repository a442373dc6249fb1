#include "kernels/quantize.h"

#include <algorithm>
#include <bit>

#include "base/magnitude.h"

namespace skein {
namespace {

// Elements of a row that are handled side by side: a loop of this length becomes vectors.
constexpr int32_t kAtOnce = 16;

}  // namespace

float QuantizeRow(const float* x, int32_t n, int8_t* out) {
  const Int8Scale scale = Int8ScaleOf(LargestMagnitude({x, static_cast<size_t>(n)}));
  if (scale.inverse == 0.0f) {
    std::fill_n(out, n, int8_t{0});
    return scale.scale;
  }
  // Adding 1.5 * 2^23 rounds to an integer, ties to even, in the low bits of the sum.
  constexpr float kMagic = 0x1.8p23f;
  const auto rounded = [&](float e) {
    return static_cast<int8_t>(std::bit_cast<uint32_t>(e * scale.inverse + kMagic));
  };
  int32_t i = 0;
  for (; i + kAtOnce <= n; i += kAtOnce) {
    int8_t q[kAtOnce];
    for (int32_t lane = 0; lane < kAtOnce; ++lane) q[lane] = rounded(x[i + lane]);
    std::copy_n(q, kAtOnce, out + i);
  }
  for (; i < n; ++i) out[i] = rounded(x[i]);
  return scale.scale;
}

}  // namespace skein
