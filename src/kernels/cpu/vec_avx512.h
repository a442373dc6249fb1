#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace skein::avx512 {

// 16 f32 lanes in one register, with the contract of scalar::Vec, bit for bit.
struct Vec {
  static constexpr int kTileRows = 6;
  static constexpr int kTilePanels = 4;
  static constexpr int kStreamPanels = 4;
  static constexpr int kStreamRows = 1;
  static constexpr int kStreamAhead = 2048;
  static constexpr int kBlockRows = 8;
  static constexpr int kDirectByteRows = std::numeric_limits<int>::max();
  static constexpr int kDirectRows = 8;
  static constexpr int kBlockStreams = 2;

  struct Doubles;

  __m512 v;

  static __mmask16 First(int n) { return static_cast<__mmask16>((1u << n) - 1); }

  static Vec Set(float x) { return {_mm512_set1_ps(x)}; }
  static Vec Load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Vec LoadFirst(const float* p, int n) { return {_mm512_maskz_loadu_ps(First(n), p)}; }
  void Store(float* p) const { _mm512_storeu_ps(p, v); }
  void StoreFirst(float* p, int n) const { _mm512_mask_storeu_ps(p, First(n), v); }

  static Vec LoadBf16First(const uint16_t* p, int n) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(First(n), p));
    return FromBits(_mm512_slli_epi32(wide, 16));
  }
  void StoreBf16First(uint16_t* p, int n) const {
    _mm256_mask_storeu_epi16(p, First(n), _mm512_cvtepi32_epi16(_mm512_srli_epi32(Rounded(), 16)));
  }
  static Vec LoadEven(const std::byte* p) {
    return FromBits(_mm512_slli_epi32(_mm512_loadu_si512(p), 16));
  }
  static Vec LoadOdd(const std::byte* p) {
    return FromBits(_mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi32(int(0xffff0000u))));
  }
  static Vec LoadHalves(const std::byte* p) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  static Vec LoadBytes(const std::byte* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))};
  }
  static Vec LoadSignedBytes(const std::byte* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
  }
  static void Prefetch(const std::byte* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
  }

  float Sum() const {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  float Largest() const {
    // A NaN becomes the second operand.
    return _mm512_reduce_max_ps(
        _mm512_max_ps(v, _mm512_set1_ps(-std::numeric_limits<float>::infinity())));
  }
  Vec RoundToBf16() const {
    return FromBits(_mm512_and_si512(Rounded(), _mm512_set1_epi32(int(0xffff0000u))));
  }

  static Vec LoadInts(const void* p) { return {_mm512_cvtepi32_ps(_mm512_loadu_si512(p))}; }
  void StoreInt8First(int8_t* p, int n) const {
    _mm512_mask_cvtepi32_storeu_epi8(p, First(n), _mm512_cvtps_epi32(v));
  }
  static int32_t SumOfBytes(const int8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i unsigned_bytes = _mm_xor_si128(bytes, _mm_set1_epi8(-128));
    const __m128i halves = _mm_sad_epu8(unsigned_bytes, _mm_setzero_si128());
    return _mm_cvtsi128_si32(halves) + _mm_extract_epi32(halves, 2) - 16 * 128;
  }
  uint32_t LargestMagnitude() const { return _mm512_reduce_max_epi32(Bits()); }

  // Used only by the operators below.
  static Vec FromBits(__m512i bits) { return {_mm512_castsi512_ps(bits)}; }
  __m512i Bits() const { return _mm512_castps_si512(v); }
  // The rounded bf16 is in the upper half of each lane; the lower half is undefined.
  __m512i Rounded() const {
    const __m512i bits = Bits();
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    return _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), quiet);
  }
};

struct Vec::Doubles {
  __m512d lo, hi;

  static Doubles Zero() { return {_mm512_setzero_pd(), _mm512_setzero_pd()}; }
  void Add(Vec x) {
    lo = _mm512_add_pd(lo, _mm512_cvtps_pd(_mm512_castps512_ps256(x.v)));
    hi = _mm512_add_pd(hi, _mm512_cvtps_pd(_mm512_extractf32x8_ps(x.v, 1)));
  }
  double Sum() const {
    const __m512d eight = _mm512_add_pd(lo, hi);
    const __m256d four =
        _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
};

// These operators are not friends inside the class: g++ 12 would compile friends for the baseline,
// despite the pragma.
inline Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
inline Vec Fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline Vec IfGreater(Vec a, Vec b, Vec x, Vec y) {
  return {_mm512_mask_mov_ps(y.v, _mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ), x.v)};
}
inline uint32_t GreaterMask(Vec a, Vec b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ); }
inline Vec MaxMagnitude(Vec a, Vec b) {
  return Vec::FromBits(
      _mm512_max_epi32(a.Bits(), _mm512_and_si512(b.Bits(), _mm512_set1_epi32(0x7fffffff))));
}
inline Vec AddExponent(Vec p, Vec n) {
  return Vec::FromBits(_mm512_add_epi32(p.Bits(), _mm512_slli_epi32(n.Bits(), 23)));
}

}  // namespace skein::avx512
