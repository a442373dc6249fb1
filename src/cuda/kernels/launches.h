#pragma once

#include <optional>

#include "base/dtype.h"
#include "cuda/device/launch.h"
#include "cuda/kernels/args.h"
#include "cuda/kernels/draws/draw_args.h"

namespace skein::cuda {

// Makes launches of the kernels, with the grid and the shared memory that the arguments need.
// `dtype` is the compute type unless stated otherwise.

// `table`: the type of the table, kInt8 and kBlocks only of panels.
Launch EmbedLaunch(DType table, bool panels, const EmbedArgs& args);
Launch RmsNormLaunch(DType dtype, const RmsNormArgs& args);
Launch LayerNormLaunch(DType dtype, const LayerNormArgs& args);
Launch AddTableRowsLaunch(const AddTableRowsArgs& args);
Launch MeanLaunch(const MeanArgs& args);
Launch DeltaGatesLaunch(const DeltaGatesArgs& args);
Launch ConvLaunch(const ConvArgs& args);
Launch StoreConvStatesLaunch(const ConvArgs& args);
Launch ScaleLinearHeadsLaunch(const ScaleLinearHeadsArgs& args);
Launch DeltaLaunch(const DeltaArgs& args);
Launch GatedNormLaunch(DType dtype, const GatedNormArgs& args);
Launch AttentionGateLaunch(DType dtype, const AttentionGateArgs& args);
Launch GatherLaunch(const GatherArgs& args);
// REQUIRES: num_peers is 1 at least.
Launch ShareColumnsLaunch(const ShareColumnsArgs& args);
Launch BranchLaunch(const BranchArgs& args);
// REQUIRES: the gate is a function of one number.
Launch ActivateLaunch(DType dtype, const ActivateArgs& args);
Launch GateSumsLaunch(DType dtype, const GateSumsArgs& args);
// Whole rows, for weights in int8.
Launch QuantizeLaunch(DType dtype, const QuantizeArgs& args);
// Blocks of rows, for weights in blocks. REQUIRES: width is a multiple of kBlockTerms, and ldx and
// ldo are multiples of 8.
Launch QuantizeBlocksLaunch(DType dtype, const QuantizeArgs& args);
// REQUIRES: head_dim is at most kMaxHeadDim.
Launch StoreHeadsLaunch(DType dtype, const StoreHeadsArgs& args);
Launch CopySlotsLaunch(DType dtype, const CopySlotsArgs& args);
inline constexpr int32_t kMaxAttentionTiles = 65535;  // of a launch: the most rows of a grid
// `has_phases`: whether the device's kernels have barriers with phases (kHasPhases). The bits do
// not follow from it. REQUIRES: head_dim is at most kMaxHeadDim, num_tiles at most
// kMaxAttentionTiles.
Launch AttentionLaunch(DType dtype, const AttentionArgs& args, bool has_phases = false);
Launch MergeSegmentsLaunch(DType dtype, const AttentionArgs& args);
// The size of AttentionArgs::partial in bytes.
int64_t PartialBytes(const AttentionArgs& args);

Launch FinishLogitsLaunch(const FinishLogitsArgs& args);
Launch FindLargestLaunch(FindLargestArgs args);
Launch MergeLargestLaunch(const FindLargestArgs& args);
Launch WeighGroupsLaunch(const DrawArgs& args);
Launch DrawLaunch(const DrawArgs& args);
Launch ChooseExpertsLaunch(const ChooseExpertsArgs& args);
Launch ListSlotsLaunch(const ListSlotsArgs& args);
Launch SumExpertsLaunch(const SumExpertsArgs& args);

// The multiprocessors of an H200, for which tiles and slices of products are chosen.
inline constexpr int64_t kProcessors = 132;
// The tile of a product follows from this, beside its shape. The bits do not follow from the tile.
struct GemmChoice {
  // The most shared memory that a block of the device has.
  int64_t shared_bytes = kSharedBytes;
  // Device::persistent_blocks.
  int64_t persistent_blocks = 0;
  // For tests: the tile. REQUIRES: it is compiled for the type.
  std::optional<TileSize> tile;
};
// `dtype`: the type of the weights. `gated`: of a gated output.
Launch GemmLaunch(DType dtype, GemmOutput output, DType gated, GemmArgs args,
                  const GemmChoice& choice = {});
// Groups of at most this many rows, on average, stream their weights once for each 16 rows.
inline constexpr int32_t kFewGroupedRows = 16;
// A product of each group: kStore, or kGated. `dtype`: the type of the weights. `gated`: of a gated
// output; that of weights in f32 or bf16 is their own. The slots of all groups together are
// num_slots.
Launch GroupedGemmLaunch(DType dtype, GemmOutput output, DType gated, int64_t num_slots,
                         GemmArgs args);

}  // namespace skein::cuda
