#pragma once

// Products of many rows of bf16, on GPUs with sm_90a: one block for each multiprocessor computes
// tile after tile. One thread begins the copies of step after step, also of the next tile while the
// sums of this one are written. Eight warps multiply; four of them have one half of a tile's
// columns, and may be kStages steps ahead of the other four. So one half may write while the other
// multiplies.
//
//   copies:    | tile 0, step 0 | step 1 | ... | tile 1, step 0 | ...      kStages steps ahead
//   products:         | tile 0, step 0 | step 1 | ... | sums | tile 1, step 0 | ...
//
// Copies and products meet at two barriers for each stage: `filled` and `free`. Sums are those of
// GemmKernel, in the same order.
//
// In a gated product a warp has the same eight columns of the gate and of up, so that a lane has
// both sums of an output.

#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/gemm.h"
#include "cuda/kernels/gemm_output.h"
#include "cuda/kernels/gemm_places.h"
#include "cuda/kernels/products.h"
#include "cuda/kernels/ring.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

inline constexpr int kCopyThreads = 128;    // one of them copies
inline constexpr int kPersistentWarps = 8;  // these multiply
// tools/ptxas_table.py has this number, too, and kPhaseBytes.
inline constexpr int kPersistentThreads = kCopyThreads + 32 * kPersistentWarps;
static_assert(kPersistentThreads == 384);

// The arguments of a product, and where its operands lie.
struct PersistentGemmArgs {
  GemmArgs gemm;
  // The rows of a, in boxes of the rows of a tile; the panels of w, each a matrix of rows of
  // 32 words, in boxes of those of a step and of a tile, or of a half of the tile's if it is gated.
  TensorMap maps[2];
};

// A panel's words of a step, as a box has them: two rows of 16 columns in each 128 bytes.
struct BoxPanel {
  // The place of a word and a column in their 128 bytes, as TensorMap exchanges them.
  static __device__ __forceinline__ int Place(int word, int column) {
    return ((word % 2 * 4 + column / 4) ^ (word / 2 % 8)) * 4 + column % 4;
  }
  __device__ __forceinline__ const uint32_t* At(int word, int column) const {
    return &words[word / 2][Place(word, column)];
  }

  uint32_t words[kStepWords / 2][2 * kPanelColumns];
};

// The barriers take at most so much memory behind the operands of GemmTile.
inline constexpr uint32_t kPhaseBytes = 128;

template <class Tile>
struct PersistentShared {
  static_assert(Tile::kWarps == kPersistentWarps && Tile::kPanels == 1);
  SharedRows<Tile::kRows> rows[Tile::kStages];
  BoxPanel w[Tile::kStages][kPersistentWarps];
  // For each stage. `filled`: the stage's boxes are there; `free`: a warp that multiplies arrives
  // when it has read the stage.
  uint64_t filled[Tile::kStages], free[Tile::kStages];

  static_assert(sizeof(rows) + sizeof(w) == sizeof(typename Tile::Shared));
  static_assert(sizeof(filled) + sizeof(free) <= kPhaseBytes);
};

// The whole steps of a product, and whether half a step follows.
struct StepCount {
  __device__ __forceinline__ explicit StepCount(const GemmArgs& args)
      : whole(args.words / kStepWords), half(args.words % kStepWords != 0) {}
  const int whole;
  const bool half;
};

// Fills stage after stage with the steps of the block's tiles.
template <class Tile, GemmOutput kOutput>
class OperandCopies {
 public:
  __device__ __forceinline__ OperandCopies(const PersistentGemmArgs& args,
                                           PersistentShared<Tile>& shared)
      : args_(args), shared_(shared) {}

  // By one thread.
  __device__ __forceinline__ void Run() {
    const GemmArgs& gemm = args_.gemm;
    const int row_tiles = (gemm.m + Tile::kRows - 1) / Tile::kRows;
    const int num_tiles = row_tiles * gemm.column_tiles;
    const int num_steps = (gemm.words + kStepWords - 1) / kStepWords;
    int tile = static_cast<int>(blockIdx.x);
    // Weights do not depend on the kernel before: the first are copied before it ends.
    int ahead = num_steps < Tile::kStages ? num_steps : Tile::kStages;
    const BlockPlace<Tile> first(tile, gemm.column_tiles, row_tiles);
    for (int step = 0; step < ahead; ++step) {
      ArriveWithBytes(&shared_.filled[step], kBytes);
      CopyWeights(first, step, step);
    }
    WaitForPreviousKernel();
    for (; tile < num_tiles; tile += static_cast<int>(gridDim.x)) {
      const BlockPlace<Tile> place(tile, gemm.column_tiles, row_tiles);
#pragma unroll 1
      for (int step = 0; step < num_steps; ++step, at_.Advance()) {
        if (ahead > 0) {
          --ahead;
        } else {
          WaitForPhase(&shared_.free[at_.index], at_.parity ^ 1);
          ArriveWithBytes(&shared_.filled[at_.index], kBytes);
          CopyWeights(place, step, at_.index);
        }
        CopyBox(&shared_.rows[at_.index], args_.maps[0], step * kStepWords, place.first_row, 0,
                &shared_.filled[at_.index]);
      }
    }
  }

 private:
  static constexpr uint32_t kBytes =
      sizeof(SharedRows<Tile::kRows>) + kPersistentWarps * sizeof(BoxPanel);

  __device__ __forceinline__ void CopyWeights(const BlockPlace<Tile>& place, int step, int stage) {
    using Panels = BlockPanels<Tile, kOutput>;
    const Panels panels(args_.gemm, place.column_tile);
#pragma unroll
    for (int slot = 0; slot < kPersistentWarps; slot += Panels::kOutputs) {
      CopyBox(&shared_.w[stage][slot], args_.maps[1], 0, step * (kStepWords / 2),
              panels.WeightPanel(slot), &shared_.filled[stage]);
    }
  }

  const PersistentGemmArgs& args_;
  PersistentShared<Tile>& shared_;
  RingPlace<Tile::kStages> at_;
};

// The columns of the weights that a lane's words and sums belong to. The lanes of a half of a warp
// read from all banks.
struct LaneColumns {
  // Store and add: two adjacent columns of the warp's panel.
  static __device__ __forceinline__ int Pair(const Lane& lane) {
    return (lane.group & 1) * 2 + (lane.group & 2) * 4 + (lane.group & 4);
  }
  // Gated: a column of the gate and the same of up. A panel belongs to two warps.
  static __device__ __forceinline__ int Gated(const Lane& lane, int warp) {
    return lane.group % 4 + lane.group / 4 * 8 + warp % 2 * 4;
  }
};

// The products of a warp, step after step, and its sums of a tile.
template <class Tile, GemmOutput kOutput>
class TileProducts {
 public:
  using Words = StepWords<Tile>;
  static constexpr int kMmas = Words::kMmas;

  __device__ __forceinline__ TileProducts(PersistentShared<Tile>& shared, int warp)
      : shared_(shared), warp_(warp) {}

  // The next tile. nvcc lets products run in the background only if no branch but the barrier's
  // comes between them, so pairs of steps have registers of their own.
  __device__ __forceinline__ void Run(const StepCount& steps, int rows_left,
                                      float (&sums)[1][Tile::kRows / 8][4]) {
    Words even, odd;
    int left = steps.whole;
    if (left > 0) {
      Begin<kMmas>(even, rows_left, sums);
      --left;
#pragma unroll 1
      for (; left >= 2; left -= 2) {
        Begin<kMmas>(odd, rows_left, sums);
        EndPrevious();
        Begin<kMmas>(even, rows_left, sums);
        EndPrevious();
      }
      WaitForProducts<0>();
      Release();
      if (left > 0) RunAlone<kMmas>(even, rows_left, sums);
    }
    if (steps.half) RunAlone<kMmas / 2>(even, rows_left, sums);
  }

 private:
  template <int kCount>
  __device__ __forceinline__ void Begin(Words& words, int rows_left,
                                        float (&sums)[1][Tile::kRows / 8][4]) {
    const Lane lane;
    const int stage = reading_.index;
    WaitForPhase(&shared_.filled[stage], reading_.parity);
#pragma unroll
    for (int mma = 0; mma < kMmas; ++mma) {
      Read(shared_.w[stage], mma * kMmaWords + lane.quad, lane, words.panels[0][mma]);
    }
    BeginProducts();
    AddStep<Tile, Bf16, kCount>(shared_.rows[stage], words, rows_left, sums);
    EndProducts();
    reading_.Advance();
  }
  // The lane's words over the 8 words from `word` - quad on.
  __device__ __forceinline__ void Read(const BoxPanel (&panels)[kPersistentWarps], int word,
                                       const Lane& lane, uint32_t (&a)[4]) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if constexpr (kOutput == GemmOutput::kGated) {
        const int column = LaneColumns::Gated(lane, warp_), slot = warp_ / 2;
        a[2 * i] = *panels[slot].At(word + 4 * i, column);
        a[2 * i + 1] = *panels[slot + kPersistentWarps / 2].At(word + 4 * i, column);
      } else {
        const auto& pair = *reinterpret_cast<const Pair<uint32_t>*>(
            panels[warp_].At(word + 4 * i, LaneColumns::Pair(lane)));
        a[2 * i] = pair.of[0];
        a[2 * i + 1] = pair.of[1];
      }
    }
  }
  // Behind it the products of all steps but the last have ended.
  __device__ __forceinline__ void EndPrevious() {
    WaitForProducts<1>();
    Release();
  }
  template <int kCount>
  __device__ __forceinline__ void RunAlone(Words& words, int rows_left,
                                           float (&sums)[1][Tile::kRows / 8][4]) {
    Begin<kCount>(words, rows_left, sums);
    WaitForProducts<0>();
    Release();
  }
  // No lane of this warp reads the oldest stage any more.
  __device__ __forceinline__ void Release() {
    ArriveAsWarp(&shared_.free[freeing_.index]);
    freeing_.Advance();
  }

  PersistentShared<Tile>& shared_;
  const int warp_;
  RingPlace<Tile::kStages> reading_, freeing_;
};

// Adds the biases of a lane's two columns, with one choice for all of its sums.
template <int kTiles>
__device__ __forceinline__ void AddBias(const GemmArgs& args, int first, int second,
                                        float (&sums)[kTiles][4]) {
  if (args.bias == nullptr) return;
  const float of[2] = {args.bias[first], args.bias[second]};
#pragma unroll
  for (int i = 0; i < 4 * kTiles; ++i) sums[i / 4][i % 4] = sums[i / 4][i % 4] + of[i % 4 / 2];
}

// Writes the gated outputs of a warp. Lanes of two adjacent columns exchange results, so that each
// has both columns of one row, which are one word of bf16. Nothing branches before the results are
// there: so a thread has many of them under way.
template <Gate kGate, class Tile>
__device__ __forceinline__ void WriteGatedRows(const BlockPanels<Tile, GemmOutput::kGated>& panels,
                                               int first_row, int warp,
                                               float (&sums)[1][Tile::kRows / 8][4]) {
  constexpr int kTiles = Tile::kRows / 8;
  const Lane lane;
  const int slot = warp / 2, of_panel = LaneColumns::Gated(lane, warp);
  if (!panels.Exists(slot)) return;
  const GemmArgs& args = panels.args;
  const int of_gate = panels.WeightPanel(slot) * kPanelColumns + of_panel;
  AddBias(args, of_gate, of_gate + args.up_panel * kPanelColumns, sums[0]);
  const bool is_even = lane.group % 2 == 0;
  uint32_t words[kTiles];
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    float results[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      results[i] = Gated(kGate, sums[0][tile][i], sums[0][tile][2 + i]);
    }
    const float got = __shfl_xor_sync(kAllLanes, is_even ? results[1] : results[0], 4);
    words[tile] = RoundPairToBf16(is_even ? results[0] : got, is_even ? got : results[1]);
  }
  // The first of the two columns and the row that this lane writes.
  const int column = panels.OutputPanel(slot) * kPanelColumns + of_panel / 2 * 2;
  const int row = first_row + lane.quad * 2 + (is_even ? 0 : 1);
  Bf16* const out = static_cast<Bf16*>(args.out) + row * args.ldo + column;
  const bool whole = column + 1 < args.columns && args.ldo % 2 == 0 &&
                     reinterpret_cast<uintptr_t>(args.out) % 4 == 0;
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    if (row + 8 * tile >= args.m) continue;
    Bf16* const to = out + tile * 8 * args.ldo;
    if (whole) {
      *reinterpret_cast<uint32_t*>(to) = words[tile];
    } else {
      if (column < args.columns) to[0].bits = static_cast<uint16_t>(words[tile]);
      if (column + 1 < args.columns) to[1].bits = static_cast<uint16_t>(words[tile] >> 16);
    }
  }
}

template <class Tile>
__device__ __forceinline__ void WriteGatedTile(const BlockPanels<Tile, GemmOutput::kGated>& panels,
                                               int first_row, int warp,
                                               float (&sums)[1][Tile::kRows / 8][4]) {
  switch (panels.args.gate) {
    case Gate::kSilu:
      return WriteGatedRows<Gate::kSilu>(panels, first_row, warp, sums);
    case Gate::kGelu:
      return WriteGatedRows<Gate::kGelu>(panels, first_row, warp, sums);
    case Gate::kGeluTanh:
      return WriteGatedRows<Gate::kGeluTanh>(panels, first_row, warp, sums);
    case Gate::kRelu:
      return WriteGatedRows<Gate::kRelu>(panels, first_row, warp, sums);
    case Gate::kClampedSwiglu:
      return WriteGatedRows<Gate::kClampedSwiglu>(panels, first_row, warp, sums);
  }
}

// Stores a warp's sums.
template <class Tile>
__device__ __forceinline__ void StoreRows(const BlockPanels<Tile, GemmOutput::kStore>& panels,
                                          int first_row, int warp,
                                          const float (&sums)[1][Tile::kRows / 8][4]) {
  const Lane lane;
  const GemmArgs& args = panels.args;
  const int of_panel = LaneColumns::Pair(lane);
  if (!panels.Exists(warp)) return;
  const int column = panels.OutputPanel(warp) * kPanelColumns + of_panel;
  const int of_w = panels.WeightPanel(warp) * kPanelColumns + of_panel;
  if (column + 1 >= args.columns || args.ldo % 2 != 0 ||
      reinterpret_cast<uintptr_t>(args.out) % 8 != 0) {
    return WritePanel<GemmOutput::kStore>(args, BlockRows<false>(args), first_row, column, of_w,
                                          sums[0]);
  }
  const bool has_bias = args.bias != nullptr;
  const float bias[2] = {has_bias ? args.bias[of_w] : 0.0f, has_bias ? args.bias[of_w + 1] : 0.0f};
  const int row = first_row + lane.quad * 2;
  float* const out = static_cast<float*>(args.out) + row * args.ldo + column;
#pragma unroll
  for (int k = 0; k < Tile::kRows / 4; ++k) {
    const int i = k / 2 * 8 + k % 2;
    Pair<float> pair;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = sums[0][k / 2][k % 2 + 2 * half], biased = sum + bias[half];
      pair.of[half] = has_bias ? biased : sum;
    }
    if (row + i < args.m) *reinterpret_cast<Pair<float>*>(out + i * args.ldo) = pair;
  }
}

// Adds a warp's sums to the outputs, in memory: nothing is read here. Lanes of adjacent pairs of
// columns exchange sums, so that each adds four columns of one row.
template <class Tile>
__device__ __forceinline__ void AddRows(const BlockPanels<Tile, GemmOutput::kAdd>& panels,
                                        int first_row, int warp,
                                        float (&sums)[1][Tile::kRows / 8][4]) {
  const Lane lane;
  const GemmArgs& args = panels.args;
  const int of_panel = LaneColumns::Pair(lane);
  if (!panels.Exists(warp)) return;
  const int column = panels.OutputPanel(warp) * kPanelColumns + of_panel;
  const int of_w = panels.WeightPanel(warp) * kPanelColumns + of_panel;
  if (args.columns % 4 != 0 || args.ldo % 4 != 0 ||
      reinterpret_cast<uintptr_t>(args.out) % 16 != 0) {
    return WritePanel<GemmOutput::kAdd>(args, BlockRows<false>(args), first_row, column, of_w,
                                        sums[0]);
  }
  const bool exists = column < args.columns;
  if (exists) AddBias(args, of_w, of_w + 1, sums[0]);
  const bool is_even = lane.group % 2 == 0;
  const int row = first_row + lane.quad * 2 + (is_even ? 0 : 1);
  float* const out = static_cast<float*>(args.out) + row * args.ldo + column / 4 * 4;
#pragma unroll
  for (int tile = 0; tile < Tile::kRows / 8; ++tile) {
    float four[4];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float* const sum = &sums[0][tile][2 * half];  // of two rows
      const float got = __shfl_xor_sync(kAllLanes, is_even ? sum[1] : sum[0], 4);
      four[half] = is_even ? sum[0] : got;
      four[2 + half] = is_even ? got : sum[1];
    }
    if (exists && row + 8 * tile < args.m) AddToMemory(out + 8 * tile * args.ldo, four);
  }
}

// Multiplies the block's tiles and writes their sums.
template <class Tile, GemmOutput kOutput>
__device__ __forceinline__ void MultiplyTiles(const GemmArgs& args,
                                              PersistentShared<Tile>& shared) {
  WaitForPreviousKernel();
  const StepCount steps(args);
  const int row_tiles = (args.m + Tile::kRows - 1) / Tile::kRows;
  const int num_tiles = row_tiles * args.column_tiles;
  const int warp = (static_cast<int>(threadIdx.x) - kCopyThreads) / 32;
  TileProducts<Tile, kOutput> products(shared, warp);
#pragma unroll 1
  for (int tile = static_cast<int>(blockIdx.x); tile < num_tiles;
       tile += static_cast<int>(gridDim.x)) {
    const BlockPlace<Tile> place(tile, args.column_tiles, row_tiles);
    const BlockPanels<Tile, kOutput> panels(args, place.column_tile);
    float sums[1][Tile::kRows / 8][4] = {};
    products.Run(steps, args.m - place.first_row, sums);
    if constexpr (kOutput == GemmOutput::kGated) {
      WriteGatedTile(panels, place.first_row, warp, sums);
    } else if constexpr (kOutput == GemmOutput::kAdd) {
      AddRows(panels, place.first_row, warp, sums);
    } else {
      StoreRows(panels, place.first_row, warp, sums);
    }
  }
}

// Grid: at most a block for each multiprocessor. Outputs: f32; gated ones: bf16.
template <class Tile, GemmOutput kOutput>
__global__ void __launch_bounds__(kPersistentThreads, 1)
    PersistentGemmKernel(const __grid_constant__ PersistentGemmArgs args) {
  if constexpr (kHasPhases) {
    constexpr int kCopyRegisters = 24, kProductRegisters = 240;
    static_assert(kCopyThreads * kCopyRegisters + 32 * kPersistentWarps * kProductRegisters <=
                  kPersistentThreads * kBeginRegisters);
    auto& shared = SharedMemory<PersistentShared<Tile>>();
    LetNextKernelStart();
    if (threadIdx.x == 0) {
      for (int stage = 0; stage < Tile::kStages; ++stage) {
        InitBarrier(&shared.filled[stage], 1);
        InitBarrier(&shared.free[stage], kPersistentWarps);
      }
      ShowBarriersToCopies();
    }
    __syncthreads();
    if (threadIdx.x < kCopyThreads) {
      GiveRegisters<kCopyRegisters>();
      if (threadIdx.x == 0) {
        OperandCopies<Tile, kOutput>(args, shared).Run();
      } else {
        WaitForPreviousKernel();
      }
    } else {
      TakeRegisters<kProductRegisters>();
      MultiplyTiles<Tile, kOutput>(args.gemm, shared);
    }
  } else {
    Trap();
  }
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
