#include "cuda/kernels/device_kernels.h"
#include "cuda/kernels/table/kernel_table.h"

namespace skein::cuda {

const void* DeviceKernel(KernelId id) {
  static const KernelTable table = MakeKernelTable();
  return table[static_cast<int>(id)].address;
}

}  // namespace skein::cuda
