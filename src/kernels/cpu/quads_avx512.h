#pragma once

// Unpacking of blocks with AVX-512. math_body.h says how this file is used.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "base/blocks/block_format.h"

namespace skein::avx512 {

// The operations of scalar::Blocks that do not depend on the instruction of the products.
struct Quads512 {
  using Quads = __m512i;

  // Keeps the compiler from loading the quads again for each use.
  static Quads Load(const std::byte* p) {
    __m512i quads = _mm512_loadu_si512(p);
    asm("" : "+v"(quads));
    return quads;
  }
  static void Store(Quads quads, std::byte* p) { _mm512_storeu_si512(p, quads); }
  static Quads LowHalves(Quads quads) { return _mm512_and_si512(quads, _mm512_set1_epi8(15)); }
  static Quads HighHalves(Quads quads) { return UpperBits<-4, 15>(quads); }
  template <int kShift, int kMask>
  static Quads UpperBits(Quads quads) {
    if constexpr (kShift >= 0) {
      quads = _mm512_slli_epi16(quads, kShift);
    } else {
      quads = _mm512_srli_epi16(quads, -kShift);
    }
    return _mm512_and_si512(quads, _mm512_set1_epi8(kMask));
  }
  static Quads Or(Quads a, Quads b) { return _mm512_or_si512(a, b); }
  template <Codebook kCodebook, int kOffset>
  static Quads LookUp(Quads quads) {
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kCodebook));
    const __m128i table = _mm_add_epi8(codes, _mm_set1_epi8(int8_t(kOffset)));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), quads);
  }
};

}  // namespace skein::avx512
