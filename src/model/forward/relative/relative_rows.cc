#include "model/forward/relative/relative_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace skein {
namespace {

// The bucket of a distance beyond half the span, as the reference computes it in f32.
int32_t BucketOf(const RelativeAttention& relative, int32_t distance) {
  const int32_t half = relative.span / 2;
  if (relative.max_distance == 0 || std::abs(distance) <= half) return distance;
  const auto log_of = [&](int32_t d) {
    return std::log(static_cast<float>(d) / static_cast<float>(half));
  };
  const float steps =
      log_of(std::abs(distance)) / log_of(relative.max_distance - 1) * static_cast<float>(half - 1);
  const int32_t bucket = static_cast<int32_t>(std::ceil(steps)) + half;
  return distance < 0 ? -bucket : bucket;
}

}  // namespace

RelativeRows::RelativeRows(const RelativeAttention& relative, int32_t num_positions)
    : num_positions_(num_positions) {
  for (int32_t distance = 1 - num_positions; distance < num_positions; ++distance) {
    const int32_t row = BucketOf(relative, distance) + relative.span;
    rows_.push_back(std::clamp(row, 0, relative.num_rows() - 1));
  }
}

}  // namespace skein
