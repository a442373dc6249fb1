#include "cuda/kernels/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/fp_mode.h"

namespace skein::cuda {
namespace {

// The general divisions that DivideByOnePlusExp takes the place of.
float SiluByDivision(float x) { return x / (1.0f + Exp(0.0f - x)); }
float GeluTanhByDivision(float x) {
  const float cubic = fmaf((x * x) * x, 0x1.6e4e26p-5f, x);
  return x / (1.0f + Exp(cubic * -0x1.988454p+0f));
}

float ClampedSwigluByDivision(float g) {
  g = g > 7.0f ? 7.0f : g;
  return (g / (1.0f + Exp(g * -0x1.b3b646p+0f))) * (0.0f + 1.0f);
}

bool SameOrNan(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

// The choices that ExpOfNegative does without.
float ExpByChoices(float x) {
  const float zero_or_nan = x < kExpMin ? 0.0f : x;
  return x >= kExpMin ? NormalExp(x) : zero_or_nan;
}

// Every float around the least normal result, one of 997 of the others, and NaN.
TEST(Math, ExpOfNegativeNeedsNoChoices) {
  const ScopedFpMode fp_mode;
  const auto check = [](uint32_t bits) {
    const float x = std::bit_cast<float>(bits);
    ASSERT_TRUE(SameOrNan(ExpOfNegative(x), ExpByChoices(x))) << x << " " << bits;
  };
  for (uint64_t bits = 0x80000000u; bits < uint64_t{1} << 32; bits += 997) {
    check(static_cast<uint32_t>(bits));
  }
  const auto first = std::bit_cast<uint32_t>(-86.0f), last = std::bit_cast<uint32_t>(-90.0f);
  for (uint32_t bits = first; bits <= last; ++bits) check(bits);
  for (const uint32_t bits : {0u, 0x7fc00000u, 0x80000000u, 0xff800000u, 0xffffffffu}) check(bits);
}

// One of 997 floats, and those around zero and the infinities. (All 2^32 of
// SiLU and GeluTanh agree on an H200.)
TEST(Math, GatesDivideAsTheGeneralDivision) {
  const ScopedFpMode fp_mode;
  const auto check = [](uint32_t bits) {
    const float x = std::bit_cast<float>(bits);
    ASSERT_TRUE(SameOrNan(Silu(x), SiluByDivision(x))) << x << " " << bits;
    ASSERT_TRUE(SameOrNan(GeluTanh(x), GeluTanhByDivision(x))) << x << " " << bits;
    ASSERT_TRUE(SameOrNan(ClampedSwiglu(x, 0.0f), ClampedSwigluByDivision(x))) << x << " " << bits;
  };
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 997) {
    check(static_cast<uint32_t>(bits));
  }
  for (const uint32_t sign : {0u, 0x80000000u}) {
    for (uint32_t i = 0; i < 2000; ++i) {
      check(sign | i);                  // zero and denormals
      check(sign | (0x00800000u + i));  // the least normal numbers
      check(sign | (0x7f800000u - i));  // infinity and the largest
    }
  }
}

}  // namespace
}  // namespace skein::cuda
