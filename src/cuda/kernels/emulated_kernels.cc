#include "cuda/kernels/emulated_kernels.h"

#include "cuda/kernels/kernel_table.h"

namespace skein::cuda {

Status RunEmulated(const Launch& launch, Emulator& emulator) {
  static const KernelTable table = MakeKernelTable();
  const KernelFunction& function = table[static_cast<int>(launch.kernel)];
  SKEIN_CHECK(function.run != nullptr);
  return emulator.RunKernel(launch.shape,
                            [&] { function.run(function.address, launch.args.data()); });
}

}  // namespace skein::cuda
