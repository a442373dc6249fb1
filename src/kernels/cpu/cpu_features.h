#pragma once

#include "kernels/kernels.h"

namespace skein {

// True if this processor and its kernel let the process run the instruction set. For kAmx the first
// call asks the kernel's permission to use tile data, which covers threads started afterwards; so
// ask before starting any.
bool CpuHas(Isa isa);
bool CpuHasVnni();  // AVX-512's products of int8, beside what kAvx512 asks for

}  // namespace skein
