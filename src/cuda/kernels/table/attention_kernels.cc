// Attention.

#include "cuda/kernels/attention/attention.h"
#include "cuda/kernels/attention/attention_specialized.h"
#include "cuda/kernels/attention/attention_wide.h"
#include "cuda/kernels/table/kernel_table.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {
namespace {

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

}  // namespace

void AddAttentionKernels(KernelTable& table) {
  using enum KernelId;
  AddAttention<AttentionKind::kPlain>(table, kAttentionF32);
  AddAttention<AttentionKind::kExtended>(table, kExtendedAttentionF32);
  AddAttention<AttentionKind::kCapped>(table, kCappedAttentionF32);
  AddAttention<AttentionKind::kBiased>(table, kBiasedAttentionF32);
  At(table, kMergeSegmentsF32) = MergeSegmentsKernel<float, AttentionKind::kPlain>;
  At(table, kMergeSegmentsBf16) = MergeSegmentsKernel<Bf16, AttentionKind::kPlain>;
  At(table, kExtendedMergeSegmentsF32) = MergeSegmentsKernel<float, AttentionKind::kExtended>;
  At(table, kExtendedMergeSegmentsBf16) = MergeSegmentsKernel<Bf16, AttentionKind::kExtended>;
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
