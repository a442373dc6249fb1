// Products of bf16 with vdpbf16ps: the BF16 class of docs/numerics.md. avx512.cc explains the order
// of includes.

// g++ 12 warns of deliberately undefined inputs inside its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include "kernels/cpu/ops.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")

#include "kernels/cpu/vec_avx512.h"
// These bodies must come after the vector type that they use.
#include "kernels/cpu/bf16_dot_body.h"
#include "kernels/cpu/gemm_dot_body.h"

namespace skein {
namespace {

struct Bf16Product : Bf16Dot {
  static constexpr bool kTakesRows = true;
  static __m512i Row(__m512i bytes) { return bytes; }
  static Sums Start(const PackedWeight& /*w*/, int32_t /*panel*/) { return Zero(); }
  static void Finish(const GemmCall& /*call*/, float* /*c*/, int64_t /*ldc*/, int32_t /*row*/,
                     int32_t /*rows*/, int32_t /*column*/) {}
};

}  // namespace

void Avx512Bf16Gemm(const GemmCall& call) { GemmDots<Bf16Product>(call); }

}  // namespace skein
