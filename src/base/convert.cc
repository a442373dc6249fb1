#include "base/convert.h"

#include <emmintrin.h>

#include <cstring>

#include "base/check.h"

namespace skein {
namespace {

// Whole vectors, which every x86-64 has, take the functions below; the rest of a row takes the
// scalar ones of dtype.h. NaN and denormals keep their bits in any floating-point mode: operations
// are on integers, but for one product that is exact and no denormal.
constexpr int64_t kHalves = 8;  // 16-bit elements of a vector

__m128i Select(__m128i mask, __m128i yes, __m128i no) {
  return _mm_or_si128(_mm_and_si128(mask, yes), _mm_andnot_si128(mask, no));
}

// Four bf16 in the lower halves of words.
__m128i WideBf16(__m128i words) { return _mm_slli_epi32(words, 16); }

// Four binary16 in the lower halves of words.
__m128i WideF16(__m128i words) {
  const __m128i sign = _mm_slli_epi32(_mm_and_si128(words, _mm_set1_epi32(0x8000)), 16);
  const __m128i magnitude = _mm_and_si128(words, _mm_set1_epi32(0x7fff));
  const __m128i shifted = _mm_slli_epi32(magnitude, 13);
  const __m128i normal = _mm_add_epi32(shifted, _mm_set1_epi32(112 << 23));
  const __m128i special = _mm_or_si128(shifted, _mm_set1_epi32(0x7f800000));
  const __m128i subnormal =
      _mm_castps_si128(_mm_mul_ps(_mm_cvtepi32_ps(magnitude), _mm_set1_ps(0x1p-24f)));
  const __m128i wide =
      Select(_mm_cmplt_epi32(magnitude, _mm_set1_epi32(0x400)), subnormal,
             Select(_mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x7bff)), special, normal));
  return _mm_or_si128(sign, wide);
}

// Widens all whole vectors of `count` elements; returns the number of elements.
template <typename Wide>
int64_t WidenVectors(const std::byte* from, int64_t count, float* to, const Wide& wide) {
  const __m128i zero = _mm_setzero_si128();
  int64_t i = 0;
  for (; i + kHalves <= count; i += kHalves) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 2 * i));
    _mm_storeu_ps(to + i, _mm_castsi128_ps(wide(_mm_unpacklo_epi16(halves, zero))));
    _mm_storeu_ps(to + i + 4, _mm_castsi128_ps(wide(_mm_unpackhi_epi16(halves, zero))));
  }
  return i;
}

// The bf16 of four f32, sign-extended to words.
__m128i RoundedBf16(__m128i bits) {
  const __m128i odd = _mm_and_si128(_mm_srli_epi32(bits, 16), _mm_set1_epi32(1));
  const __m128i rounded = _mm_add_epi32(bits, _mm_add_epi32(odd, _mm_set1_epi32(0x7fff)));
  const __m128i magnitude = _mm_and_si128(bits, _mm_set1_epi32(0x7fffffff));
  const __m128i is_nan = _mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x7f800000));
  const __m128i quiet = _mm_or_si128(bits, _mm_set1_epi32(0x400000));
  return _mm_srai_epi32(Select(is_nan, quiet, rounded), 16);
}

}  // namespace

void Widen(const std::byte* from, DType dtype, int64_t count, float* to) {
  SKEIN_CHECK(dtype == DType::kF32 || dtype == DType::kBf16 || dtype == DType::kF16);
  if (dtype == DType::kF32) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  const bool is_bf16 = dtype == DType::kBf16;
  int64_t i =
      is_bf16 ? WidenVectors(from, count, to, WideBf16) : WidenVectors(from, count, to, WideF16);
  for (; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, from + 2 * i, sizeof(bits));
    to[i] = is_bf16 ? ToFloat(Bf16{bits}) : ToFloat(F16{bits});
  }
}

void RoundToBf16(const std::byte* from, int64_t count, Bf16* to) {
  int64_t i = 0;
  for (; i + kHalves <= count; i += kHalves) {
    const auto* words = reinterpret_cast<const __m128i*>(from + 4 * i);
    const __m128i low = RoundedBf16(_mm_loadu_si128(words));
    const __m128i high = RoundedBf16(_mm_loadu_si128(words + 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm_packs_epi32(low, high));
  }
  for (; i < count; ++i) {
    float x;
    std::memcpy(&x, from + 4 * i, sizeof(x));
    to[i] = ToBf16(x);
  }
}

}  // namespace skein
