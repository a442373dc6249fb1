#include "base/block_quantizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/block_format.h"
#include "base/check.h"
#include "base/dtype.h"

namespace skein {

void QuantizeQ4Row(std::span<const float> x, std::byte* out) {
  constexpr int32_t kCandidates = 9;  // scales that put the largest element at 7 to 9 steps
  SKEIN_CHECK(x.size() % kBlockTerms == 0);
  for (; !x.empty(); x = x.subspan(kBlockTerms), out += 18) {
    const auto block = x.first(kBlockTerms);
    const float extreme = *std::ranges::max_element(
        block, [](float a, float b) { return std::abs(a) < std::abs(b); });
    if (!std::ranges::all_of(block, [](float e) { return std::isfinite(e); })) {
      const F16 half = ToF16(std::numeric_limits<float>::quiet_NaN());
      std::memcpy(out, &half, sizeof(half));
      std::fill_n(out + 2, 16, std::byte{0});
      continue;
    }
    float best_error = std::numeric_limits<float>::infinity();
    for (int32_t candidate = 0; candidate < kCandidates; ++candidate) {
      // The steps reach from -8 to 7: the largest element takes the sign that has 8.
      const float steps = 7.0f + 0.25f * static_cast<float>(candidate);
      const F16 half = ToF16(extreme / -steps);
      const float scale = ToFloat(half), inverse = scale == 0.0f ? 0.0f : 1.0f / scale;
      uint8_t u[kBlockTerms];
      float error = 0.0f;
      for (int32_t i = 0; i < kBlockTerms; ++i) {
        const float q = std::clamp(std::nearbyint(block[i] * inverse), -8.0f, 7.0f);
        const float miss = block[i] - scale * q;
        error += miss * miss;
        u[i] = static_cast<uint8_t>(q + 8.0f);
      }
      if (candidate > 0 && !(error < best_error)) continue;
      best_error = error;
      std::memcpy(out, &half, sizeof(half));
      for (int32_t i = 0; i < 16; ++i) out[2 + i] = static_cast<std::byte>(u[i] | u[i + 16] << 4);
    }
  }
}

}  // namespace skein
