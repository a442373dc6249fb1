#pragma once

#include <memory>

#include "kernels/kernels.h"

namespace skein {

// The kernels of an instruction set, for tests, which may emulate the instruction set. Does not
// check that this machine has it. Other code calls MakeKernels.
std::unique_ptr<Kernels> MakeCpuKernels(Isa isa);

}  // namespace skein
