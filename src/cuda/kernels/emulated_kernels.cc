#include "cuda/kernels/emulated_kernels.h"

#include "cuda/kernels/table/kernel_table.h"

namespace skein::cuda {

void BeginEmulated(const Launch& launch, Emulator& emulator) {
  static const KernelTable table = MakeKernelTable();
  const KernelFunction& function = table[static_cast<int>(launch.kernel)];
  SKEIN_CHECK(function.run != nullptr);
  emulator.BeginKernel(launch.shape,
                       [&function, launch] { function.run(function.address, launch.args.data()); });
}

Status RunEmulated(const Launch& launch, Emulator& emulator) {
  BeginEmulated(launch, emulator);
  return emulator.FinishKernel();
}

}  // namespace skein::cuda
