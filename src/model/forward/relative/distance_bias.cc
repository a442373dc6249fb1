#include "model/forward/relative/distance_bias.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/ceil_div.h"
#include "kernels/kv_layout.h"

namespace skein {

DistanceBias::DistanceBias(const RelativeBias& bias, std::span<const float> by_bucket,
                           int32_t num_positions)
    : num_positions_(num_positions),
      stride_(num_positions - 1 + CeilDiv(num_positions, kKvBlockTokens) * kKvBlockTokens) {
  const auto num_heads = static_cast<int64_t>(by_bucket.size()) / bias.num_buckets;
  terms_.resize(num_heads * stride_);
  for (int64_t i = 0; i < stride_; ++i) {
    const int32_t bucket = BucketOf(bias, static_cast<int32_t>(i) - (num_positions - 1));
    for (int64_t head = 0; head < num_heads; ++head) {
      terms_[head * stride_ + i] = by_bucket[head * bias.num_buckets + bucket];
    }
  }
}

int32_t DistanceBias::BucketOf(const RelativeBias& bias, int32_t distance) {
  const int32_t half = bias.num_buckets / 2, exact = half / 2;
  const int32_t side = distance > 0 ? half : 0, far = std::abs(distance);
  if (far < exact) return side + far;
  const float steps = std::log(static_cast<float>(far) / static_cast<float>(exact)) /
                      std::log(static_cast<float>(bias.max_distance) / static_cast<float>(exact)) *
                      static_cast<float>(half - exact);
  return side + std::min(exact + static_cast<int32_t>(steps), half - 1);
}

}  // namespace skein
