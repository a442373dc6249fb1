#pragma once

#include <cstdint>

namespace skein::cuda {

// Every kernel for every type (kernel_table.h has the functions).
enum class KernelId : uint8_t {
  kEmbedF32,
  kEmbedBf16,
  kEmbedPanelsF32,
  kEmbedPanelsBf16,
  kEmbedPanelsInt8,
  kEmbedBlocks,
  kRmsNormF32,
  kRmsNormBf16,
  kBranch,
  kActivateF32,
  kActivateBf16,
  kQuantizeF32,
  kQuantizeBf16,
  kQuantizeBlocksF32,
  kQuantizeBlocksBf16,
  kStoreHeadsF32,
  kStoreHeadsBf16,
  kCopySlotsF32,
  kCopySlotsBf16,
  kAttentionF32,
  kAttentionBf16Head64,
  kAttentionBf16Head128,
  kMergeSegmentsF32,
  kMergeSegmentsBf16,
  kFindLargest,
  kChooseExperts,
  kListSlots,
  kSumExperts,
  // Products: rows of a tile, type of the operands, output.
  kGemm16F32Store,
  kGemm16F32Add,
  kGemm16F32Gated,
  kGemm16Bf16Store,
  kGemm16Bf16Add,
  kGemm16Bf16Gated,
  kGemm16Int8Store,
  kGemm16Int8Add,
  kGemm16Int8GatedF32,
  kGemm16Int8GatedBf16,
  kGemm128F32Store,
  kGemm128F32Add,
  kGemm128F32Gated,
  kGemm128Bf16Store,
  kGemm128Bf16Add,
  kGemm128Bf16Gated,
  kGemm128Int8Store,
  kGemm128Int8Add,
  kGemm128Int8GatedF32,
  kGemm128Int8GatedBf16,
  // Grouped products.
  kGrouped16F32Store,
  kGrouped16F32Gated,
  kGrouped16Bf16Store,
  kGrouped16Bf16Gated,
  kGrouped128F32Store,
  kGrouped128F32Gated,
  kGrouped128Bf16Store,
  kGrouped128Bf16Gated,
  // Products with matrices of blocks.
  kBlocksStore,
  kBlocksStoreMany,
  kBlocksAdd,
  kBlocksAddMany,
  kBlocksGatedF32,
  kBlocksGatedF32Many,
  kBlocksGatedBf16,
  kBlocksGatedBf16Many,
};
inline constexpr int kNumKernels = static_cast<int>(KernelId::kBlocksGatedBf16Many) + 1;

}  // namespace skein::cuda
