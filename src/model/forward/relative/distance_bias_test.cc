#include "model/forward/relative/distance_bias.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/kv_layout.h"

namespace skein {
namespace {

constexpr RelativeBias kBias = {.num_buckets = 32, .max_distance = 128};

// The first distances of the buckets, as transformers' MPNet computes them.
TEST(DistanceBias, BucketsAreThoseOfTheReference) {
  constexpr int32_t kFirst[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91};
  int32_t bucket = 0;
  for (int32_t distance = 0; distance < 40000; ++distance) {
    if (bucket < 15 && distance == kFirst[bucket + 1]) ++bucket;
    ASSERT_EQ(DistanceBias::BucketOf(kBias, -distance), bucket) << distance;
    ASSERT_EQ(DistanceBias::BucketOf(kBias, distance), distance == 0 ? 0 : 16 + bucket) << distance;
  }
}

TEST(DistanceBias, TermsOfAQueryAreThoseOfItsDistances) {
  std::vector<float> by_bucket(3 * 32);
  std::iota(by_bucket.begin(), by_bucket.end(), 1.0f);
  for (const int32_t positions : {1, 31, 32, 33, 300}) {
    const DistanceBias bias(kBias, by_bucket, positions);
    for (int32_t head = 0; head < 3; ++head) {
      for (int32_t query = 0; query < positions; ++query) {
        const float* const terms = bias.Of(head, query);
        for (int32_t key = 0; key < positions; ++key) {
          const int32_t bucket = DistanceBias::BucketOf(kBias, key - query);
          ASSERT_EQ(terms[key], by_bucket[head * 32 + bucket]) << query << " " << key;
        }
        // Attention reads whole blocks of keys.
        for (int32_t key = positions; key % kKvBlockTokens != 0; ++key) {
          ASSERT_TRUE(std::isfinite(terms[key]));
        }
      }
    }
  }
}

}  // namespace
}  // namespace skein
