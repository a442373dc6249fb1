// Only functions parsed after the pragma are compiled for the instruction set: whatever has inline
// functions is included before it, the kernels' bodies after it.
#include <immintrin.h>

#include "kernels/cpu/ops.h"

#pragma GCC target("avx2,fma")

#include "kernels/cpu/vec_avx2.h"
// After the vector.
#include "kernels/cpu/ops_body.h"

namespace skein {

const CpuOps& Avx2Ops() { return kOpsOf<avx2::Vec>; }

}  // namespace skein
