#include "cuda/kernels/launches.h"

#include "base/check.h"
#include "cuda/kernels/attention.h"
#include "cuda/kernels/experts.h"
#include "cuda/kernels/gemm.h"
#include "cuda/kernels/gemm_blocks.h"
#include "cuda/kernels/largest.h"
#include "cuda/kernels/rows.h"

namespace skein::cuda {
namespace {

uint32_t CeilDiv(int64_t a, int64_t b) { return static_cast<uint32_t>((a + b - 1) / b); }

LaunchShape RowShape(int64_t rows) { return {{CeilDiv(rows, kRowsPerBlock)}, kRowThreads, 0}; }

// The kernel for a type. `f32` is the kernel for f32, and the next id is that for bf16.
KernelId OfType(KernelId f32, DType dtype) {
  SKEIN_CHECK(dtype == DType::kF32 || dtype == DType::kBf16);
  return static_cast<KernelId>(static_cast<int>(f32) + (dtype == DType::kBf16 ? 1 : 0));
}

template <class Tile>
LaunchShape GemmShape(const GemmArgs& args, GemmOutput output) {
  const int panels = output == GemmOutput::kGated ? Tile::kBlockPanels / 2 : Tile::kBlockPanels;
  return {{CeilDiv(args.columns, panels * kPanelColumns), CeilDiv(args.m, Tile::kRows)},
          Tile::kThreads,
          sizeof(typename Tile::Shared)};
}

Launch BlocksGemmLaunch(GemmOutput output, DType gated, const GemmArgs& args) {
  SKEIN_CHECK(args.words % kBlockWords == 0 && args.lda >= args.words && args.m >= 1);
  const bool gates = output == GemmOutput::kGated, many = args.m > 16;
  KernelId id = KernelId::kBlocksStore;
  if (output == GemmOutput::kAdd) id = KernelId::kBlocksAdd;
  if (gates) id = gated == DType::kBf16 ? KernelId::kBlocksGatedBf16 : KernelId::kBlocksGatedF32;
  const int many_tiles =
      gates ? kManyBlockTiles<GemmOutput::kGated> : kManyBlockTiles<GemmOutput::kStore>;
  return {static_cast<KernelId>(static_cast<int>(id) + (many ? 1 : 0)),
          {{CeilDiv(args.columns, kPanelColumns), CeilDiv(args.m, 16 * (many ? many_tiles : 1))},
           kWarpThreads,
           0},
          args};
}

}  // namespace

Launch EmbedLaunch(DType table, bool panels, const EmbedArgs& args) {
  const LaunchShape shape = {{static_cast<uint32_t>(args.num_tokens)}, kRowThreads, 0};
  SKEIN_CHECK(panels || (table != DType::kInt8 && table != DType::kBlocks));
  if (table == DType::kBlocks) return {KernelId::kEmbedBlocks, shape, args};
  if (table == DType::kInt8) return {KernelId::kEmbedPanelsInt8, shape, args};
  return {OfType(panels ? KernelId::kEmbedPanelsF32 : KernelId::kEmbedF32, table), shape, args};
}

Launch RmsNormLaunch(DType dtype, const RmsNormArgs& args) {
  SKEIN_CHECK(args.ldx >= args.width);
  return {OfType(KernelId::kRmsNormF32, dtype), RowShape(args.num_rows), args};
}

Launch BranchLaunch(const BranchArgs& args) {
  return {KernelId::kBranch, RowShape(args.num_rows), args};
}

Launch ActivateLaunch(DType dtype, const ActivateArgs& args) {
  return {OfType(KernelId::kActivateF32, dtype), RowShape(args.num_rows), args};
}

Launch QuantizeLaunch(DType dtype, const QuantizeArgs& args) {
  return {OfType(KernelId::kQuantizeF32, dtype), RowShape(args.num_rows), args};
}

Launch QuantizeBlocksLaunch(DType dtype, const QuantizeArgs& args) {
  SKEIN_CHECK(args.width % kBlockTerms == 0);
  return {OfType(KernelId::kQuantizeBlocksF32, dtype),
          RowShape(int64_t{args.num_rows} * (args.width / kBlockTerms)), args};
}

Launch StoreHeadsLaunch(DType dtype, const StoreHeadsArgs& args) {
  const int64_t heads = args.num_heads + 2 * args.num_kv_heads;
  return {OfType(KernelId::kStoreHeadsF32, dtype), RowShape(args.num_tokens * heads), args};
}

Launch CopySlotsLaunch(DType dtype, const CopySlotsArgs& args) {
  return {OfType(KernelId::kCopySlotsF32, dtype),
          {{static_cast<uint32_t>(args.num_copies), static_cast<uint32_t>(args.num_kv_heads),
            static_cast<uint32_t>(args.num_layers)},
           kRowThreads,
           0},
          args};
}

Launch AttentionLaunch(DType dtype, const AttentionArgs& args) {
  SKEIN_CHECK(args.head_dim <= args.head_dim_padded && args.head_dim_padded <= kMaxHeadDim);
  const bool wide = dtype == DType::kBf16 && args.head_dim_padded > 8 * kNarrowTiles;
  const KernelId kernel = wide                    ? KernelId::kAttentionBf16Head128
                          : dtype == DType::kBf16 ? KernelId::kAttentionBf16Head64
                                                  : KernelId::kAttentionF32;
  const uint32_t parts = CeilDiv(args.head_dim_padded, 8 * (wide ? kWideTiles : kNarrowTiles));
  return {kernel,
          {{CeilDiv(args.num_tiles, kAttentionWarps), static_cast<uint32_t>(args.num_kv_heads),
            static_cast<uint32_t>(args.num_segments) * parts},
           kAttentionThreads,
           0},
          args};
}

Launch MergeSegmentsLaunch(DType dtype, const AttentionArgs& args) {
  const int64_t rows = int64_t{args.num_tiles} * args.num_kv_heads * kAttentionRows;
  return {OfType(KernelId::kMergeSegmentsF32, dtype), RowShape(rows), args};
}

int64_t PartialBytes(const AttentionArgs& args) {
  if (args.num_segments <= 1) return 0;
  const int64_t rows =
      int64_t{args.num_segments} * args.num_tiles * args.num_kv_heads * kAttentionRows;
  return rows * (2 + args.head_dim) * static_cast<int64_t>(sizeof(float));
}

Launch GemmLaunch(DType dtype, GemmOutput output, DType gated, const GemmArgs& args) {
  if (dtype == DType::kBlocks) return BlocksGemmLaunch(output, gated, args);
  SKEIN_CHECK(args.words % kStepWords == 0 && args.lda >= args.words && args.m >= 1);
  const bool few = args.m <= kFewRows;
  int id = static_cast<int>(few ? KernelId::kGemm16F32Store : KernelId::kGemm128F32Store);
  if (dtype == DType::kBf16) id += 3;
  if (dtype == DType::kInt8) id += 6;
  id += static_cast<int>(output);
  if (dtype == DType::kInt8 && output == GemmOutput::kGated && gated == DType::kBf16) ++id;
  return {static_cast<KernelId>(id),
          few ? GemmShape<SmallTile>(args, output) : GemmShape<LargeTile>(args, output), args};
}

Launch FindLargestLaunch(const FindLargestArgs& args) {
  return {KernelId::kFindLargest,
          {{static_cast<uint32_t>(args.num_rows)}, kLargestThreads, sizeof(LargestOfWarps)},
          args};
}

Launch ChooseExpertsLaunch(const ChooseExpertsArgs& args) {
  SKEIN_CHECK(args.num_experts <= kMaxExperts && args.per_token <= kMaxExpertsPerToken);
  SKEIN_CHECK(args.per_token >= 1 && args.per_token <= args.num_experts);
  return {KernelId::kChooseExperts,
          {{CeilDiv(args.num_tokens, kExpertWarps)}, kExpertThreads, 0},
          args};
}

Launch ListSlotsLaunch(const ListSlotsArgs& args) {
  return {
      KernelId::kListSlots, {{CeilDiv(args.num_experts, kExpertWarps)}, kExpertThreads, 0}, args};
}

Launch SumExpertsLaunch(const SumExpertsArgs& args) {
  return {KernelId::kSumExperts, {{static_cast<uint32_t>(args.num_tokens)}, kRowThreads, 0}, args};
}

Launch GroupedGemmLaunch(DType dtype, GemmOutput output, int64_t num_slots, const GemmArgs& args) {
  SKEIN_CHECK(args.words % kStepWords == 0 && args.lda >= args.words && args.m >= 1);
  SKEIN_CHECK(output != GemmOutput::kAdd && args.groups.num_groups >= 1);
  const bool few = num_slots <= int64_t{kFewRows} * args.groups.num_groups;
  int id = static_cast<int>(few ? KernelId::kGrouped16F32Store : KernelId::kGrouped128F32Store);
  SKEIN_CHECK(dtype == DType::kF32 || dtype == DType::kBf16);
  if (dtype == DType::kBf16) id += 2;
  if (output == GemmOutput::kGated) ++id;
  LaunchShape shape = few ? GemmShape<SmallTile>(args, output) : GemmShape<LargeTile>(args, output);
  shape.grid.z = static_cast<uint32_t>(args.groups.num_groups);
  return {static_cast<KernelId>(id), shape, args};
}

}  // namespace skein::cuda
