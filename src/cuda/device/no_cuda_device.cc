#include "cuda/device/cuda_device.h"

namespace skein::cuda {

Result<std::unique_ptr<Device>> OpenCudaDevice(int) {
  return Status(StatusCode::kUnsupported,
                "this program was built without CUDA; `make build CUDA=1` builds one with it");
}

int32_t NumCudaDevices() { return 0; }

}  // namespace skein::cuda
