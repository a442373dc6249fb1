#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/config/config.h"

namespace skein {

// RelativeBias as terms of scores (AttentionRow::terms). The terms of all queries of a head are
// parts of one row, which has a number for each distance of a key from a query.
class DistanceBias {
 public:
  // by_bucket: [num_heads, num_buckets]. Positions are below num_positions.
  DistanceBias(const RelativeBias& bias, std::span<const float> by_bucket, int32_t num_positions);

  // The terms of a query at `position`: those of the keys 0, 1, ..., in whole blocks.
  const float* Of(int32_t head, int32_t position) const {
    return terms_.data() + int64_t{head} * stride_ + num_positions_ - 1 - position;
  }

  // The terms of all heads [num_heads, stride]: that of the distance d at d + num_positions - 1.
  const std::vector<float>& terms() const { return terms_; }
  int64_t stride() const { return stride_; }

  // The bucket of a key at the query's position plus `distance`. Logarithms are computed in f32, as
  // by the reference, whose results decide the bucket at its ends.
  static int32_t BucketOf(const RelativeBias& bias, int32_t distance);

 private:
  const int32_t num_positions_;
  const int64_t stride_;
  std::vector<float> terms_;  // [num_heads, stride_], from the distance 1 - num_positions on
};

}  // namespace skein
