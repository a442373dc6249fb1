#pragma once

// The rows of a product, its panels of weights, and the share of them that a block computes.

#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/products.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

inline constexpr int kPanelColumns = 16;

// The first of the two columns of a panel that a lane's sums have. Sums 0 and 1 of each 8 rows are
// of this column (mma.m16n8: row group), 2 and 3 of the next (row group + 8).
__device__ __forceinline__ int SumColumn(const Lane& lane) { return 2 * lane.group; }

__device__ __forceinline__ int64_t GroupOfBlock(const GemmArgs& args) {
  return static_cast<int64_t>(args.groups.first_group) + blockIdx.z;
}

// The arguments of a grouped product with the weights of the block's own group. The panels of
// blocks are found by their places.
template <bool kOfBlocks>
__device__ __forceinline__ GemmArgs ArgsOfGroup(const GemmArgs& all) {
  GemmArgs args = all;
  const int64_t panel = GroupOfBlock(args) * args.groups.panels;
  if constexpr (kOfBlocks) {
    args.places += panel;
  } else {
    args.w = static_cast<const uint32_t*>(args.w) + panel * args.words * kPanelColumns;
  }
  if (args.w_scales != nullptr) args.w_scales += panel * kPanelColumns;
  if (args.bias != nullptr) args.bias += panel * kPanelColumns;
  return args;
}

// The rows of a block's product.
template <bool kGrouped>
struct BlockRows {
  __device__ __forceinline__ explicit BlockRows(const GemmArgs& args) : count(args.m) {
    if constexpr (kGrouped) {
      const int64_t group = GroupOfBlock(args);
      count = args.groups.counts[group];
      slots = args.groups.slots + group * args.groups.capacity;
      slots_per_row = args.groups.slots_per_row;
    }
  }

  // The row of a, and that of out. REQUIRES: row < count.
  __device__ __forceinline__ int64_t In(int64_t row) const {
    if constexpr (kGrouped) return slots[row] / slots_per_row;
    return row;
  }
  __device__ __forceinline__ int64_t Out(int64_t row) const {
    if constexpr (kGrouped) return slots[row];
    return row;
  }

  int count;
  const int32_t* slots = nullptr;
  int slots_per_row = 1;
};

// The place of a block in its product. Blocks of the same weights and of up to kRowTiles tiles of
// rows run at the same time, so that weights are read from memory once for all of them.
inline constexpr int kRowTiles = 8;
template <class Tile>
struct BlockPlace {
  __device__ __forceinline__ BlockPlace(int index, int column_tiles, int row_tiles)
      : first_row(0), column_tile(index) {
    if (row_tiles == 1) return;  // without the divisions, which take longer than a step
    const uint32_t of_block = static_cast<uint32_t>(index);
    const uint32_t in_group = static_cast<uint32_t>(kRowTiles * column_tiles);
    const uint32_t group = of_block / in_group, behind = of_block - group * in_group;
    const int first = static_cast<int>(group) * kRowTiles, left = row_tiles - first;
    const auto rows = static_cast<uint32_t>(left < kRowTiles ? left : kRowTiles);
    column_tile = static_cast<int>(behind / rows);
    first_row = (first + static_cast<int>(behind % rows)) * Tile::kRows;
  }
  int first_row, column_tile;
};

// The panels of w that a block multiplies. Slot i * kWarps + warp is panel i of a warp.
template <class Tile, GemmOutput kOutput>
struct BlockPanels {
  static constexpr bool kGated = kOutput == GemmOutput::kGated;
  static_assert(!kGated || Tile::kBlockPanels % 2 == 0);
  static constexpr int kOutputs = kGated ? Tile::kBlockPanels / 2 : Tile::kBlockPanels;

  __device__ __forceinline__ BlockPanels(const GemmArgs& gemm, int column_tile)
      : args(gemm), first(column_tile * kOutputs) {}

  __device__ __forceinline__ int OutputPanel(int slot) const { return first + slot % kOutputs; }
  __device__ __forceinline__ bool Exists(int slot) const {
    return OutputPanel(slot) * kPanelColumns < args.columns;
  }
  __device__ __forceinline__ int WeightPanel(int slot) const {
    const int output = OutputPanel(slot);
    const int panel = args.panels != nullptr ? args.panels[output] : output;
    return panel + (kGated && slot >= kOutputs ? args.up_panel : 0);
  }

  const GemmArgs& args;
  int first;
};

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
