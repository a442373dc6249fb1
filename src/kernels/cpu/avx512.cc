// Only functions parsed after the pragma are compiled for the instruction set. Headers with inline
// functions are included before it, the bodies of the kernels after it.

// g++ 12 warns of deliberately undefined inputs inside its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include "kernels/cpu/ops.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")

#include "kernels/cpu/vec_avx512.h"
// These bodies must come after the vector type that they use.
#include "kernels/cpu/gemm_dot_body.h"
#include "kernels/cpu/ops_body.h"
// This body must come after the tiles.
#include "kernels/cpu/bf16_dot_body.h"

namespace skein {
namespace {

// A single row streams its panels. The tiles of pairs cannot have a single last term: the term that
// fills up the pair would change a sum of -0.
void GemmBf16(const GemmCall& call) {
  if (call.m == 1 || call.w->k() % 2 != 0) return Gemm<avx512::Vec, true>(call);
  GemmDots<Bf16Product<Bf16Fmas<false>>>(call);
}

}  // namespace

CpuOps Avx512Ops() {
  CpuOps ops = kOpsOf<avx512::Vec>;
  ops.gemm_bf16 = GemmBf16;
  return ops;
}

}  // namespace skein
