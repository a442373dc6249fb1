#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace skein {

enum class DType : uint8_t { kF32, kBf16, kF16 };

constexpr size_t SizeOf(DType dtype) { return dtype == DType::kF32 ? 4 : 2; }
constexpr const char* NameOf(DType dtype) {
  return dtype == DType::kF32 ? "f32" : dtype == DType::kBf16 ? "bf16" : "f16";
}

// bfloat16: the upper half of an IEEE binary32.
struct Bf16 {
  uint16_t bits = 0;
};

constexpr float ToFloat(Bf16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }

// Round to nearest, ties to even; NaN stays a (quiet) NaN.
constexpr Bf16 ToBf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

}  // namespace skein
