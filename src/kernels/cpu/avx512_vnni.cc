// Products of int8 with AVX-512's instruction for them. avx512.cc explains the order of includes.

// g++ 12 warns of deliberately undefined inputs inside its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include "kernels/cpu/ops.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma")

#include "kernels/cpu/vec_avx512.h"
// The body comes after the vector.
#include "kernels/cpu/gemm_int8_body.h"

namespace skein {
namespace {

// 16 sums of int8 products; the same contract as scalar::Sums. The instruction multiplies unsigned
// by signed bytes. Adding 128 makes the row's bytes unsigned, and the sums start from -128 times
// the sum of the column. Intermediate overflow wraps around and cancels.
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
