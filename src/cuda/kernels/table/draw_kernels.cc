// Kernels of draws.

#include "cuda/kernels/draws/draw.h"
#include "cuda/kernels/draws/weigh_groups.h"
#include "cuda/kernels/table/kernel_table.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

void AddDrawKernels(KernelTable& table) {
  At(table, KernelId::kWeighGroups) = WeighGroupsKernel<float>;
  At(table, KernelId::kDraw) = DrawKernel<float>;
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
