#include "kernels/cpu/ops.h"

namespace skein {

const CpuOps& AmxOps() { return Avx512Ops(); }

}  // namespace skein
