#pragma once

// out = a · w^T over the panels of a PackedWeight, whose words are in the order in which the tensor
// cores read them. The tensor cores' 16 rows are the columns of a panel, and their columns are rows
// of a, so that a few rows of a waste little:
//
//   sums [16 columns of w, 8 rows of a] = panel [16, 8 words] · rows [8, 8 words]^T
//
// A block computes a tile of rows and panels. Steps of 32 words (128 bytes of a row) go through
// shared memory, and are copied several steps ahead of their use:
//
//   step:    | s      | s + 1  | ...  | s + kAhead - 1 |
//            | in use | copies under way               |
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
inline constexpr int kStepWords = 32;
inline constexpr int kChunkWords = 4;  // copies are of 16 bytes
inline constexpr int kStepChunks = kStepWords / kChunkWords;

// A panel's words of a step. Chunks of 4 columns are exchanged within a word's row, so that a warp
// reads words from all banks.
struct SharedPanel {
  // Chunk number `i` of the panel's memory.
  __device__ __forceinline__ uint32_t* Chunk(int i) { return words[0] + (i ^ (i >> 2 & 2)) * 4; }
  // The lane's words of columns group and group + 8 over the 8 words from `word` on, as mma has
  // them.
  __device__ __forceinline__ void Read(int word, const Lane& lane, uint32_t (&a)[4]) const {
    const uint32_t* row = words[word + lane.quad];
    const int low = lane.group ^ (lane.quad & 2) << 2;
    a[0] = row[low];
    a[1] = row[low ^ 8];
    a[2] = row[4 * kPanelColumns + low];
    a[3] = row[4 * kPanelColumns + (low ^ 8)];
  }

  uint32_t words[kStepWords][kPanelColumns];
};

// The block has kWarps warps, and each multiplies all kRows rows by kPanels panels. In a gated
// product one half of the block's panels are gate's, the other up's.
template <int kWarps_, int kPanels_, int kRows_, int kStages_>
struct GemmTile {
  static constexpr int kWarps = kWarps_;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kPanels = kPanels_;
  static constexpr int kRows = kRows_;
  static constexpr int kStages = kStages_;
  static constexpr int kBlockPanels = kWarps * kPanels;
  // Four warps may multiply in the background (wgmma.h). The stage of step s - 1 is then still read
  // while step s begins.
  static constexpr bool kAsync = kWarps % 4 == 0;
  static constexpr int kAhead = kAsync ? kStages - 1 : kStages;  // stages that are filled or in use
  struct Shared {
    SharedRows<kRows> rows[kStages];
    SharedPanel w[kStages][kBlockPanels];
  };
};

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

// The place of a block in its product. Blocks of the same weights and of up to kRowTiles tiles of
// rows run at the same time, so that weights are read from memory once for all of them.
inline constexpr int kRowTiles = 8;
template <class Tile>
struct BlockPlace {
  __device__ __forceinline__ BlockPlace(int index, int column_tiles, int row_tiles) {
    const int in_group = kRowTiles * column_tiles, group = index / in_group;
    const int first = group * kRowTiles, left = row_tiles - first;
    const int rows = left < kRowTiles ? left : kRowTiles;
    first_row = (first + (index - group * in_group) % rows) * Tile::kRows;
    column_tile = (index - group * in_group) / rows;
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

// The copies of a thread to shared memory, step by step. In the place of panels that do not exist
// it copies the first. Rows that do not exist are not copied: whatever lies there in shared memory,
// no other row's sums see it, and their own are not written.
template <class Tile, GemmOutput kOutput, bool kGrouped>
class StepCopies {
 public:
  __device__ __forceinline__ StepCopies(const BlockPanels<Tile, kOutput>& panels,
                                        const BlockRows<kGrouped>& rows, int first_row) {
    const GemmArgs& args = panels.args;
    const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int i = 0; i < kSlots; ++i) {
      const int slot = Slot(i), panel = panels.Exists(slot) ? panels.WeightPanel(slot) : 0;
      w_[i] = rows.w + static_cast<int64_t>(panel) * args.words * kPanelColumns +
              thread % kPanelChunks * kChunkWords;
    }
#pragma unroll
    for (int i = 0; i < kRowChunks; ++i) {
      const int row = first_row + Row(i);
      a_[i] = static_cast<const uint32_t*>(args.a) +
              rows.In(row < rows.count ? row : 0) * args.lda + thread % kStepChunks * kChunkWords;
      exists_ |= row < rows.count ? 1u << i : 0u;
    }
  }

  // Copies the next step of w to a stage; kHalf: only its first half, since there is no more.
  template <bool kHalf>
  __device__ __forceinline__ void CopyWeights(SharedPanel (&stage)[Tile::kBlockPanels]) {
    const int first = static_cast<int>(threadIdx.x) % kPanelChunks;
#pragma unroll
    for (int i = 0; i < kSlots; ++i) {
#pragma unroll
      for (int chunk = 0; chunk < kPanelChunks; chunk += kPassChunks) {
        if (kHalf && first + chunk >= kPanelChunks / 2) continue;
        CopyAsync16(stage[Slot(i)].Chunk(first) + chunk * kChunkWords, w_[i] + chunk * kChunkWords,
                    true);
      }
      w_[i] += kStepWords * kPanelColumns;
    }
  }
  // The same for rows.
  template <bool kHalf>
  __device__ __forceinline__ void CopyRows(SharedRows<Tile::kRows>& stage) {
    const int chunk = static_cast<int>(threadIdx.x) % kStepChunks;
#pragma unroll
    for (int i = 0; i < kRowChunks; ++i) {
      const bool exists = (exists_ >> i & 1u) != 0;
      if (exists && (!kHalf || chunk < kStepChunks / 2)) {
        CopyAsync16(stage.Chunk(Row(i), chunk), a_[i], true);
      }
      a_[i] += kStepWords;
    }
  }

 private:
  static constexpr int kPanelChunks = kStepWords * kPanelColumns / kChunkWords;  // of a step
  // Chunks of one panel that the threads copy at the same time, and panels of a thread.
  static constexpr int kPassChunks = Tile::kThreads < kPanelChunks ? Tile::kThreads : kPanelChunks;
  static constexpr int kPassPanels = Tile::kThreads / kPassChunks;
  static constexpr int kSlots = Tile::kBlockPanels / kPassPanels;
  static constexpr int kRowChunks = Tile::kRows * kStepChunks / Tile::kThreads;
  static_assert(kSlots >= 1 && kRowChunks >= 1);

  static __device__ __forceinline__ int Slot(int i) {
    return i * kPassPanels + static_cast<int>(threadIdx.x) / kPanelChunks;
  }
  static __device__ __forceinline__ int Row(int i) {
    return (static_cast<int>(threadIdx.x) + i * Tile::kThreads) / kStepChunks;
  }

  const uint32_t* w_[kSlots];
  const uint32_t* a_[kRowChunks];
  uint32_t exists_ = 0;  // bits: whether a_[i] is a row
};

// A warp's words of a step: those of its panels, and, where they are few, those of the rows.
template <class Tile>
struct StepWords {
  static constexpr int kMmas = kStepWords / kMmaWords;
  static constexpr bool kHasRows = Tile::kRows <= 16 && !Tile::kAsync;

  __device__ __forceinline__ void Read(const typename Tile::Shared& shared, int stage, int warp) {
    const Lane lane;
#pragma unroll
    for (int mma = 0; mma < kMmas; ++mma) {
#pragma unroll
      for (int i = 0; i < Tile::kPanels; ++i) {
        shared.w[stage][i * Tile::kWarps + warp].Read(mma * kMmaWords, lane, panels[i][mma]);
      }
      if constexpr (kHasRows) {
#pragma unroll
        for (int tile = 0; tile < Tile::kRows / 8; ++tile) {
          shared.rows[stage].Read(tile, mma * kMmaWords, lane, rows[tile][mma]);
        }
      }
    }
  }

  uint32_t panels[Tile::kPanels][kMmas][4];
  uint32_t rows[kHasRows ? Tile::kRows / 8 : 1][kMmas][2];
};

// Adds a step, or its first half, to a warp's sums. sums[i][t] has the columns of panel i and the
// rows 8 t ... 8 t + 7.
template <class Tile, typename T, int kMmas>
__device__ __forceinline__ void AddStep(
    const SharedRows<Tile::kRows>& rows, const StepWords<Tile>& words, int rows_left,
    typename Product<T>::Sum (&sums)[Tile::kPanels][Tile::kRows / 8][4]) {
  if constexpr (Tile::kAsync && MultipliesInBackground<T>()) {
    BeginProducts();
#pragma unroll
    for (int mma = 0; mma < kMmas; ++mma) {
#pragma unroll
      for (int i = 0; i < Tile::kPanels; ++i) {
        MultiplyInBackground(sums[i], words.panels[i][mma], &rows.words[0][mma * kMmaWords]);
      }
    }
    EndProducts();
  } else {
    const Lane lane;
#pragma unroll
    for (int mma = 0; mma < kMmas; ++mma) {
#pragma unroll
      for (int tile = 0; tile < Tile::kRows / 8; ++tile) {
        if (tile * 8 >= rows_left) break;
        uint32_t of_tile[2];
        if constexpr (StepWords<Tile>::kHasRows) {
          of_tile[0] = words.rows[tile][mma][0];
          of_tile[1] = words.rows[tile][mma][1];
        } else {
          rows.Read(tile, mma * kMmaWords, lane, of_tile);
        }
#pragma unroll
        for (int i = 0; i < Tile::kPanels; ++i) {
          Product<T>::Add(sums[i][tile], words.panels[i][mma], of_tile);
        }
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

// Adds a warp's sums of one panel to out. All of a tile's outputs are read before the first is
// written, so that the reads wait together.
template <bool kGrouped, int kTiles, typename Sum>
__device__ __forceinline__ void AddToOutput(const GemmArgs& args, const BlockRows<kGrouped>& rows,
                                            int first_row, int column, int of_w,
                                            const Sum (&sums)[kTiles][4]) {
  constexpr int kBatch = kTiles < 4 ? kTiles : 4;
  const Lane lane;
#pragma unroll
  for (int first = 0; first < kTiles; first += kBatch) {
    float before[kBatch][4];
    const auto each = [&](const auto& fn) {
#pragma unroll
      for (int c = 0; c < 4 * kBatch; ++c) {
        const int64_t row = first_row + (first + c / 4) * 8 + lane.quad * 2 + c % 2;
        const int at = lane.group + c % 4 / 2 * 8;
        if (row >= rows.count || column + at >= args.columns) continue;
        float* out = static_cast<float*>(args.out) + rows.Out(row) * args.ldo + column + at;
        fn(row, at, out, &before[c / 4][c % 4], sums[first + c / 4][c % 4]);
      }
    };
    each([](int64_t, int, const float* out, float* to, Sum) { *to = *out; });
    each([&](int64_t row, int at, float* out, const float* from, Sum sum) {
      *out = *from + Finish(args, sum, row, of_w + at);
    });
  }
}

template <class Tile, GemmOutput kOutput, bool kGrouped, typename Sum>
__device__ __forceinline__ void WriteSums(const BlockPanels<Tile, kOutput>& panels,
                                          const BlockRows<kGrouped>& rows, int first_row, int warp,
                                          const Sum (&sums)[Tile::kPanels][Tile::kRows / 8][4]) {
  const GemmArgs& args = panels.args;
  const Lane lane;
#pragma unroll
  for (int i = 0; i < Tile::kPanels; ++i) {
    const int slot = i * Tile::kWarps + warp;
    if (!panels.Exists(slot)) continue;
    const int column = panels.OutputPanel(slot) * kPanelColumns;
    const int of_w = panels.WeightPanel(slot) * kPanelColumns;
    if constexpr (kOutput == GemmOutput::kAdd) {
      AddToOutput(args, rows, first_row, column, of_w, sums[i]);
    } else {
#pragma unroll
      for (int c = 0; c < Tile::kRows / 2; ++c) {
        const int at = lane.group + c % 4 / 2 * 8;
        WriteOutput<kOutput, float>(args, rows, first_row + c / 4 * 8 + lane.quad * 2 + c % 2,
                                    column + at, of_w + at, sums[i][c / 4][c % 4], Sum{});
      }
    }
  }
}

// The sums of a block, in the place of its operands. A row has four words more, so that lanes write
// to different banks.
template <class Tile, typename Sum>
struct SharedSums {
  static constexpr int kColumns = Tile::kBlockPanels / 2 * kPanelColumns;
  Sum sums[Tile::kRows][2 * kColumns + 4];  // of gate, of up
};

// A thread writes the gated outputs of one column.
template <Gate kGate, class Tile, typename Out, bool kGrouped, typename Sum>
__device__ __forceinline__ void WriteGatedColumn(
    const BlockPanels<Tile, GemmOutput::kGated>& panels, const BlockRows<kGrouped>& rows,
    int first_row, const SharedSums<Tile, Sum>& shared) {
  constexpr int kColumns = SharedSums<Tile, Sum>::kColumns;
  constexpr int kRowsAtOnce = Tile::kThreads / kColumns;
  const GemmArgs& args = panels.args;
  const int in_block = static_cast<int>(threadIdx.x) % kColumns;
  const int slot = in_block / kPanelColumns, in_panel = in_block % kPanelColumns;
  const int column = panels.OutputPanel(slot) * kPanelColumns + in_panel;
  if (column >= args.columns) return;
  const int of_gate = panels.WeightPanel(slot) * kPanelColumns + in_panel;
  const int of_up = of_gate + args.up_panel * kPanelColumns;
  Out* const out = static_cast<Out*>(args.out) + column;
  const int left = rows.count - first_row, num_rows = left < Tile::kRows ? left : Tile::kRows;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x) / kColumns; i < num_rows; i += kRowsAtOnce) {
    const float gate = Finish(args, shared.sums[i][in_block], first_row + i, of_gate);
    const float up = Finish(args, shared.sums[i][kColumns + in_block], first_row + i, of_up);
    Round(Activate(kGate, gate) * up, out + rows.Out(first_row + i) * args.ldo);
  }
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
    const int first = (i * Tile::kWarps + warp) * kPanelColumns + lane.group;
#pragma unroll
    for (int c = 0; c < Tile::kRows / 2; ++c) {
      shared.sums[c / 4 * 8 + lane.quad * 2 + c % 2][first + c % 4 / 2 * 8] = sums[i][c / 4][c % 4];
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
  }
}

// A step whose words are in registers; the rows may still be read from its stage.
template <class Tile>
struct StepInUse {
  StepWords<Tile> words;
  int stage = 0;
};

// The steps of a block's product, one after the other.
template <class Tile, typename T, GemmOutput kOutput, bool kGrouped>
struct TileSteps {
  static constexpr int kMmas = StepWords<Tile>::kMmas;
  using InUse = StepInUse<Tile>;
  static constexpr int kFirstSteps = Tile::kAhead - 1;

  // Begins the copies of the first steps. Weights do not depend on the kernel before: their copies
  // begin before it ends.
  __device__ __forceinline__ void Begin() {
#pragma unroll 1
    for (int step = 0; step < kFirstSteps && step < num_steps; ++step) FillWeights(step, step);
    LetNextKernelStart();
    if constexpr (!kGrouped) WaitForPreviousKernel();
#pragma unroll 1
    for (int step = 0; step < kFirstSteps; ++step) {
      if (step < num_steps) FillRows(step, step);
      CommitCopies();
    }
  }

  __device__ __forceinline__ void FillWeights(int step, int to) {
    half&& step == num_steps - 1 ? copies.template CopyWeights<true>(shared.w[to])
                                 : copies.template CopyWeights<false>(shared.w[to]);
  }
  __device__ __forceinline__ void FillRows(int step, int to) {
    half&& step == num_steps - 1 ? copies.template CopyRows<true>(shared.rows[to])
                                 : copies.template CopyRows<false>(shared.rows[to]);
  }

  // Waits for the next step. Reads its words into registers, and fills the stage that was read
  // before: that of the step before, or before that one.
  __device__ __forceinline__ void Read(InUse& in_use) {
    WaitForCopies<Tile::kAhead - 2>();
    if constexpr (Tile::kAsync) ShowCopiesToProducts();
    __syncthreads();  // the step has arrived for all threads, and nobody reads the other any more
    if (next_step < num_steps) {
      FillWeights(next_step, fill_stage);
      FillRows(next_step, fill_stage);
    }
    CommitCopies();
    ++next_step;
    fill_stage = fill_stage + 1 == Tile::kStages ? 0 : fill_stage + 1;
    in_use.stage = read_stage;
    in_use.words.Read(shared, read_stage, warp);
    read_stage = read_stage + 1 == Tile::kStages ? 0 : read_stage + 1;
  }

  __device__ __forceinline__ void Add(const InUse& in_use) {
    AddStep<Tile, T, kMmas>(shared.rows[in_use.stage], in_use.words, rows_left, sums);
  }
  __device__ __forceinline__ void AddLast(const InUse& in_use) {
    half ? AddStep<Tile, T, kMmas / 2>(shared.rows[in_use.stage], in_use.words, rows_left, sums)
         : Add(in_use);
  }

  __device__ __forceinline__ void Run() {
    if constexpr (StepWords<Tile>::kHasRows) {
      RunFromRegisters();
    } else {
      RunFromShared();
    }
  }

  // A step is multiplied behind the instructions that read the next.
  __device__ __forceinline__ void RunFromRegisters() {
    InUse even, odd;
    int step = 0;
    Read(even);
#pragma unroll 1
    for (; step + 2 < num_steps; step += 2) {
      Read(odd);
      Add(even);
      Read(even);
      Add(odd);
    }
    if (step + 1 == num_steps) return AddLast(even);
    Read(odd);
    Add(even);
    AddLast(odd);
  }

  // A step is multiplied, maybe in the background, while the next is read.
  __device__ __forceinline__ void RunFromShared() {
    InUse even, odd;
    int step = 0;
#pragma unroll 1
    for (; step + 2 < num_steps; step += 2) {
      Read(even);
      Add(even);
      WaitForProducts<1>();
      Read(odd);
      Add(odd);
      WaitForProducts<1>();
    }
    if (step + 1 < num_steps) {
      Read(even);
      Add(even);
    }
    WaitForProducts<0>();
    Read(odd);
    AddLast(odd);
    WaitForProducts<0>();
  }

  StepCopies<Tile, kOutput, kGrouped>& copies;
  typename Tile::Shared& shared;
  int num_steps;
  bool half;  // whether the last step is half a step
  int warp, rows_left;
  int next_step = kFirstSteps;  // the first that is not copied yet
  int fill_stage = kFirstSteps, read_stage = 0;
  typename Product<T>::Sum sums[Tile::kPanels][Tile::kRows / 8][4] = {};
};

template <class Tile, typename T, GemmOutput kOutput, typename Out, bool kGrouped>
__device__ __forceinline__ void MultiplyTile(const GemmArgs& args) {
  const int row_tiles = (args.m + Tile::kRows - 1) / Tile::kRows;
  const BlockPlace<Tile> place(static_cast<int>(blockIdx.x), args.column_tiles, row_tiles);
  if constexpr (kGrouped) WaitForPreviousKernel();
  const BlockRows<kGrouped> rows(args);
  if (kGrouped && place.first_row >= rows.count) return;
  const BlockPanels<Tile, kOutput> panels(args, place.column_tile);
  StepCopies<Tile, kOutput, kGrouped> copies(panels, rows, place.first_row);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  TileSteps<Tile, T, kOutput, kGrouped> steps = {copies,
                                                 SharedMemory<typename Tile::Shared>(),
                                                 (args.words + kStepWords - 1) / kStepWords,
                                                 args.words % kStepWords != 0,
                                                 warp,
                                                 rows.count - place.first_row};
  steps.Begin();
  steps.Run();
  if constexpr (kOutput == GemmOutput::kGated) {
    WriteGated<Tile, Out>(panels, rows, place.first_row, warp, steps.sums);
  } else {
    WriteSums(panels, rows, place.first_row, warp, steps.sums);
  }
}

// Grid: tiles (BlockPlace). T: the type of the operands; Out: of a gated output, else f32.
template <class Tile, typename T, GemmOutput kOutput, typename Out>
__global__ void __launch_bounds__(Tile::kThreads, 1) GemmKernel(GemmArgs args) {
  MultiplyTile<Tile, T, kOutput, Out, false>(args);
}

// Grid: tiles, 1, groups. Blocks beyond a group's rows end at once.
template <class Tile, typename T, GemmOutput kOutput, typename Out>
__global__ void __launch_bounds__(Tile::kThreads, 1) GroupedGemmKernel(GemmArgs args) {
  MultiplyTile<Tile, T, kOutput, Out, true>(args);
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
