// Kernels of matrices that stay in blocks of 4 to 8 bits.

#include "base/dtype.h"
#include "cuda/kernels/gemm_blocks.h"
#include "cuda/kernels/gemm_blocks_few.h"
#include "cuda/kernels/table/kernel_table.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {
namespace {

// Two kernels that follow each other: for few rows, and for many.
template <GemmOutput kOutput, typename Out>
void AddBlocks(KernelTable& table, KernelId few) {
  At(table, few) = FewBlocksGemmKernel<kOutput, Out>;
  (&At(table, few))[1] = BlocksGemmKernel<kOutput, Out>;
}
template <GemmOutput kOutput, typename Out>
void AddGroupedBlocks(KernelTable& table, KernelId few) {
  At(table, few) = GroupedFewBlocksGemmKernel<kOutput, Out>;
  (&At(table, few))[1] = GroupedBlocksGemmKernel<kOutput, Out>;
}

}  // namespace

void AddBlockKernels(KernelTable& table) {
  using enum KernelId;
  At(table, kEmbedBlocks) = EmbedBlocksKernel<float>;
  At(table, kQuantizeBlocksF32) = QuantizeBlocksKernel<float>;
  At(table, kQuantizeBlocksBf16) = QuantizeBlocksKernel<Bf16>;
  AddBlocks<GemmOutput::kStore, float>(table, kBlocksStore);
  AddBlocks<GemmOutput::kAdd, float>(table, kBlocksAdd);
  AddBlocks<GemmOutput::kGated, float>(table, kBlocksGatedF32);
  AddBlocks<GemmOutput::kGated, Bf16>(table, kBlocksGatedBf16);
  AddGroupedBlocks<GemmOutput::kStore, float>(table, kGroupedBlocksStore);
  AddGroupedBlocks<GemmOutput::kGated, float>(table, kGroupedBlocksGatedF32);
  AddGroupedBlocks<GemmOutput::kGated, Bf16>(table, kGroupedBlocksGatedBf16);
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
