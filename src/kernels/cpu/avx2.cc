// Only functions parsed after the pragma are compiled for the instruction set. Headers with inline
// functions are included before it, the bodies of the kernels after it.
#include <immintrin.h>

#include "kernels/cpu/ops.h"

#pragma GCC target("avx2,fma,f16c")

#include "kernels/cpu/vec_avx2.h"
// These bodies must come after the vector type that they use.
#include "kernels/cpu/attention/attention_int8_body.h"
#include "kernels/cpu/gemm_blocks_body.h"
#include "kernels/cpu/gemm_blocks_winograd_body.h"
#include "kernels/cpu/gemm_int8_body.h"
#include "kernels/cpu/gemm_int8_winograd_body.h"
#include "kernels/cpu/ops_body.h"

namespace skein {
namespace {

// With fewer rows, widening a panel costs more than Winograd's inner product saves. For int8 the
// gain also depends on the core: with a busy second thread on it, the plain product, which has
// fewer instructions, is faster for any number of rows (docs/results/cpu-tiles.md).
constexpr int32_t kFewestWinogradInt8Rows = 24;
constexpr int32_t kFewestWinogradBlockRows = 8;

void GemmInt8OfRows(const GemmCall& call) {
  call.m < kFewestWinogradInt8Rows ? GemmInt8<avx2::Vec, avx2::Sums>(call)
                                   : avx2::GemmInt8Winograd(call);
}

void GemmBlocksOfRows(const GemmCall& call) {
  call.m < kFewestWinogradBlockRows || !avx2::HasSignedValues(call)
      ? GemmBlocks<avx2::Vec, avx2::Blocks>(call)
      : avx2::GemmBlocksWinograd(call);
}

}  // namespace

CpuOps Avx2Ops() {
  CpuOps ops = kOpsOf<avx2::Vec>;
  ops.gemm_int8 = GemmInt8OfRows;
  ops.gemm_blocks = GemmBlocksOfRows;
  ops.attention_int8 = Attention<avx2::Vec, Int8Products<avx2::Vec, avx2::Blocks>>;
  return ops;
}

}  // namespace skein
