#pragma once

// The sums of a product are stored, added to the output, or gated.

#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/gemm_places.h"
#include "cuda/kernels/math.h"
#include "cuda/kernels/products.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

// The output of a sum. `row`: of a.
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
  const float sum = Finish(args, gate, rows.In(row), of_w);
  if constexpr (kOutput == GemmOutput::kGated) {
    const float of_up = Finish(args, up, rows.In(row), of_w + args.up_panel * kPanelColumns);
    Round(Gated(args.gate, sum, of_up), static_cast<Out*>(args.out) + index);
  } else {
    float* out = static_cast<float*>(args.out) + index;
    *out = kOutput == GemmOutput::kAdd ? *out + sum : sum;
  }
}

// Two adjacent values, which move at once where their address allows it.
template <typename T>
struct alignas(2 * sizeof(T)) Pair {
  T of[2];
};

// Adds a warp's sums of one panel to out, or stores them. `column` and `of_w` are the first of the
// lane's two columns of out and of w. All outputs of some tiles are read before the first is
// written, so that the reads wait together.
template <GemmOutput kOutput, bool kGrouped, int kTiles, typename Sum>
__device__ __forceinline__ void WritePanel(const GemmArgs& args, const BlockRows<kGrouped>& rows,
                                           int first_row, int column, int of_w,
                                           const Sum (&sums)[kTiles][4]) {
  constexpr int kBatch = kTiles < 4 ? kTiles : 4;
  const Lane lane;
  const int left = args.columns - column;  // columns that exist
  const bool whole =
      left >= 2 && args.ldo % 2 == 0 && reinterpret_cast<uintptr_t>(args.out) % 8 == 0;
#pragma unroll
  for (int first = 0; first < kTiles; first += kBatch) {
    Pair<float> outs[2 * kBatch] = {};
    const auto each = [&](const auto& fn) {
#pragma unroll
      for (int k = 0; k < 2 * kBatch; ++k) {
        const int64_t row = first_row + (first + k / 2) * 8 + lane.quad * 2 + k % 2;
        if (row >= rows.count) continue;
        fn(row, static_cast<float*>(args.out) + rows.Out(row) * args.ldo + column, outs[k],
           &sums[first + k / 2][k % 2]);
      }
    };
    if constexpr (kOutput == GemmOutput::kAdd) {
      each([&](int64_t, const float* out, Pair<float>& pair, const Sum*) {
        if (whole) {
          pair = *reinterpret_cast<const Pair<float>*>(out);
        } else {
          if (left >= 1) pair.of[0] = out[0];
          if (left >= 2) pair.of[1] = out[1];
        }
      });
    }
    each([&](int64_t row, float* out, Pair<float>& pair, const Sum* sum) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (i >= left) continue;
        const float finished = Finish(args, sum[2 * i], rows.In(row), of_w + i);
        pair.of[i] = kOutput == GemmOutput::kAdd ? pair.of[i] + finished : finished;
      }
      if (whole) {
        *reinterpret_cast<Pair<float>*>(out) = pair;
      } else {
        if (left >= 1) out[0] = pair.of[0];
        if (left >= 2) out[1] = pair.of[1];
      }
    });
  }
}

template <class Tile, GemmOutput kOutput, bool kGrouped, typename Sum>
__device__ __forceinline__ void WriteSums(const BlockPanels<Tile, kOutput>& panels,
                                          const BlockRows<kGrouped>& rows, int first_row, int warp,
                                          const Sum (&sums)[Tile::kPanels][Tile::kRows / 8][4]) {
  const Lane lane;
#pragma unroll
  for (int i = 0; i < Tile::kPanels; ++i) {
    const int slot = i * Tile::kWarps + warp;
    if (!panels.Exists(slot)) continue;
    const int column = panels.OutputPanel(slot) * kPanelColumns + SumColumn(lane);
    const int of_w = panels.WeightPanel(slot) * kPanelColumns + SumColumn(lane);
    WritePanel<kOutput>(panels.args, rows, first_row, column, of_w, sums[i]);
  }
}

// The sums of a block, in the place of its operands. A row has four words more, so that lanes write
// to different banks.
template <class Tile, typename Sum>
struct SharedSums {
  static constexpr int kColumns = Tile::kBlockPanels / 2 * kPanelColumns;
  Sum sums[Tile::kRows][2 * kColumns + 4];  // of gate, of up
};

// Rounds two values to two places.
__device__ __forceinline__ void RoundBoth(float a, float b, float* to_a, float* to_b) {
  *to_a = a;
  *to_b = b;
}
__device__ __forceinline__ void RoundBoth(float a, float b, Bf16* to_a, Bf16* to_b) {
  const uint32_t both = RoundPairToBf16(a, b);
  to_a->bits = static_cast<uint16_t>(both);
  to_b->bits = static_cast<uint16_t>(both >> 16);
}

// A thread writes the gated outputs of one column.
template <Gate kGate, class Tile, typename Out, bool kGrouped, typename Sum>
__device__ __forceinline__ void WriteGatedColumn(
    const BlockPanels<Tile, GemmOutput::kGated>& panels, const BlockRows<kGrouped>& rows,
    int first_row, const SharedSums<Tile, Sum>& shared) {
  constexpr int kColumns = SharedSums<Tile, Sum>::kColumns;
  constexpr int kRowsAtOnce = Tile::kThreads / kColumns;
  const GemmArgs& args = panels.args;
  const int in_block = static_cast<int>(threadIdx.x % kColumns);
  const int slot = in_block / kPanelColumns, in_panel = in_block % kPanelColumns;
  const int column = panels.OutputPanel(slot) * kPanelColumns + in_panel;
  if (column >= args.columns) return;
  const int of_gate = panels.WeightPanel(slot) * kPanelColumns + in_panel;
  const int of_up = of_gate + args.up_panel * kPanelColumns;
  Out* const out = static_cast<Out*>(args.out) + column;
  const int left = rows.count - first_row, num_rows = left < Tile::kRows ? left : Tile::kRows;
  const auto output = [&](int i) {
    const float gate = Finish(args, shared.sums[i][in_block], rows.In(first_row + i), of_gate);
    const float up =
        Finish(args, shared.sums[i][kColumns + in_block], rows.In(first_row + i), of_up);
    return Gated(kGate, gate, up);
  };
  int i = static_cast<int>(threadIdx.x / kColumns);
#pragma unroll 2
  for (; i + kRowsAtOnce < num_rows; i += 2 * kRowsAtOnce) {
    RoundBoth(output(i), output(i + kRowsAtOnce), out + rows.Out(first_row + i) * args.ldo,
              out + rows.Out(first_row + i + kRowsAtOnce) * args.ldo);
  }
  if (i < num_rows) Round(output(i), out + rows.Out(first_row + i) * args.ldo);
}

// The gate is applied by all threads to the sums in shared memory, since its code is long.
template <class Tile, typename Out, bool kGrouped, typename Sum>
__device__ __forceinline__ void WriteGated(const BlockPanels<Tile, GemmOutput::kGated>& panels,
                                           const BlockRows<kGrouped>& rows, int first_row, int warp,
                                           const Sum (&sums)[Tile::kPanels][Tile::kRows / 8][4]) {
  using Shared = SharedSums<Tile, Sum>;
  static_assert(sizeof(Shared) <= sizeof(typename Tile::Shared));
  auto& shared = SharedMemory<Shared>();
  const Lane lane;
  __syncthreads();  // no operand is read any more
#pragma unroll
  for (int i = 0; i < Tile::kPanels; ++i) {
    const int first = (i * Tile::kWarps + warp) * kPanelColumns;
#pragma unroll
    for (int k = 0; k < Tile::kRows / 4; ++k) {
      const Sum* sum = &sums[i][k / 2][k % 2];
      auto* to = &shared.sums[k / 2 * 8 + lane.quad * 2 + k % 2][first + SumColumn(lane)];
      *reinterpret_cast<Pair<Sum>*>(to) = {sum[0], sum[2]};
    }
  }
  __syncthreads();
  switch (panels.args.gate) {
    case Gate::kSilu:
      return WriteGatedColumn<Gate::kSilu, Tile, Out>(panels, rows, first_row, shared);
    case Gate::kGelu:
      return WriteGatedColumn<Gate::kGelu, Tile, Out>(panels, rows, first_row, shared);
    case Gate::kGeluTanh:
      return WriteGatedColumn<Gate::kGeluTanh, Tile, Out>(panels, rows, first_row, shared);
    case Gate::kRelu:
      return WriteGatedColumn<Gate::kRelu, Tile, Out>(panels, rows, first_row, shared);
    case Gate::kClampedSwiglu:
      return WriteGatedColumn<Gate::kClampedSwiglu, Tile, Out>(panels, rows, first_row, shared);
  }
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
