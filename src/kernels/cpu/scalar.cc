#include "kernels/cpu/ops.h"
#include "kernels/cpu/vec_scalar.h"
// After the vector.
#include "kernels/cpu/ops_body.h"

namespace skein {

const CpuOps& ScalarOps() { return kOpsOf<scalar::Vec>; }

}  // namespace skein
