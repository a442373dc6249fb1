#include "base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace skein {
namespace {

// The value of a binary16 number, by its definition.
double ValueOfF16(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(F16, ToFloatIsExactForEveryValue) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const F16 x{static_cast<uint16_t>(i)};
    const bool special = ((i >> 10) & 31) == 31;
    if (special && (i & 1023) != 0) {
      EXPECT_TRUE(std::isnan(ToFloat(x)));
    } else if (special) {
      EXPECT_EQ(ToFloat(x), (i & 0x8000) != 0 ? -INFINITY : INFINITY);
    } else {
      EXPECT_EQ(ToFloat(x), ValueOfF16(x.bits));
      EXPECT_EQ(std::signbit(ToFloat(x)), (i & 0x8000) != 0);
    }
  }
}

TEST(F16, RoundTripsEveryNumber) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const F16 x{static_cast<uint16_t>(i)};
    if (std::isnan(ToFloat(x))) {
      EXPECT_TRUE(std::isnan(ToFloat(ToF16(ToFloat(x)))));
    } else {
      EXPECT_EQ(ToF16(ToFloat(x)).bits, i);
    }
  }
}

// Between two neighbours, values below the middle round down, values above it round up, and the
// middle rounds to the even neighbour.
TEST(F16, RoundsToNearestEven) {
  for (uint32_t i = 0; i < 0x7bff; ++i) {
    const double low = ValueOfF16(static_cast<uint16_t>(i));
    const double high = ValueOfF16(static_cast<uint16_t>(i + 1));
    const auto middle = static_cast<float>((low + high) / 2);  // exact: it needs one more bit
    EXPECT_EQ(ToF16(middle).bits, i + (i & 1)) << i;
    EXPECT_EQ(ToF16(std::nextafterf(middle, 0)).bits, i) << i;
    EXPECT_EQ(ToF16(std::nextafterf(middle, INFINITY)).bits, i + 1) << i;
    EXPECT_EQ(ToF16(-middle).bits, 0x8000 + i + (i & 1)) << i;
  }
}

TEST(F16, Extremes) {
  EXPECT_EQ(ToF16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(ToF16(65519.996f).bits, 0x7bff);
  EXPECT_EQ(ToF16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(ToF16(std::numeric_limits<float>::max()).bits, 0x7c00);
  EXPECT_EQ(ToF16(-INFINITY).bits, 0xfc00);
  EXPECT_EQ(ToF16(std::numeric_limits<float>::denorm_min()).bits, 0);
  EXPECT_EQ(ToF16(-0.0f).bits, 0x8000);
}

TEST(Bf16, RoundsToTheNearestNeighbour) {
  std::mt19937 random(7);
  for (int n = 0; n < 100000; ++n) {
    float x = 0;
    const uint32_t bits = random();
    std::memcpy(&x, &bits, 4);
    if (!std::isfinite(x)) continue;
    const uint16_t down = static_cast<uint16_t>(bits >> 16);
    const double low = ToFloat(Bf16{down});
    const double high = ToFloat(Bf16{static_cast<uint16_t>(down + 1)});
    if (!std::isfinite(high)) continue;
    const double error = std::fabs(ToFloat(ToBf16(x)) - double{x});
    EXPECT_EQ(error, std::min(std::fabs(low - x), std::fabs(high - x))) << x;
  }
}

}  // namespace
}  // namespace skein
