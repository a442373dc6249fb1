// Kernels of rows: embeddings, norms, activations, heads, linear layers, routes, largest values.

#include "cuda/kernels/encoder_rows.h"
#include "cuda/kernels/experts.h"
#include "cuda/kernels/heads.h"
#include "cuda/kernels/largest.h"
#include "cuda/kernels/linear_attention.h"
#include "cuda/kernels/many_heads.h"
#include "cuda/kernels/rows.h"
#include "cuda/kernels/table/kernel_table.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

void AddRowKernels(KernelTable& table) {
  using enum KernelId;
  At(table, kEmbedF32) = EmbedKernel<float, false>;
  At(table, kEmbedBf16) = EmbedKernel<Bf16, false>;
  At(table, kEmbedPanelsF32) = EmbedKernel<float, true>;
  At(table, kEmbedPanelsBf16) = EmbedKernel<Bf16, true>;
  At(table, kEmbedPanelsInt8) = EmbedKernel<int8_t, true>;
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
  At(table, kStoreHeadsF32) = StoreHeadsKernel<float>;
  At(table, kStoreHeadsBf16) = StoreHeadsKernel<Bf16>;
  At(table, kStoreHeadsBf16Head64) = StoreManyHeadsKernel<64>;
  At(table, kStoreHeadsBf16Head128) = StoreManyHeadsKernel<128>;
  At(table, kCopySlotsF32) = CopySlotsKernel<float>;
  At(table, kCopySlotsBf16) = CopySlotsKernel<Bf16>;
  At(table, kFinishLogits) = FinishLogitsKernel<float>;
  At(table, kFindLargest) = FindLargestKernel<float>;
  At(table, kMergeLargest) = MergeLargestKernel<float>;
  At(table, kChooseExperts) = ChooseExpertsKernel<float, false>;
  At(table, kChooseExpertsAndShared) = ChooseExpertsKernel<float, true>;
  At(table, kListSlots) = ListSlotsKernel<int32_t>;
  At(table, kSumExperts) = SumExpertsKernel<float>;
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
