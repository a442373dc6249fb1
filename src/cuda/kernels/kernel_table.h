#pragma once

// The functions of all kernels. Included by emulated_kernels.cc and device_kernels.cu; each of them
// compiles every kernel for its side.

#include <array>
#include <type_traits>

#include "base/dtype.h"
#include "cuda/kernels/attention/attention.h"
#include "cuda/kernels/attention/attention_specialized.h"
#include "cuda/kernels/attention/attention_wide.h"
#include "cuda/kernels/encoder_rows.h"
#include "cuda/kernels/experts.h"
#include "cuda/kernels/gemm_blocks.h"
#include "cuda/kernels/gemm_persistent.h"
#include "cuda/kernels/gemm_tiles.h"
#include "cuda/kernels/heads.h"
#include "cuda/kernels/kernel_id.h"
#include "cuda/kernels/largest.h"
#include "cuda/kernels/linear_attention.h"
#include "cuda/kernels/many_heads.h"
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

// The products of one type and size of tile, from their first id on.
template <typename T, TileSize kSize>
void AddProducts(KernelTable& table, KernelId first) {
  using enum GemmOutput;
  KernelFunction* functions = &At(table, first);
  functions[0] = GemmKernel<GemmTileOf<kSize, kStore>, T, kStore, float>;
  functions[1] = GemmKernel<GemmTileOf<kSize, kAdd>, T, kAdd, float>;
  if constexpr (std::is_same_v<T, int8_t>) {
    functions[2] = GemmKernel<GemmTileOf<kSize, kGated>, T, kGated, float>;
    functions[3] = GemmKernel<GemmTileOf<kSize, kGated>, T, kGated, Bf16>;
  } else {
    functions[2] = GemmKernel<GemmTileOf<kSize, kGated>, T, kGated, T>;
  }
}

// Those of bf16 with one block for each multiprocessor.
template <TileSize kSize>
void AddPersistent(KernelTable& table, KernelId first) {
  using enum GemmOutput;
  KernelFunction* functions = &At(table, first);
  functions[0] = PersistentGemmKernel<GemmTileOf<kSize, kStore>, kStore>;
  functions[1] = PersistentGemmKernel<GemmTileOf<kSize, kAdd>, kAdd>;
  functions[2] = PersistentGemmKernel<GemmTileOf<kSize, kGated>, kGated>;
}

template <typename T, TileSize kSize>
void AddGrouped(KernelTable& table, KernelId first) {
  using enum GemmOutput;
  KernelFunction* functions = &At(table, first);
  functions[0] = GroupedGemmKernel<GemmTileOf<kSize, kStore>, T, kStore, float>;
  if constexpr (std::is_same_v<T, int8_t>) {
    functions[1] = GroupedGemmKernel<GemmTileOf<kSize, kGated>, T, kGated, float>;
    functions[2] = GroupedGemmKernel<GemmTileOf<kSize, kGated>, T, kGated, Bf16>;
  } else {
    functions[1] = GroupedGemmKernel<GemmTileOf<kSize, kGated>, T, kGated, T>;
  }
}

// Two kernels that follow each other: for few rows, and for many.
template <GemmOutput kOutput, typename Out>
void AddBlocks(KernelTable& table, KernelId few) {
  At(table, few) = BlocksGemmKernel<1, kOutput, Out>;
  (&At(table, few))[1] = BlocksGemmKernel<kManyBlockTiles<kOutput>, kOutput, Out>;
}
template <GemmOutput kOutput, typename Out>
void AddGroupedBlocks(KernelTable& table, KernelId few) {
  At(table, few) = GroupedBlocksGemmKernel<1, kOutput, Out>;
  (&At(table, few))[1] = GroupedBlocksGemmKernel<kManyBlockTiles<kOutput>, kOutput, Out>;
}

inline void AddProducts(KernelTable& table) {
  using enum KernelId;
  AddProducts<float, TileSize::kFew16>(table, kF32Few16Store);
  AddProducts<float, TileSize::kMiddle>(table, kF32MiddleStore);
  AddProducts<Bf16, TileSize::kFew8>(table, kBf16Few8Store);
  AddProducts<Bf16, TileSize::kFew16>(table, kBf16Few16Store);
  AddProducts<Bf16, TileSize::kFew32>(table, kBf16Few32Store);
  AddProducts<Bf16, TileSize::kDeep32>(table, kBf16Deep32Store);
  AddProducts<Bf16, TileSize::kMiddle>(table, kBf16MiddleStore);
  AddProducts<Bf16, TileSize::kDeep64>(table, kBf16Deep64Store);
  AddProducts<Bf16, TileSize::kLarge>(table, kBf16LargeStore);
  AddProducts<Bf16, TileSize::kHuge>(table, kBf16HugeStore);
  AddPersistent<TileSize::kPersistentLarge>(table, kBf16PersistentLargeStore);
  AddPersistent<TileSize::kPersistentHuge>(table, kBf16PersistentHugeStore);
  AddProducts<int8_t, TileSize::kFew16>(table, kInt8Few16Store);
  AddProducts<int8_t, TileSize::kMiddle>(table, kInt8MiddleStore);
  AddProducts<int8_t, TileSize::kLarge>(table, kInt8LargeStore);
  AddGrouped<float, TileSize::kFew16>(table, kGroupedF32Few16Store);
  AddGrouped<float, TileSize::kMiddle>(table, kGroupedF32MiddleStore);
  AddGrouped<Bf16, TileSize::kFew16>(table, kGroupedBf16Few16Store);
  AddGrouped<Bf16, TileSize::kMiddle>(table, kGroupedBf16MiddleStore);
  AddGrouped<int8_t, TileSize::kFew16>(table, kGroupedInt8Few16Store);
  AddGrouped<int8_t, TileSize::kMiddle>(table, kGroupedInt8MiddleStore);
  AddBlocks<GemmOutput::kStore, float>(table, kBlocksStore);
  AddBlocks<GemmOutput::kAdd, float>(table, kBlocksAdd);
  AddBlocks<GemmOutput::kGated, float>(table, kBlocksGatedF32);
  AddBlocks<GemmOutput::kGated, Bf16>(table, kBlocksGatedBf16);
  AddGroupedBlocks<GemmOutput::kStore, float>(table, kGroupedBlocksStore);
  AddGroupedBlocks<GemmOutput::kGated, float>(table, kGroupedBlocksGatedF32);
  AddGroupedBlocks<GemmOutput::kGated, Bf16>(table, kGroupedBlocksGatedBf16);
}

// The attention of one kind, from its first id on.
template <AttentionKind kKind>
void AddAttention(KernelTable& table, KernelId first) {
  KernelFunction* functions = &At(table, first);
  functions[0] = AttentionKernel<float, 8, 0, kKind>;
  functions[1] = AttentionKernel<Bf16, 16, 0, kKind>;
  if constexpr (IsForCommonWidths(kKind)) {
    functions[2] = AttentionKernel<Bf16, 8, 4, kKind>;
    functions[3] = AttentionKernel<Bf16, 16, 8, kKind>;
    functions[4] = SpecializedAttentionKernel<4, kKind>;
    functions[5] = SpecializedAttentionKernel<8, kKind>;
    functions[6] = WideAttentionKernel<4, kKind>;
    functions[7] = WideAttentionKernel<8, kKind>;
  }
}

inline KernelTable MakeKernelTable() {
  using enum KernelId;
  KernelTable table;
  At(table, kEmbedF32) = EmbedKernel<float, false>;
  At(table, kEmbedBf16) = EmbedKernel<Bf16, false>;
  At(table, kEmbedPanelsF32) = EmbedKernel<float, true>;
  At(table, kEmbedPanelsBf16) = EmbedKernel<Bf16, true>;
  At(table, kEmbedPanelsInt8) = EmbedKernel<int8_t, true>;
  At(table, kEmbedBlocks) = EmbedBlocksKernel<float>;
  At(table, kRmsNormF32) = RmsNormKernel<float>;
  At(table, kRmsNormBf16) = RmsNormKernel<Bf16>;
  At(table, kLayerNormF32) = LayerNormKernel<float>;
  At(table, kLayerNormBf16) = LayerNormKernel<Bf16>;
  At(table, kAddTableRows) = AddTableRowsKernel<float>;
  At(table, kMean) = MeanKernel<float>;
  At(table, kDeltaGates) = DeltaGatesKernel<float>;
  At(table, kConv) = ConvKernel<float>;
  At(table, kStoreConvStates) = StoreConvStatesKernel<float>;
  At(table, kScaleLinearHeads) = ScaleLinearHeadsKernel<float>;
  At(table, kDelta) = DeltaKernel<kMaxDeltaDim>;
  At(table, kDeltaHead128) = DeltaKernel<kWholeDeltaDim>;
  At(table, kGatedNormF32) = GatedNormKernel<float>;
  At(table, kGatedNormBf16) = GatedNormKernel<Bf16>;
  At(table, kAttentionGateF32) = AttentionGateKernel<float>;
  At(table, kAttentionGateBf16) = AttentionGateKernel<Bf16>;
  At(table, kGather) = GatherKernel<uint32_t>;
  At(table, kShareColumns) = ShareColumnsKernel<uint32_t>;
  At(table, kBranch) = BranchKernel<float>;
  At(table, kActivateF32) = ActivateKernel<float>;
  At(table, kActivateBf16) = ActivateKernel<Bf16>;
  At(table, kGateSumsF32) = GateSumsKernel<float>;
  At(table, kGateSumsBf16) = GateSumsKernel<Bf16>;
  At(table, kQuantizeF32) = QuantizeKernel<float>;
  At(table, kQuantizeBf16) = QuantizeKernel<Bf16>;
  At(table, kQuantizeBlocksF32) = QuantizeBlocksKernel<float>;
  At(table, kQuantizeBlocksBf16) = QuantizeBlocksKernel<Bf16>;
  At(table, kStoreHeadsF32) = StoreHeadsKernel<float>;
  At(table, kStoreHeadsBf16) = StoreHeadsKernel<Bf16>;
  At(table, kStoreHeadsBf16Head64) = StoreManyHeadsKernel<64>;
  At(table, kStoreHeadsBf16Head128) = StoreManyHeadsKernel<128>;
  At(table, kCopySlotsF32) = CopySlotsKernel<float>;
  At(table, kCopySlotsBf16) = CopySlotsKernel<Bf16>;
  AddAttention<AttentionKind::kPlain>(table, kAttentionF32);
  AddAttention<AttentionKind::kExtended>(table, kExtendedAttentionF32);
  AddAttention<AttentionKind::kCapped>(table, kCappedAttentionF32);
  AddAttention<AttentionKind::kBiased>(table, kBiasedAttentionF32);
  At(table, kMergeSegmentsF32) = MergeSegmentsKernel<float, AttentionKind::kPlain>;
  At(table, kMergeSegmentsBf16) = MergeSegmentsKernel<Bf16, AttentionKind::kPlain>;
  At(table, kExtendedMergeSegmentsF32) = MergeSegmentsKernel<float, AttentionKind::kExtended>;
  At(table, kExtendedMergeSegmentsBf16) = MergeSegmentsKernel<Bf16, AttentionKind::kExtended>;
  At(table, kFinishLogits) = FinishLogitsKernel<float>;
  At(table, kFindLargest) = FindLargestKernel<float>;
  At(table, kMergeLargest) = MergeLargestKernel<float>;
  At(table, kChooseExperts) = ChooseExpertsKernel<float, false>;
  At(table, kChooseExpertsAndShared) = ChooseExpertsKernel<float, true>;
  At(table, kListSlots) = ListSlotsKernel<int32_t>;
  At(table, kSumExperts) = SumExpertsKernel<float>;
  AddProducts(table);
  return table;
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
