#pragma once

// Integer products with vpdpbusd on 256 bits (AVX-VNNI), beside avx2::Vec, whose file must come
// before. The instruction is assembly, so that the target stays AVX2: the functions that this file
// shares with avx2.cc are the same in both.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace skein::avx2 {

// Adds the products of four unsigned bytes with four signed ones to each sum. Overflow wraps
// around.
inline __m256i AddQuadProducts(__m256i sums, __m256i unsigned_bytes, __m256i signed_bytes) {
  asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums) : "x"(unsigned_bytes), "xm"(signed_bytes));
  return sums;
}

// 16 sums of int8 products, with the contract of scalar::Sums. 128 is added to the row's bytes, and
// the sums start from -128 times the sum of the column (PackedWeight::offsets).
struct VnniSums {
  static constexpr int kRows = 6;
  static constexpr bool kStartsFromOffsets = true;
  __m256i lo, hi;

  struct Quads {
    __m256i lo, hi;
  };
  static Quads LoadQuads(const std::byte* p) { return {Vec::LoadBits(p), Vec::LoadBits(p + 32)}; }
  using Row = __m256i;
  static Row Broadcast(int32_t quad) {
    return _mm256_xor_si256(_mm256_set1_epi32(quad), _mm256_set1_epi8(-128));
  }
  static VnniSums Load(const int32_t* p) { return {Vec::LoadBits(p), Vec::LoadBits(p + 8)}; }
  void Store(int32_t* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), lo);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), hi);
  }
};
inline VnniSums Dot(VnniSums sums, __m256i row, const VnniSums::Quads& w) {
  return {AddQuadProducts(sums.lo, row, w.lo), AddQuadProducts(sums.hi, row, w.hi)};
}

// The operations on quads of blocks, with the contract of scalar::Blocks. The weights are the
// unsigned operand, so 128 is added to signed weights.
struct VnniBlocks : Blocks {
  static constexpr int32_t kSignedZero = 128;

  static Quads FromOffset(Quads quads) { return quads; }
  template <int kBits, int kCount>
  static Vec Dot(const Quads* w, const int8_t* q, int32_t start) {
    __m256i lo = _mm256_set1_epi32(start), hi = lo;
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) {
      const __m256i row = Row(q + 4 * i);
      lo = AddQuadProducts(lo, w[i].lo, row);
      hi = AddQuadProducts(hi, w[i].hi, row);
    }
    return {_mm256_cvtepi32_ps(lo), _mm256_cvtepi32_ps(hi)};
  }
  template <int kBits, int kZero, int kCount, int R>
  static inline __attribute__((always_inline)) void Dots(const std::byte* w, const int8_t* q,
                                                         int64_t stride,
                                                         const int32_t (&row_sums)[R],
                                                         Vec (&sums)[R]) {
    __m256i lo[R], hi[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) lo[r] = hi[r] = _mm256_set1_epi32(-kZero * row_sums[r]);
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i, w += 64) {
      const Quads quads = Load(w);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m256i row = Row(q + r * stride + 4 * i);
        lo[r] = AddQuadProducts(lo[r], quads.lo, row);
        hi[r] = AddQuadProducts(hi[r], quads.hi, row);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r] = {_mm256_cvtepi32_ps(lo[r]), _mm256_cvtepi32_ps(hi[r])};
  }
};

}  // namespace skein::avx2
