#pragma once

#include "kernels/kernels.h"

namespace skein {

// Whether this processor and its operating system let the process use the instruction set. For kAmx
// the first call asks the operating system for permission to use tile data. The permission covers
// threads that start later, so this call must come before any thread starts.
bool CpuHas(Isa isa);
// Whether kAvx512Bf16, which this processor has, is faster than kAvx512Bf16Fma. Measured once.
bool CpuHasFastBf16Dots();
bool CpuHasVnni();  // AVX-512's int8 products (VNNI), which kAvx512 does not imply

}  // namespace skein
