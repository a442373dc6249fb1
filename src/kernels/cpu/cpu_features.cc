#include "kernels/cpu/cpu_features.h"

namespace skein {

bool CpuHas(Isa isa) { return isa == Isa::kScalar; }

}  // namespace skein
