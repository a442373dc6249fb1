#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace skein {

// The most terms of an int8 product whose sum is exact in 32 bits.
inline constexpr int32_t kMaxInt8Terms = 131072;

// How a row becomes int8 ("Int8" in docs/numerics.md): element = q * scale, where q is x * inverse,
// rounded to an integer.
struct Int8Scale {
  float scale = 0.0f;
  float inverse = 0.0f;  // 0: all q are 0
};

// The scale of a row, from the bits of the row's largest magnitude. A NaN has larger bits than any
// number. A row of tiny values becomes zeros. A row with a NaN or an infinity has the scale NaN,
// which makes every result of the row NaN.
constexpr Int8Scale Int8ScaleOf(uint32_t largest_bits) {
  constexpr uint32_t kInfinity = 0x7f800000u;
  constexpr float kLeast = 0x1p-100f;
  if (largest_bits >= kInfinity) return {std::numeric_limits<float>::quiet_NaN(), 0.0f};
  const auto largest = std::bit_cast<float>(largest_bits);
  if (largest < kLeast) return {};
  return {largest / 127.0f, 127.0f / largest};
}

// Quantizes x [n] to out [n]; returns the scale. The bits do not depend on the floating-point mode.
float QuantizeRow(const float* x, int32_t n, int8_t* out);

}  // namespace skein
