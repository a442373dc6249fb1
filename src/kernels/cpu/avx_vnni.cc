// Integer products with AVX-VNNI, and all else with AVX2. avx2.cc explains the order of includes.
#include <immintrin.h>

#include "kernels/cpu/ops.h"

#pragma GCC target("avx2,fma,f16c")

#include "kernels/cpu/vec_avx2.h"
// These bodies must come after the vector type that they use.
#include "kernels/cpu/attention/attention_int8_body.h"
#include "kernels/cpu/gemm_blocks_body.h"
#include "kernels/cpu/gemm_int8_body.h"
#include "kernels/cpu/vec_avx_vnni.h"

namespace skein {

CpuOps AvxVnniOps() {
  CpuOps ops = Avx2Ops();
  ops.gemm_int8 = GemmInt8<avx2::Vec, avx2::VnniSums>;
  ops.gemm_blocks = GemmBlocks<avx2::Vec, avx2::VnniBlocks>;
  ops.attention_int8 = Attention<avx2::Vec, Int8Products<avx2::Vec, avx2::VnniBlocks>>;
  return ops;
}

}  // namespace skein
