#include "kernels/cpu/ops.h"
#include "kernels/cpu/vec_scalar.h"
// The body comes after the vector.
#include "kernels/cpu/gemm_blocks_body.h"
#include "kernels/cpu/gemm_int8_body.h"
#include "kernels/cpu/ops_body.h"

namespace skein {

CpuOps ScalarOps() {
  CpuOps ops = kOpsOf<scalar::Vec>;
  ops.gemm_int8 = GemmInt8<scalar::Vec, scalar::Sums>;
  ops.gemm_blocks = GemmBlocks<scalar::Vec, scalar::Blocks>;
  return ops;
}

}  // namespace skein
