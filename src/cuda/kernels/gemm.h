#pragma once

// out = a · w^T over the panels of a PackedWeight, whose words are in the order in which the tensor
// cores read them. A block computes a tile of rows and panels. Steps of 16 words (64 bytes of a
// row) go through shared memory, and are copied several steps ahead of their use:
//
//   step:    | s      | s + 1  | ...  | s + kStages - 1 |
//            | in use | copies under way                |
//
// Every output is one sum over k in order, in one accumulator, whatever the tile. So the tile may
// follow from the number of rows, and the bits do not.
//
// A grouped product is many products in one launch, each of some rows with weights of its own.

#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/math.h"
#include "cuda/kernels/products.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

inline constexpr int kPanelColumns = 16;
inline constexpr int kStepWords = 16;

// Each warp multiplies kMmaRows x 16 rows by kPanels panels; the block has kWarpsM x kWarpsN warps.
template <int kWarpsM, int kWarpsN, int kMmaRows_, int kPanels_, int kStages_>
struct GemmTile {
  static constexpr int kThreads = 32 * kWarpsM * kWarpsN;
  static constexpr int kMmaRows = kMmaRows_;
  // Even: a gated product takes half of them from gate and half from up.
  static constexpr int kPanels = kPanels_;
  static constexpr int kStages = kStages_;
  static constexpr int kWarpRows = 16 * kMmaRows;
  static constexpr int kRows = kWarpsM * kWarpRows;
  static constexpr int kBlockPanels = kWarpsN * kPanels;
  static constexpr int kColumnWarps = kWarpsN;
  // A row has four words more than a step, so that the lanes of a warp read from different banks.
  static constexpr int kRowWords = kStepWords + 4;
  struct Shared {
    uint32_t a[kStages][kRows][kRowWords];
    uint32_t b[kStages][kBlockPanels][kStepWords][kPanelColumns];
  };
};
// 16 rows, 32 columns: for decodes, which stream the weights.
using SmallTile = GemmTile<1, 1, 1, 2, 8>;
using LargeTile = GemmTile<4, 2, 2, 4, 3>;  // 128 rows, 128 columns

// The rows of a block's product, and its weights.
template <bool kGrouped>
struct BlockRows {
  __device__ __forceinline__ explicit BlockRows(const GemmArgs& args)
      : w(static_cast<const uint32_t*>(args.w)), count(args.m) {
    if constexpr (kGrouped) {
      const int64_t group = blockIdx.z;
      w += group * args.groups.weight_words;
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

  const uint32_t* w;
  int count;
  const int32_t* slots = nullptr;
  int slots_per_row = 1;
};

// The panels of w that a block multiplies.
template <class Tile, GemmOutput kOutput>
struct BlockPanels {
  static constexpr bool kGated = kOutput == GemmOutput::kGated;
  // Panels of the output for a warp.
  static constexpr int kOutputPanels = kGated ? Tile::kPanels / 2 : Tile::kPanels;

  __device__ __forceinline__ explicit BlockPanels(const GemmArgs& gemm)
      : args(gemm), first(static_cast<int>(blockIdx.x) * Tile::kColumnWarps * kOutputPanels) {}

  // The panel of the output to which panel `i` of warp column `warp` belongs.
  __device__ __forceinline__ int OutputPanel(int warp, int i) const {
    return first + warp * kOutputPanels + i % kOutputPanels;
  }
  __device__ __forceinline__ bool Exists(int output_panel) const {
    return output_panel * kPanelColumns < args.columns;
  }
  // The panel of w for an output panel; `i` tells gate from up.
  __device__ __forceinline__ int WeightPanel(int output_panel, int i) const {
    const int panel = args.panels != nullptr ? args.panels[output_panel] : output_panel;
    return panel + (i >= kOutputPanels ? args.up_panel : 0);
  }

  const GemmArgs& args;
  int first;
};

// Starts the copies of one step.
template <class Tile, GemmOutput kOutput, bool kGrouped>
__device__ __forceinline__ void CopyStep(const GemmArgs& args, const BlockRows<kGrouped>& rows,
                                         const BlockPanels<Tile, kOutput>& panels, int step,
                                         typename Tile::Shared& shared) {
  constexpr int kChunks = kStepWords / 4;  // chunks of 16 bytes in a step
  const int stage = step % Tile::kStages, word = step * kStepWords;
  const auto* a = static_cast<const uint32_t*>(args.a);
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < Tile::kRows * kChunks; i += Tile::kThreads) {
    const int row = i / kChunks, chunk = i % kChunks * 4;
    const int64_t m = static_cast<int64_t>(blockIdx.y) * Tile::kRows + row;
    const bool exists = m < rows.count;
    CopyAsync16(&shared.a[stage][row][chunk],
                a + (exists ? rows.In(m) : 0) * args.lda + word + chunk, exists);
  }
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < Tile::kBlockPanels * kStepWords * kChunks;
       i += Tile::kThreads) {
    const int panel = i / (kStepWords * kChunks), row = i / kChunks % kStepWords;
    const int output = panels.OutputPanel(panel / Tile::kPanels, panel % Tile::kPanels);
    const bool exists = panels.Exists(output);
    const int64_t of_w = exists ? panels.WeightPanel(output, panel % Tile::kPanels) : 0;
    const int chunk = i % kChunks * 4;
    CopyAsync16(&shared.b[stage][panel][row][chunk],
                rows.w + (of_w * args.words + word + row) * kPanelColumns + chunk, exists);
  }
}

// Reads the words of columns group and group + 8 of a panel, at row `word`. Lanes with quad >= 2
// read them in reverse order, so that no two lanes read from the same bank.
__device__ __forceinline__ void ReadColumns(const uint32_t (&row)[kPanelColumns], const Lane& lane,
                                            uint32_t* low, uint32_t* high) {
  const bool swapped = lane.quad >= 2;
  const uint32_t first = row[lane.group + (swapped ? 8 : 0)];
  const uint32_t second = row[lane.group + (swapped ? 0 : 8)];
  *low = swapped ? second : first;
  *high = swapped ? first : second;
}

// Adds one step to a warp's sums.
template <class Tile, typename T>
__device__ __forceinline__ void MultiplyStep(
    const typename Tile::Shared& shared, int stage, int warp_m, int warp_n,
    typename Product<T>::Sum (&sums)[Tile::kMmaRows][Tile::kPanels][2][4]) {
  const Lane lane;
#pragma unroll
  for (int first = 0; first < kStepWords; first += kMmaWords) {
    const int word = first + lane.quad;
    uint32_t a[Tile::kMmaRows][4];
#pragma unroll
    for (int i = 0; i < Tile::kMmaRows; ++i) {
      const int row = warp_m * Tile::kWarpRows + i * 16 + lane.group;
      a[i][0] = shared.a[stage][row][word];
      a[i][1] = shared.a[stage][row + 8][word];
      a[i][2] = shared.a[stage][row][word + 4];
      a[i][3] = shared.a[stage][row + 8][word + 4];
    }
#pragma unroll
    for (int panel = 0; panel < Tile::kPanels; ++panel) {
      const auto& b = shared.b[stage][warp_n * Tile::kPanels + panel];
      uint32_t low[2], high[2];
      ReadColumns(b[word], lane, &low[0], &high[0]);
      ReadColumns(b[word + 4], lane, &low[1], &high[1]);
#pragma unroll
      for (int i = 0; i < Tile::kMmaRows; ++i) {
        Product<T>::Add(sums[i][panel][0], a[i], low);
        Product<T>::Add(sums[i][panel][1], a[i], high);
      }
    }
  }
}

__device__ __forceinline__ float Finish(const GemmArgs& args, float sum, int64_t, int column) {
  return args.bias == nullptr ? sum : sum + args.bias[column];
}
__device__ __forceinline__ float Finish(const GemmArgs& args, int32_t sum, int64_t row,
                                        int column) {
  const float scaled = (static_cast<float>(sum) * args.a_scales[row]) * args.w_scales[column];
  return args.bias == nullptr ? scaled : scaled + args.bias[column];
}

// One of the lane's outputs: its row, its column, that of w, and its sums (of the gate, of up).
template <GemmOutput kOutput, typename Out, bool kGrouped, typename Sum>
__device__ __forceinline__ void WriteOutput(const GemmArgs& args, const BlockRows<kGrouped>& rows,
                                            int64_t row, int column, int of_w, Sum gate, Sum up) {
  if (row >= rows.count || column >= args.columns) return;
  const int64_t index = rows.Out(row) * args.ldo + column;
  const float sum = Finish(args, gate, row, of_w);
  if constexpr (kOutput == GemmOutput::kGated) {
    const float of_up = Finish(args, up, row, of_w + args.up_panel * kPanelColumns);
    Round(Activate(args.gate, sum) * of_up, static_cast<Out*>(args.out) + index);
  } else {
    float* out = static_cast<float*>(args.out) + index;
    *out = kOutput == GemmOutput::kAdd ? *out + sum : sum;
  }
}

template <class Tile, typename T, GemmOutput kOutput, typename Out, bool kGrouped>
__device__ __forceinline__ void MultiplyTile(const GemmArgs& args) {
  const BlockRows<kGrouped> rows(args);
  if (kGrouped && static_cast<int64_t>(blockIdx.y) * Tile::kRows >= rows.count) return;
  auto& shared = SharedMemory<typename Tile::Shared>();
  const BlockPanels<Tile, kOutput> panels(args);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_m = warp / Tile::kColumnWarps, warp_n = warp % Tile::kColumnWarps;
  typename Product<T>::Sum sums[Tile::kMmaRows][Tile::kPanels][2][4] = {};

  const int num_steps = args.words / kStepWords;
  for (int step = 0; step < Tile::kStages - 1; ++step) {
    if (step < num_steps) CopyStep(args, rows, panels, step, shared);
    CommitCopies();
  }
  for (int step = 0; step < num_steps; ++step) {
    WaitForCopies<Tile::kStages - 2>();
    __syncthreads();  // this step has arrived, and the previous one is no longer read
    const int ahead = step + Tile::kStages - 1;
    if (ahead < num_steps) CopyStep(args, rows, panels, ahead, shared);
    CommitCopies();
    MultiplyStep<Tile, T>(shared, step % Tile::kStages, warp_m, warp_n, sums);
  }

  const Lane lane;
  const int64_t first_row =
      static_cast<int64_t>(blockIdx.y) * Tile::kRows + warp_m * Tile::kWarpRows + lane.group;
  constexpr int kOutputs = panels.kOutputPanels, kUp = Tile::kPanels - kOutputs;
#pragma unroll
  for (int i = 0; i < kOutputs; ++i) {
    const int panel = panels.OutputPanel(warp_n, i);
    if (!panels.Exists(panel)) continue;
    const int of_w = panels.WeightPanel(panel, i) * kPanelColumns;
#pragma unroll
    for (int mma = 0; mma < Tile::kMmaRows; ++mma) {
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        const int half = c / 4, at = half * 8 + lane.quad * 2 + c % 2;
        WriteOutput<kOutput, Out>(args, rows, first_row + mma * 16 + c % 4 / 2 * 8,
                                  panel * kPanelColumns + at, of_w + at, sums[mma][i][half][c % 4],
                                  sums[mma][i + kUp][half][c % 4]);
      }
    }
  }
}

// Grid: columns, rows. T: the type of the operands; Out: of a gated output, else f32.
template <class Tile, typename T, GemmOutput kOutput, typename Out>
__global__ void __launch_bounds__(Tile::kThreads, 1) GemmKernel(GemmArgs args) {
  MultiplyTile<Tile, T, kOutput, Out, false>(args);
}

// Grid: columns, rows, groups. Blocks beyond a group's rows end at once.
template <class Tile, typename T, GemmOutput kOutput, typename Out>
__global__ void __launch_bounds__(Tile::kThreads, 1) GroupedGemmKernel(GemmArgs args) {
  MultiplyTile<Tile, T, kOutput, Out, true>(args);
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
