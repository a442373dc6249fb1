#pragma once

// The steps of products of bf16 for the tiles of dot_tile_body.h. math_body.h says how this file is
// used, and gemm_dot_body.h or dot_tile_body.h comes before it. Bf16Dot needs AVX512-BF16, the
// other one AVX-512 alone.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace skein {
namespace {

// The common part of the steps.
struct Bf16Sums {
  static constexpr int32_t kTermBytes = 2;
  static constexpr int32_t kGroupTerms = 2;

  using Sums = __m512;
  static Sums Zero() { return _mm512_setzero_ps(); }
  static Sums Load(const float* p) { return _mm512_loadu_ps(p); }
  static void Store(Sums sums, float* p) { _mm512_storeu_ps(p, sums); }
};

// vdpbf16ps, the BF16 class: first adds the product of both odd terms of a pair, then that of both
// even terms.
struct Bf16Dot : Bf16Sums, DotOperands {
  static constexpr int32_t kTileTermBytes = 2;
  static Sums Add(Sums sums, Row row, Columns columns) {
    return _mm512_dpbf16_ps(sums, (__m512bh)row, (__m512bh)columns);
  }
};

// Two FMAs under ScopedFpMode: first of the odd terms, as in the BF16 class, or of the even ones,
// as in the FMA class. Rows are widened to f32 beforehand, columns in registers.
template <bool kOddFirst>
struct Bf16Fmas : Bf16Sums {
  static constexpr int32_t kTileTermBytes = 4;
  // Two tiles: rows and panels of a block stay in a first-level cache of 48 KB.
  static constexpr int32_t kChunkRows = 24;
  static constexpr int32_t kPanels = 8;
  static constexpr int32_t kBlockBytes = 1024;
  static constexpr int kMostRows = 12;
  static constexpr int MostPanels(int rows) { return rows <= 5 ? 4 : rows <= 7 ? 3 : 2; }

  struct Row {
    __m512 even, odd;
  };
  static Row LoadRow(const std::byte* p) {
    float terms[2];
    __builtin_memcpy(terms, p, sizeof(terms));
    return {_mm512_set1_ps(terms[0]), _mm512_set1_ps(terms[1])};
  }
  struct Columns {
    __m512 even, odd;
  };
  static Columns LoadColumns(const std::byte* p) {
    const __m512i pairs = _mm512_loadu_si512(p);
    return {_mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)),
            _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(int(0xffff0000u))))};
  }
  static Sums Add(Sums sums, Row row, Columns columns) {
    if constexpr (kOddFirst) {
      return _mm512_fmadd_ps(row.even, columns.even, _mm512_fmadd_ps(row.odd, columns.odd, sums));
    } else {
      return _mm512_fmadd_ps(row.odd, columns.odd, _mm512_fmadd_ps(row.even, columns.even, sums));
    }
  }
};

// Writes 32 bf16 as f32.
inline void WidenBf16(const void* from, void* to) {
  const auto* halves = static_cast<const __m256i*>(from);
  for (int i = 0; i < 2; ++i) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(halves + i));
    _mm512_storeu_si512(static_cast<__m512i*>(to) + i, _mm512_slli_epi32(wide, 16));
  }
}

// A step with what GemmDots needs besides.
template <class Step>
struct Bf16Product : Step {
  static constexpr bool kTakesRows = Step::kTileTermBytes == Step::kTermBytes;
  static void CopyRow(const std::byte* from, std::byte* to) {
    if constexpr (kTakesRows) {
      _mm512_storeu_si512(to, _mm512_loadu_si512(from));
    } else {
      WidenBf16(from, to);
    }
  }
  static __m512 Start(const PackedWeight& /*w*/, int32_t /*panel*/) { return Step::Zero(); }
  static __m512 Finish(const GemmCall& /*call*/, int32_t /*row*/, int32_t /*column*/, __m512 sums) {
    return sums;
  }
};

}  // namespace
}  // namespace skein
