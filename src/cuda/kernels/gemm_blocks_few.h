#pragma once

// Products of few rows with matrices that stay in blocks of 4 to 8 bits. The chain of an output has
// a link for each block of 32 elements, and a warp alone would wait for memory at each link. Here
// eight warps share the blocks of a panel, turn by turn:
//
//   each warp  | loads its blocks of the next turn                | computes integer sums of its
//              |                                                  | blocks, into shared memory
//   all warps  | join the blocks of the turn to the sums, each thread those of one output, in order
//
// So the bits are those of BlocksGemmKernel, and the loads of a turn wait together, behind the
// links of the turn before.

#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/gemm_blocks.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

// One for each of the eight sums that a lane has of 16 rows and 16 columns.
inline constexpr int kFewBlockWarps = 8;
inline constexpr int kFewBlockThreads = 32 * kFewBlockWarps;
inline constexpr int kFewBlockTileRows = 16;

// The panels that a product joins: of the gate and of up, or one.
template <GemmOutput kOutput>
inline constexpr int kJoinedPanels = kOutput == GemmOutput::kGated ? 2 : 1;
// A warp's blocks of a turn.
template <GemmOutput kOutput>
inline constexpr int kTurnBlocksOfWarp = 2 / kJoinedPanels<kOutput>;

// The blocks of a turn.
template <GemmOutput kOutput>
struct TurnOfBlocks {
  static constexpr int kBlocks = kFewBlockWarps * kTurnBlocksOfWarp<kOutput>;
  struct OfPanel {
    int32_t low[kFewBlockWarps][32];  // a lane's sums, by their place and its index
    int32_t high[kFewBlockWarps][32];
    ColumnScales columns[kPanelColumns];
  };
  OfPanel panels[kBlocks][kJoinedPanels<kOutput>];
  RowScales rows[kBlocks][kFewBlockTileRows];
};

template <GemmOutput kOutput, bool kGrouped>
class FewRowsOfBlocks {
 public:
  __device__ __forceinline__ explicit FewRowsOfBlocks(const GemmArgs& args)
      : args_(args),
        warp_(static_cast<int>(threadIdx.x) / 32),
        output_panel_(static_cast<int>(blockIdx.x)),
        of_w_(args.panels != nullptr ? args.panels[output_panel_] : output_panel_),
        first_(static_cast<int64_t>(blockIdx.y) * kFewBlockTileRows),
        num_blocks_(args.words / kBlockWords),
        panels_{BlockPanel(args, of_w_), BlockPanel(args, of_w_ + (kPanels - 1) * args.up_panel)} {}

  __device__ __forceinline__ int64_t first() const { return first_; }

  // Loads the warp's blocks of the turn that begins with this block: what it needs of w.
  __device__ __forceinline__ void LoadColumns(int turn) {
#pragma unroll
    for (int i = 0; i < kOfWarp; ++i) {
      const int block = turn + warp_ * kOfWarp + i;
      if (block >= num_blocks_) continue;
#pragma unroll
      for (int p = 0; p < kPanels; ++p) {
        panels_[p].Load(block, lane_, loaded_[i].words[p]);
        loaded_[i].columns[p] = panels_[p].LoadScales(block, lane_.index % kPanelColumns);
      }
    }
  }
  // And of a. scale_row: the row whose scales the lane loads.
  __device__ __forceinline__ void LoadRowsOf(int turn, const RowsOfLane<kGrouped>& rows,
                                             int64_t scale_row, bool exists) {
#pragma unroll
    for (int i = 0; i < kOfWarp; ++i) {
      const int block = turn + warp_ * kOfWarp + i;
      if (block >= num_blocks_) continue;
      LoadRows(args_, rows, block, lane_, loaded_[i].rows);
      loaded_[i].row = LoadRowScales(args_, scale_row, exists, block);
    }
  }

  // Multiplies the loaded blocks.
  __device__ __forceinline__ void Multiply(int turn, TurnOfBlocks<kOutput>& shared) const {
#pragma unroll
    for (int i = 0; i < kOfWarp; ++i) {
      const int in_turn = warp_ * kOfWarp + i;
      if (turn + in_turn >= num_blocks_) continue;
      const Loaded& loaded = loaded_[i];
#pragma unroll
      for (int p = 0; p < kPanels; ++p) {
        uint32_t words[2][2];
        int32_t low[2][4] = {}, high[2][4] = {};
        panels_[p].Decode(loaded.words[p], lane_, words);
        panels_[p].Multiply(loaded.rows, words, low, high);
        auto& to = shared.panels[in_turn][p];
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          to.low[c][lane_.index] = low[c / 4][c % 4];
          if (panels_[p].halves) to.high[c][lane_.index] = high[c / 4][c % 4];
        }
        if (lane_.index < kPanelColumns) {
          to.columns[lane_.index] = panels_[p].ScalesOf(loaded.columns[p]);
        }
      }
      if (lane_.index < kFewBlockTileRows) shared.rows[in_turn][lane_.index] = loaded.row;
    }
  }

  // Joins a turn's blocks to the thread's sums, those of (row(), column()).
  __device__ __forceinline__ void Join(int turn, const TurnOfBlocks<kOutput>& shared) {
    const int left = num_blocks_ - turn;
    const int count = left < TurnOfBlocks<kOutput>::kBlocks ? left : TurnOfBlocks<kOutput>::kBlocks;
#pragma unroll 4
    for (int block = 0; block < count; ++block) {
      const RowScales row = shared.rows[block][row_of_tile()];
#pragma unroll
      for (int p = 0; p < kPanels; ++p) {
        const auto& of = shared.panels[block][p];
        sums_[p] = panels_[p].Join(sums_[p], of.low[warp_][lane_.index],
                                   panels_[p].halves ? of.high[warp_][lane_.index] : 0, row,
                                   of.columns[column()]);
      }
    }
  }

  template <typename Out>
  __device__ __forceinline__ void Write(const BlockRows<kGrouped>& rows) const {
    WriteOutput<kOutput, Out>(args_, rows, first_ + row_of_tile(),
                              output_panel_ * kPanelColumns + column(),
                              of_w_ * kPanelColumns + column(), sums_[0], sums_[kPanels - 1]);
  }

  __device__ __forceinline__ int num_blocks() const { return num_blocks_; }
  __device__ __forceinline__ const Lane& lane() const { return lane_; }

 private:
  static constexpr int kPanels = kJoinedPanels<kOutput>;
  static constexpr int kOfWarp = kTurnBlocksOfWarp<kOutput>;

  struct Loaded {
    RawWord words[kPanels][2][2];
    RawScales columns[kPanels];  // of column lane % 16
    uint32_t rows[4];
    RowScales row;  // of row lane % 16
  };

  // The output whose sum the thread has.
  __device__ __forceinline__ int row_of_tile() const { return lane_.group + warp_ % 4 / 2 * 8; }
  __device__ __forceinline__ int column() const {
    return warp_ / 4 * 8 + lane_.quad * 2 + warp_ % 2;
  }

  const GemmArgs& args_;
  const Lane lane_;
  const int warp_;
  const int output_panel_;
  const int of_w_;
  const int64_t first_;
  const int num_blocks_;
  const BlockPanel panels_[2];
  Loaded loaded_[kOfWarp];
  float sums_[kPanels] = {};
};

// `product` has loaded the columns of the first turn.
template <GemmOutput kOutput, typename Out, bool kGrouped>
__device__ __forceinline__ void MultiplyFewRows(FewRowsOfBlocks<kOutput, kGrouped>& product,
                                                const BlockRows<kGrouped>& rows) {
  constexpr int kTurn = TurnOfBlocks<kOutput>::kBlocks;
  auto& shared = SharedMemory<TurnOfBlocks<kOutput>>();
  const Lane& lane = product.lane();
  const RowsOfLane<kGrouped> of_lane(rows, product.first(), lane);
  const int64_t row = product.first() + lane.index % kFewBlockTileRows;
  const bool exists = row < rows.count;
  const int64_t scale_row = exists ? rows.In(row) : 0;
  product.LoadRowsOf(0, of_lane, scale_row, exists);
#pragma unroll 1
  for (int turn = 0; turn < product.num_blocks(); turn += kTurn) {
    product.Multiply(turn, shared);
    __syncthreads();
    product.LoadColumns(turn + kTurn);
    product.LoadRowsOf(turn + kTurn, of_lane, scale_row, exists);
    product.Join(turn, shared);
    __syncthreads();  // the next turn writes to the same memory
  }
  product.template Write<Out>(rows);
}

// Grid: panels of the output, tiles of kFewBlockTileRows rows.
template <GemmOutput kOutput, typename Out>
__global__ void __launch_bounds__(kFewBlockThreads, 2) FewBlocksGemmKernel(GemmArgs args) {
  LetNextKernelStart();
  FewRowsOfBlocks<kOutput, false> product(args);
  product.LoadColumns(0);  // no kernel writes weights
  WaitForPreviousKernel();
  MultiplyFewRows<kOutput, Out, false>(product, BlockRows<false>(args));
}

// Grid: panels of the output, tiles of rows, groups. Blocks beyond a group's rows end at once.
template <GemmOutput kOutput, typename Out>
__global__ void __launch_bounds__(kFewBlockThreads, 2) GroupedFewBlocksGemmKernel(GemmArgs all) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  const GemmArgs args = ArgsOfGroup<true>(all);
  const BlockRows<true> rows(args);
  FewRowsOfBlocks<kOutput, true> product(args);
  if (product.first() >= rows.count) return;
  product.LoadColumns(0);
  MultiplyFewRows<kOutput, Out, true>(product, rows);
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
