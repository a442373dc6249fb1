#pragma once

// The instruction of the BF16 class for the tiles of dot_tile_body.h. math_body.h says how this
// file is used. Needs AVX512-BF16.

#include <immintrin.h>

#include <cstdint>

namespace skein {
namespace {

// vdpbf16ps: first adds the product of both odd terms of a pair, then that of both even terms.
struct Bf16Dot {
  static constexpr int32_t kTermBytes = 2;

  using Sums = __m512;
  static Sums Zero() { return _mm512_setzero_ps(); }
  static Sums Load(const float* p) { return _mm512_loadu_ps(p); }
  static void Store(Sums sums, float* p) { _mm512_storeu_ps(p, sums); }
  static Sums Add(Sums sums, __m512i row, __m512i columns) {
    return _mm512_dpbf16_ps(sums, (__m512bh)row, (__m512bh)columns);
  }
};

}  // namespace
}  // namespace skein
