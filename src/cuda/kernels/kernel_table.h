#pragma once

// The functions of all kernels. Included by emulated_kernels.cc and device_kernels.cu; each of them
// compiles every kernel for its side.

#include <array>

#include "base/dtype.h"
#include "cuda/kernels/attention.h"
#include "cuda/kernels/experts.h"
#include "cuda/kernels/gemm.h"
#include "cuda/kernels/gemm_blocks.h"
#include "cuda/kernels/heads.h"
#include "cuda/kernels/kernel_id.h"
#include "cuda/kernels/largest.h"
#include "cuda/kernels/rows.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

// The function of a kernel as an address, and as a call for a thread of the emulator.
struct KernelFunction {
  template <typename Args>
  KernelFunction& operator=(void (*kernel)(Args)) {
    address = reinterpret_cast<const void*>(kernel);
    run = [](const void* function, const void* args) {
      reinterpret_cast<void (*)(Args)>(const_cast<void*>(function))(
          *static_cast<const Args*>(args));
    };
    return *this;
  }

  const void* address = nullptr;
  void (*run)(const void* address, const void* args) = nullptr;
};

using KernelTable = std::array<KernelFunction, kNumKernels>;

inline KernelFunction& At(KernelTable& table, KernelId id) { return table[static_cast<int>(id)]; }

template <class Tile, typename T>
void AddProducts(KernelTable& table, KernelId store, KernelId add) {
  At(table, store) = GemmKernel<Tile, T, GemmOutput::kStore, float>;
  At(table, add) = GemmKernel<Tile, T, GemmOutput::kAdd, float>;
}

template <class Tile, typename T>
void AddGrouped(KernelTable& table, KernelId store, KernelId gated) {
  At(table, store) = GroupedGemmKernel<Tile, T, GemmOutput::kStore, float>;
  At(table, gated) = GroupedGemmKernel<Tile, T, GemmOutput::kGated, T>;
}

// Two kernels that follow each other: for few rows, and for many.
template <GemmOutput kOutput, typename Out>
void AddBlocks(KernelTable& table, KernelId few) {
  At(table, few) = BlocksGemmKernel<1, kOutput, Out>;
  (&At(table, few))[1] = BlocksGemmKernel<kManyBlockTiles<kOutput>, kOutput, Out>;
}

inline KernelTable MakeKernelTable() {
  using enum KernelId;
  constexpr GemmOutput kGated = GemmOutput::kGated;
  KernelTable table;
  At(table, kEmbedF32) = EmbedKernel<float, false>;
  At(table, kEmbedBf16) = EmbedKernel<Bf16, false>;
  At(table, kEmbedPanelsF32) = EmbedKernel<float, true>;
  At(table, kEmbedPanelsBf16) = EmbedKernel<Bf16, true>;
  At(table, kEmbedPanelsInt8) = EmbedKernel<int8_t, true>;
  At(table, kEmbedBlocks) = EmbedBlocksKernel<float>;
  At(table, kRmsNormF32) = RmsNormKernel<float>;
  At(table, kRmsNormBf16) = RmsNormKernel<Bf16>;
  At(table, kBranch) = BranchKernel<float>;
  At(table, kActivateF32) = ActivateKernel<float>;
  At(table, kActivateBf16) = ActivateKernel<Bf16>;
  At(table, kQuantizeF32) = QuantizeKernel<float>;
  At(table, kQuantizeBf16) = QuantizeKernel<Bf16>;
  At(table, kQuantizeBlocksF32) = QuantizeBlocksKernel<float>;
  At(table, kQuantizeBlocksBf16) = QuantizeBlocksKernel<Bf16>;
  At(table, kStoreHeadsF32) = StoreHeadsKernel<float>;
  At(table, kStoreHeadsBf16) = StoreHeadsKernel<Bf16>;
  At(table, kCopySlotsF32) = CopySlotsKernel<float>;
  At(table, kCopySlotsBf16) = CopySlotsKernel<Bf16>;
  At(table, kAttentionF32) = AttentionKernel<float, kNarrowTiles>;
  At(table, kAttentionBf16Head64) = AttentionKernel<Bf16, kNarrowTiles>;
  At(table, kAttentionBf16Head128) = AttentionKernel<Bf16, kWideTiles>;
  At(table, kMergeSegmentsF32) = MergeSegmentsKernel<float>;
  At(table, kMergeSegmentsBf16) = MergeSegmentsKernel<Bf16>;
  At(table, kFindLargest) = FindLargestKernel<float>;
  At(table, kChooseExperts) = ChooseExpertsKernel<float>;
  At(table, kListSlots) = ListSlotsKernel<int32_t>;
  At(table, kSumExperts) = SumExpertsKernel<float>;
  AddProducts<SmallTile, float>(table, kGemm16F32Store, kGemm16F32Add);
  AddProducts<SmallTile, Bf16>(table, kGemm16Bf16Store, kGemm16Bf16Add);
  AddProducts<SmallTile, int8_t>(table, kGemm16Int8Store, kGemm16Int8Add);
  At(table, kGemm16F32Gated) = GemmKernel<SmallTile, float, kGated, float>;
  At(table, kGemm16Bf16Gated) = GemmKernel<SmallTile, Bf16, kGated, Bf16>;
  At(table, kGemm16Int8GatedF32) = GemmKernel<SmallTile, int8_t, kGated, float>;
  At(table, kGemm16Int8GatedBf16) = GemmKernel<SmallTile, int8_t, kGated, Bf16>;
  AddProducts<LargeTile, float>(table, kGemm128F32Store, kGemm128F32Add);
  AddProducts<LargeTile, Bf16>(table, kGemm128Bf16Store, kGemm128Bf16Add);
  AddProducts<LargeTile, int8_t>(table, kGemm128Int8Store, kGemm128Int8Add);
  At(table, kGemm128F32Gated) = GemmKernel<LargeTile, float, kGated, float>;
  At(table, kGemm128Bf16Gated) = GemmKernel<LargeTile, Bf16, kGated, Bf16>;
  At(table, kGemm128Int8GatedF32) = GemmKernel<LargeTile, int8_t, kGated, float>;
  At(table, kGemm128Int8GatedBf16) = GemmKernel<LargeTile, int8_t, kGated, Bf16>;
  AddGrouped<SmallTile, float>(table, kGrouped16F32Store, kGrouped16F32Gated);
  AddGrouped<SmallTile, Bf16>(table, kGrouped16Bf16Store, kGrouped16Bf16Gated);
  AddGrouped<LargeTile, float>(table, kGrouped128F32Store, kGrouped128F32Gated);
  AddGrouped<LargeTile, Bf16>(table, kGrouped128Bf16Store, kGrouped128Bf16Gated);
  AddBlocks<GemmOutput::kStore, float>(table, kBlocksStore);
  AddBlocks<GemmOutput::kAdd, float>(table, kBlocksAdd);
  AddBlocks<kGated, float>(table, kBlocksGatedF32);
  AddBlocks<kGated, Bf16>(table, kBlocksGatedBf16);
  return table;
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
