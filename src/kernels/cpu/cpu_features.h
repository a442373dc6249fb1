#pragma once

#include "kernels/kernels.h"

namespace skein {

// Whether this processor and its kernel let the process run the instruction set. For kAmx the first
// call asks the kernel for permission to use tile data. The permission covers threads that start
// later, so the call comes before any thread starts.
bool CpuHas(Isa isa);
bool CpuHasVnni();  // AVX-512's products of int8, which kAvx512 does not imply

}  // namespace skein
