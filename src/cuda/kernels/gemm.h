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
//   step:    | s      | s + 1  | ...  | s + kAhead - 1 | ...
//            | in use | copies under way               |
//
// Every output is one sum over k in order, in one accumulator, whatever the tile. So the tile may
// follow from the number of rows, and the bits do not.
//
// With few rows, the time of a step is that of the instructions that a warp issues. So the loop
// over the stages is unrolled: then every address in it is a register and a constant.
//
// A grouped product is many products in one launch, each of some rows with weights of its own.

#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/gemm_output.h"
#include "cuda/kernels/gemm_places.h"
#include "cuda/kernels/products.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

inline constexpr int kStepWords = 32;
inline constexpr int kChunkWords = 4;  // copies are of 16 bytes
inline constexpr int kStepChunks = kStepWords / kChunkWords;

// A panel's words of a step. Chunks of 4 columns are exchanged within a word's row, so that a warp
// reads words from all banks.
struct SharedPanel {
  // Chunk number `i` of the panel's memory.
  __device__ __forceinline__ uint32_t* Chunk(int i) { return words[0] + (i ^ (i >> 2 & 2)) * 4; }
  // The lane's words over the 8 words from `word` on, as mma has them: those of columns 2 group and
  // 2 group + 1, which are the rows group and group + 8 of the instruction (SumColumn).
  __device__ __forceinline__ void Read(int word, const Lane& lane, uint32_t (&a)[4]) const {
    const int column = SumColumn(lane) ^ (lane.quad & 2) << 2;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const auto& pair =
          *reinterpret_cast<const Pair<uint32_t>*>(&words[word + lane.quad + 4 * i][column]);
      a[2 * i] = pair.of[0];
      a[2 * i + 1] = pair.of[1];
    }
  }

  alignas(16) uint32_t words[kStepWords][kPanelColumns];
};

// The block has kWarps warps, and each multiplies all kRows rows by kPanels panels. In a gated
// product one half of the block's panels are gate's, the other up's.
//
// The block has one barrier for each turn, which is kTurn steps. With few rows a step is short, and
// a barrier takes longer than the step's products.
template <int kWarps_, int kPanels_, int kRows_, int kStages_, int kTurn_ = 1>
struct GemmTile {
  static constexpr int kWarps = kWarps_;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kPanels = kPanels_;
  static constexpr int kRows = kRows_;
  static constexpr int kStages = kStages_;
  static constexpr int kTurn = kTurn_;
  static constexpr int kTurns = kStages / kTurn;  // that are filled or in use
  static_assert(kTurns % 2 == 0);  // words are in one register or the other, turn by turn
  static constexpr int kBlockPanels = kWarps * kPanels;
  // Four warps may multiply in the background (wgmma.h). The stages of a turn are then still read
  // while the next one begins.
  static constexpr bool kAsync = kWarps % 4 == 0;
  static_assert(kAsync || kTurn == 1);
  static constexpr int kAhead = kAsync ? kTurns - 1 : kTurns;  // turns that are filled or in use
  struct Shared {
    SharedRows<kRows> rows[kStages];
    SharedPanel w[kStages][kBlockPanels];
  };
};

// The copies of a thread to shared memory. Steps are counted from the one that the copies are at.
// In the place of panels that do not exist it copies the first. Rows that do not exist are not
// copied: whatever lies there in shared memory, no other row's sums see it, and their own are not
// written. Each address is one of few registers and a number that is known when the kernel is
// compiled, for with few rows most of a block's instructions are copies.
template <class Tile, GemmOutput kOutput, bool kGrouped>
class StepCopies {
 public:
  __device__ __forceinline__ StepCopies(const BlockPanels<Tile, kOutput>& panels,
                                        const BlockRows<kGrouped>& rows, int first_row,
                                        typename Tile::Shared& shared)
      : to_w_(shared.w[0][Slot(0)].Chunk(ThreadModulo(kPanelChunks))),
        to_rows_{
            SharedAddress(shared.rows[0].Chunk(Row(0), ThreadModulo(kStepChunks))),
            SharedAddress(shared.rows[0].Chunk(Row(1 % kRowChunks), ThreadModulo(kStepChunks)))} {
    const GemmArgs& args = panels.args;
#pragma unroll
    for (int i = 0; i < kSlots; ++i) {
      const int slot = Slot(i), panel = panels.Exists(slot) ? panels.WeightPanel(slot) : 0;
      w_[i] = static_cast<const uint32_t*>(args.w) +
              static_cast<int64_t>(panel) * args.words * kPanelColumns +
              ThreadModulo(kPanelChunks) * kChunkWords;
    }
#pragma unroll
    for (int i = 0; i < kRowChunks; ++i) {
      const int row = first_row + Row(i);
      a_[i] = static_cast<const uint32_t*>(args.a) +
              rows.In(row < rows.count ? row : 0) * args.lda +
              ThreadModulo(kStepChunks) * kChunkWords;
      exists_[i] = row < rows.count;
    }
  }

  // Copies a step of w to a stage; kHalf: only its first half, since there is no more.
  template <bool kHalf>
  __device__ __forceinline__ void CopyWeights(int step, int stage) const {
    const int first = ThreadModulo(kPanelChunks);
#pragma unroll
    for (int i = 0; i < kSlots; ++i) {
      const int to =
          (stage * Tile::kBlockPanels + i * kPassPanels) * static_cast<int>(sizeof(SharedPanel));
#pragma unroll
      for (int chunk = 0; chunk < kPanelChunks; chunk += kPassChunks) {
        if (kHalf && first + chunk >= kPanelChunks / 2) continue;
        CopyAsync16(to_w_, to + chunk * kChunkWords * 4,
                    w_[i] + step * kStepWords * kPanelColumns + chunk * kChunkWords);
      }
    }
  }
  // The same for rows.
  template <bool kHalf>
  __device__ __forceinline__ void CopyRows(int step, int stage) const {
    constexpr int kRowBytes = kStepWords * 4;
    const int chunk = ThreadModulo(kStepChunks);
#pragma unroll
    for (int i = 0; i < kRowChunks; ++i) {
      if (exists_[i] && (!kHalf || chunk < kStepChunks / 2)) {
        CopyAsync16(to_rows_[i % 2], (stage * Tile::kRows + i / 2 * 2 * kPassRows) * kRowBytes,
                    a_[i] + step * kStepWords);
      }
    }
  }
  __device__ __forceinline__ void Advance(int steps) {
#pragma unroll
    for (int i = 0; i < kSlots; ++i) w_[i] += steps * kStepWords * kPanelColumns;
#pragma unroll
    for (int i = 0; i < kRowChunks; ++i) a_[i] += steps * kStepWords;
  }

 private:
  static constexpr int kPanelChunks = kStepWords * kPanelColumns / kChunkWords;  // of a step
  // Chunks of one panel that the threads copy at the same time, and panels of a thread.
  static constexpr int kPassChunks = Tile::kThreads < kPanelChunks ? Tile::kThreads : kPanelChunks;
  static constexpr int kPassPanels = Tile::kThreads / kPassChunks;
  static constexpr int kSlots = Tile::kBlockPanels / kPassPanels;
  static constexpr int kRowChunks = Tile::kRows * kStepChunks / Tile::kThreads;
  static constexpr int kPassRows = Tile::kThreads / kStepChunks;  // copied at the same time
  static_assert(kSlots >= 1 && kRowChunks >= 1);
  // Rows that are two passes apart have their chunks in the same order.
  static_assert(2 * kPassRows % 8 == 0);

  // The number of a thread is unsigned: then its division by a power of two is a shift.
  static __device__ __forceinline__ int ThreadModulo(uint32_t n) {
    return static_cast<int>(threadIdx.x % n);
  }
  static __device__ __forceinline__ int ThreadOver(uint32_t n) {
    return static_cast<int>(threadIdx.x / n);
  }
  static __device__ __forceinline__ int Slot(int i) {
    return i * kPassPanels + ThreadOver(kPanelChunks);
  }
  static __device__ __forceinline__ int Row(int i) {
    return ThreadOver(kStepChunks) + i * kPassRows;
  }

  const uint32_t* w_[kSlots];
  const uint32_t* a_[kRowChunks];
  bool exists_[kRowChunks];  // whether a_[i] is a row
  // The thread's first chunk of w, and of rows in passes 0 and 1, in stage 0.
  const SharedAddress to_w_, to_rows_[2];
};

// A warp's words of a step: those of its panels, and, where they are few, those of the rows.
template <class Tile>
struct StepWords {
  static constexpr int kMmas = kStepWords / kMmaWords;
  static constexpr bool kHasRows = Tile::kRows <= 16 && !Tile::kAsync;

  __device__ __forceinline__ void Read(const typename Tile::Shared& shared, int stage, int warp) {
#pragma unroll
    for (int mma = 0; mma < kMmas; ++mma) Read(shared, stage, warp, mma);
  }
  // Those of one product.
  __device__ __forceinline__ void Read(const typename Tile::Shared& shared, int stage, int warp,
                                       int mma) {
    const Lane lane;
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

  uint32_t panels[Tile::kPanels][kMmas][4];
  uint32_t rows[kHasRows ? Tile::kRows / 8 : 1][kMmas][2];
};

// Adds product number `mma` of a step to a warp's sums. sums[i][t] has the columns of panel i and
// the rows 8 t ... 8 t + 7.
template <class Tile, typename T>
__device__ __forceinline__ void AddProduct(
    const SharedRows<Tile::kRows>& rows, const StepWords<Tile>& words, int mma, int rows_left,
    typename Product<T>::Sum (&sums)[Tile::kPanels][Tile::kRows / 8][4]) {
  const Lane lane;
#pragma unroll
  for (int tile = 0; tile < Tile::kRows / 8; ++tile) {
    // A block has a row at least.
    if (tile > 0 && tile * 8 >= rows_left) break;
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

// Adds a step, or its first half.
template <class Tile, typename T, int kMmas>
__device__ __forceinline__ void AddStep(
    const SharedRows<Tile::kRows>& rows, const StepWords<Tile>& words, int rows_left,
    typename Product<T>::Sum (&sums)[Tile::kPanels][Tile::kRows / 8][4]) {
  if constexpr (Tile::kAsync && MultipliesInBackground<T>()) {
#pragma unroll
    for (int mma = 0; mma < kMmas; ++mma) {
#pragma unroll
      for (int i = 0; i < Tile::kPanels; ++i) {
        MultiplyInBackground(sums[i], words.panels[i][mma], &rows.words[0][mma * kMmaWords]);
      }
    }
  } else {
#pragma unroll
    for (int mma = 0; mma < kMmas; ++mma) {
      AddProduct<Tile, T>(rows, words, mma, rows_left, sums);
    }
  }
}

// The steps of a block's product, one after the other. Step s is in stage s % kStages. The words of
// even and of odd turns have registers of their own.
template <class Tile, typename T, GemmOutput kOutput, bool kGrouped>
struct TileSteps {
  static constexpr int kMmas = StepWords<Tile>::kMmas;
  static constexpr int kStages = Tile::kStages;
  static constexpr bool kBackground = Tile::kAsync && MultipliesInBackground<T>();
  static constexpr int kTurn = Tile::kTurn;
  static constexpr int kFirstTurns = Tile::kAhead - 1;
  static constexpr int kFirstSteps = kFirstTurns * kTurn;
  using Words = StepWords<Tile>;

  // Begins the copies of the first steps. Weights do not depend on the kernel before: their copies
  // begin before it ends.
  __device__ __forceinline__ void Begin() {
#pragma unroll
    for (int step = 0; step < kFirstSteps; ++step) {
      if (step < num_steps) copies.template CopyWeights<false>(step, step);
    }
    LetNextKernelStart();
    if constexpr (!kGrouped) WaitForPreviousKernel();
#pragma unroll
    for (int step = 0; step < kFirstSteps; ++step) {
      if (step < num_steps) copies.template CopyRows<false>(step, step);
      if (step % kTurn == kTurn - 1) CommitCopies();
    }
  }

  // Waits for a turn. Behind it the turn has arrived for all threads, and nobody reads the stages
  // that are to be filled next.
  __device__ __forceinline__ void WaitForTurn() {
    WaitForCopies<Tile::kAhead - 2>();
    if constexpr (Tile::kAsync) ShowWritesToProducts();
    if constexpr (Tile::kWarps == 1) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }
  // Fills stages with the turn that begins `ahead` steps behind the step that the copies are at.
  __device__ __forceinline__ void Fill(int ahead) {
#pragma unroll
    for (int step = ahead; step < ahead + kTurn; ++step) {
      if (copies_at + step < num_steps) {
        copies.template CopyWeights<false>(step, step % kStages);
        copies.template CopyRows<false>(step, step % kStages);
      }
    }
    CommitCopies();
  }

  __device__ __forceinline__ void Run() {
    if constexpr (Words::kHasRows) {
      RunFromRegisters();
    } else {
      RunFromShared();
    }
    if (half) AddHalf();
  }

  // The words of a step are read behind the products of the step before. The sums are chains of
  // products, in whose latency the rest hides.
  __device__ __forceinline__ void RunFromRegisters() {
    Words words[2];
    if (num_steps == 0) return;
    WaitForTurn();
    words[0].Read(shared, 0, warp);
    Fill(kFirstSteps);
#pragma unroll 1
    for (;; copies_at += kStages) {
#pragma unroll
      for (int i = 0; i < kStages; ++i) {
        Words &now = words[i % 2], &next = words[1 - i % 2];
        const bool is_last = copies_at + i + 1 == num_steps;
        if (!is_last) WaitForTurn();
#pragma unroll
        for (int mma = 0; mma < kMmas; ++mma) {
          AddProduct<Tile, T>(shared.rows[i], now, mma, rows_left, sums);
          if (is_last) continue;
          if (mma == 0) Fill(i + 1 + kFirstSteps);
          next.Read(shared, (i + 1) % kStages, warp, mma);
        }
        if (is_last) return;
      }
      copies.Advance(kStages);
    }
  }

  // A turn is multiplied, maybe in the background, while the next is read. nvcc 13 lets a product
  // run in the background only if no branch comes before the words of the next turn.
  __device__ __forceinline__ void RunFromShared() {
    Words even[kTurn], odd[kTurn];
#pragma unroll 1
    for (; copies_at + kStages <= num_steps; copies_at += kStages) {
#pragma unroll
      for (int i = 0; i < kStages; i += 2 * kTurn) {
        AddTurn(even, i);
        WaitForProducts<1>();
        AddTurn(odd, i + kTurn);
        WaitForProducts<1>();
      }
      copies.Advance(kStages);
    }
    WaitForProducts<0>();
    const int left = num_steps - copies_at;
    int i = 0;
#pragma unroll 1
    for (; i + 2 * kTurn <= left; i += 2 * kTurn) {
      AddTurn(even, i);
      WaitForProducts<1>();
      AddTurn(odd, i + kTurn);
      WaitForProducts<1>();
    }
    WaitForProducts<0>();
    if (i + kTurn <= left) {
      AddTurn(even, i);
      WaitForProducts<0>();
      i += kTurn;
    }
    if (kTurn > 1 && i < left) AddRest(even[0], i, left);
  }
  // i: the first step, counted from the one that the copies are at.
  __device__ __forceinline__ void AddTurn(Words (&words)[kTurn], int i) {
    WaitForTurn();
    Fill(i + kFirstSteps);
#pragma unroll
    for (int step = 0; step < kTurn; ++step) words[step].Read(shared, i + step, warp);
    if constexpr (kBackground) BeginProducts();
#pragma unroll
    for (int step = 0; step < kTurn; ++step) {
      AddStep<Tile, T, kMmas>(shared.rows[i + step], words[step], rows_left, sums);
    }
    if constexpr (kBackground) EndProducts();
  }
  // The steps [i, end) behind the last whole turn.
  __device__ __forceinline__ void AddRest(Words& words, int i, int end) {
    WaitForTurn();
#pragma unroll 1
    for (; i < end; ++i) AddAlone<kMmas>(words, i);
  }
  template <int kCount>
  __device__ __forceinline__ void AddAlone(Words& words, int stage) {
    words.Read(shared, stage, warp);
    if constexpr (kBackground) BeginProducts();
    AddStep<Tile, T, kCount>(shared.rows[stage], words, rows_left, sums);
    if constexpr (kBackground) EndProducts();
    WaitForProducts<0>();
  }

  // The half step behind the others, which rows of few models have. It is not copied ahead.
  __device__ __forceinline__ void AddHalf() {
    __syncthreads();  // nobody reads a stage any more
    copies.template CopyWeights<true>(num_steps - copies_at, 0);
    copies.template CopyRows<true>(num_steps - copies_at, 0);
    CommitCopies();
    WaitForCopies<0>();
    if constexpr (Tile::kAsync) ShowWritesToProducts();
    __syncthreads();
    Words words;
    AddAlone<kMmas / 2>(words, 0);
  }

  StepCopies<Tile, kOutput, kGrouped>& copies;
  typename Tile::Shared& shared;
  int num_steps;  // whole ones
  bool half;      // whether half a step follows
  int warp, rows_left;
  int copies_at = 0;  // a multiple of kStages
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
  auto& shared = SharedMemory<typename Tile::Shared>();
  StepCopies<Tile, kOutput, kGrouped> copies(panels, rows, place.first_row, shared);
  const int warp = static_cast<int>(threadIdx.x / 32);
  TileSteps<Tile, T, kOutput, kGrouped> steps = {copies,
                                                 shared,
                                                 args.words / kStepWords,
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
  MultiplyTile<Tile, T, kOutput, Out, true>(ArgsOfGroup<false>(args));
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
