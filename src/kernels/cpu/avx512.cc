// Only functions parsed after the pragma are compiled for the instruction set: whatever has inline
// functions is included before it, the kernels' bodies after it.

// g++ 12 takes the deliberately undefined inputs inside its own intrinsics for mistakes of ours.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include "kernels/cpu/ops.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")

#include "kernels/cpu/vec_avx512.h"
// After the vector.
#include "kernels/cpu/ops_body.h"

namespace skein {

CpuOps Avx512Ops() { return kOpsOf<avx512::Vec>; }

}  // namespace skein
