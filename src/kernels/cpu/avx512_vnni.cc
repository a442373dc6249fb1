// Products of int8 by AVX-512's own instruction for them. See avx512.cc for the order of includes.

// g++ 12 takes the deliberately undefined inputs inside its own intrinsics for mistakes of ours.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include "kernels/cpu/ops.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma")

#include "kernels/cpu/vec_avx512.h"
// After the vector.
#include "kernels/cpu/gemm_int8_body.h"

namespace skein {
namespace {

// 16 sums of int8 products; the same contract as scalar::Sums. The instruction multiplies unsigned
// by signed bytes: the row's are made unsigned by adding 128, and the sums start from -128 times
// the sum of the column. What overflows on the way wraps around, and so back.
struct Sums {
  static constexpr bool kOffset = true;

  __m512i v;

  using Quads = __m512i;
  static Quads LoadQuads(const std::byte* p) { return _mm512_loadu_si512(p); }
  using Row = __m512i;
  static Row Broadcast(int32_t quad) { return _mm512_set1_epi32(quad ^ int32_t(0x80808080u)); }
  static Sums Load(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
  void Store(int32_t* p) const { _mm512_storeu_si512(p, v); }
};

inline Sums Dot(Sums sums, __m512i a, __m512i w) { return {_mm512_dpbusd_epi32(sums.v, a, w)}; }

}  // namespace

void Avx512VnniGemm(const GemmCall& call) { GemmInt8<avx512::Vec, Sums>(call); }

}  // namespace skein
