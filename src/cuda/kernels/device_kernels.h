#pragma once

#include "cuda/kernels/kernel_id.h"

namespace skein::cuda {

// The kernel as a pointer for cudaLaunchKernel. Defined by device_kernels.cu, which only nvcc
// compiles.
const void* DeviceKernel(KernelId id);

}  // namespace skein::cuda
