#pragma once

#include <cstdint>
#include <memory>

#include "cuda/device/device.h"

namespace skein::cuda {

// Opens the GPU with number `index` through the CUDA runtime. kUnsupported if this program was
// built without CUDA; kUnavailable if there is no such GPU, or no driver for it.
Result<std::unique_ptr<Device>> OpenCudaDevice(int index);

// The GPUs of this machine; 0 without a driver.
int32_t NumCudaDevices();

}  // namespace skein::cuda
