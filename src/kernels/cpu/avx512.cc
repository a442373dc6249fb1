// Only functions parsed after the pragma are compiled for the instruction set. Headers with inline
// functions are included before it, the bodies of the kernels after it.

// g++ 12 warns of deliberately undefined inputs inside its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include "kernels/cpu/ops.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")

#include "kernels/cpu/vec_avx512.h"
// This body must come after the vector type that it uses.
#include "kernels/cpu/ops_body.h"

namespace skein {

CpuOps Avx512Ops() { return kOpsOf<avx512::Vec>; }

}  // namespace skein
