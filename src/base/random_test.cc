#include "base/random.h"

#include <gtest/gtest.h>

#include <set>

namespace skein {
namespace {

TEST(Random, IsAFunctionOfItsPlace) {
  EXPECT_EQ(RandomBitsAt(1, 2, 3), RandomBitsAt(1, 2, 3));
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    for (uint64_t stream = 0; stream < 8; ++stream) {
      for (uint64_t position = 0; position < 8; ++position) {
        seen.insert(RandomBitsAt(seed, stream, position));
      }
    }
  }
  EXPECT_EQ(seen.size(), 8u * 8 * 8);
}

TEST(Random, UniformLiesInRangeAndCoversIt) {
  Random random(7);
  double sum = 0, low = 1, high = 0;
  for (int i = 0; i < 10000; ++i) {
    const double x = random.Uniform();
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    sum += x;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);  // seven standard deviations
  EXPECT_LT(low, 0.01);
  EXPECT_GT(high, 0.99);
}

TEST(Random, BetweenIncludesBothEnds) {
  Random random(3);
  std::set<int64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.Between(-2, 3));
  EXPECT_EQ(seen, (std::set<int64_t>{-2, -1, 0, 1, 2, 3}));
  EXPECT_EQ(random.Between(5, 5), 5);
  random.Between(INT64_MIN, INT64_MAX);
}

}  // namespace
}  // namespace skein
