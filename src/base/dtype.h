#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace skein {

// kInt8 and kBlocks are types of packed matrices: int8 with a scale for each row, and 4 to 8 bits
// with scales for blocks of a row. The rows that multiply these matrices are int8, and have their
// own scales. No tensor of a file has kInt8.
enum class DType : uint8_t { kF32, kBf16, kF16, kInt8, kBlocks };

// Whether the rows that multiply a matrix of this type are int8.
constexpr bool TakesInt8Rows(DType dtype) {
  return dtype == DType::kInt8 || dtype == DType::kBlocks;
}
// The bytes of an element. For kBlocks, they are the bytes of an element of the rows that multiply
// the matrix.
constexpr size_t SizeOf(DType dtype) {
  return dtype == DType::kF32 ? 4 : TakesInt8Rows(dtype) ? 1 : 2;
}
constexpr const char* NameOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kBf16:
      return "bf16";
    case DType::kF16:
      return "f16";
    case DType::kInt8:
      return "int8";
    case DType::kBlocks:
      break;
  }
  return "blocks";
}

// bfloat16: the upper half of an IEEE binary32.
struct Bf16 {
  uint16_t bits = 0;
};

constexpr float ToFloat(Bf16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }

// Rounds to nearest, ties to even; a NaN becomes a quiet NaN.
constexpr Bf16 ToBf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

// IEEE binary16.
struct F16 {
  uint16_t bits = 0;
};

// The conversion is exact.
constexpr float ToFloat(F16 x) {
  const uint32_t sign = uint32_t{x.bits & 0x8000u} << 16;
  const uint32_t exponent = (x.bits >> 10) & 0x1fu;
  const uint32_t mantissa = x.bits & 0x3ffu;
  if (exponent == 0x1f) {  // infinity or NaN
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  }
  if (exponent == 0) {  // zero, subnormal: mantissa * 2^-24
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

// Rounds to nearest, ties to even. Values beyond the range become infinity; a NaN becomes a quiet
// NaN.
constexpr F16 ToF16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<uint16_t>(sign | 0x7e00u)};
  if (magnitude >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00u)};  // >= 65520
  uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  const int32_t exponent = static_cast<int32_t>(magnitude >> 23) - 112;
  // The number of dropped bits: 13, and one more for each power of two below the smallest normal
  // number.
  const int32_t shift = exponent >= 1 ? 13 : 14 - exponent;
  if (shift > 24) return {sign};
  const uint32_t half = 1u << (shift - 1), odd = (mantissa >> shift) & 1u;
  mantissa = (mantissa + half - 1 + odd) >> shift;
  // The implicit bit adds one to the exponent field, and so does a carry out of the mantissa.
  const uint32_t field = exponent >= 1 ? static_cast<uint32_t>(exponent - 1) << 10 : 0u;
  return {static_cast<uint16_t>(sign | (field + mantissa))};
}

}  // namespace skein
