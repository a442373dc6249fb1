#include "kernels/cpu/ops.h"
#include "kernels/cpu/vec_scalar.h"
// These bodies must come after the vector type that they use.
#include "kernels/cpu/attention/attention_int8_body.h"
#include "kernels/cpu/gemm_blocks_body.h"
#include "kernels/cpu/gemm_int8_body.h"
#include "kernels/cpu/ops_body.h"

namespace skein {

SKEIN_FMA_CLONES void scalar::FmaLanes(const float* __restrict a, const float* __restrict b,
                                       float* __restrict c) {
  for (int i = 0; i < 16; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
}

CpuOps ScalarOps() {
  CpuOps ops = kOpsOf<scalar::Vec>;
  ops.gemm_int8 = GemmInt8<scalar::Vec, scalar::Sums>;
  ops.gemm_blocks = GemmBlocks<scalar::Vec, scalar::Blocks>;
  ops.attention_int8 = Attention<scalar::Vec, Int8Products<scalar::Vec, scalar::Blocks>>;
  return ops;
}

}  // namespace skein
