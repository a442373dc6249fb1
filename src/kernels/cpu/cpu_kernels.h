#pragma once

#include <memory>

#include "kernels/kernels.h"

namespace skein {

// The kernels of an instruction set, without a check that this machine has it: for tests, which may
// emulate it. Other code calls MakeKernels.
std::unique_ptr<Kernels> MakeCpuKernels(Isa isa);

}  // namespace skein
