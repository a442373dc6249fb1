#pragma once

// A tile of up to 128 rows of bf16, as a prompt has it: each of eight warps has 16 rows, and all
// read a step's keys and values once from the L2 cache, whose speed bounds smaller tiles. Four
// warps multiply all of their rows at once (wgmma.h), for which keys and values lie in shared
// memory as rows of terms:
//
//   rows: K [head words / 32][64 keys][32 words of the head]
//         V [elements of the head][32 words of the step's keys]
//
// A KV block has panels, in which the words of such a row lie 64 bytes apart. So a step is copied
// as panels, and the threads transpose it, four words of four rows at a time. The panels of
// a step are copied while the rows of the step before it are in use. Two steps have rows of their
// own, so that values are still multiplied while the next step's rows are made.

#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/attention/attention_products.h"
#include "cuda/kernels/attention/attention_rows.h"
#include "cuda/kernels/attention/attention_steps.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/products.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

inline constexpr int kWideWarps = kWideAttentionRows / kAttentionRows;
inline constexpr int kWideThreads = 32 * kWideWarps;

// A step of heads of kHeadWords words.
template <int kHeadWords>
struct StepRows {
  SharedRows<kKeysPerStep> k[kHeadWords / 32];
  SharedRows<2 * kHeadWords> v;
};

template <int kHeadWords>
struct WideMemory {
  static constexpr int kWords = kKeysPerStep * kHeadWords;
  using Rows = StepRows<kHeadWords>;

  Rows rows[2];  // of even and of odd steps
  // As in a KV block, but for the order of the 16 bytes in each 128 (PanelQuad).
  uint32_t k[kWords], v[kWords];
  const uint8_t* blocks[kSegmentBlocks];  // as in AttentionShared
};

struct alignas(16) WordQuad {
  uint32_t of[4];
};

// The place of 16 bytes in panels: those of the columns 4 quad ... 4 quad + 3 in a row of 16 words.
// Eight lanes that read two quads of rows of four groups of four rows read from all banks.
__device__ __forceinline__ int PanelQuad(int row, int quad) {
  return row / 2 * 32 + ((row % 2 * 4 + quad) ^ (row / 4 % 4 * 2)) * 4;
}

// The words that a lane transposes: the columns of one quad in four rows of a panel.
struct TransposePlace {
  const Lane lane;
  const int quad = lane.index % 2 + lane.index / 8 % 2 * 2;
  const int chunk = lane.index / 2 % 4 + lane.index / 16 * 4;  // of eight
};

// Makes the key `end` zero. The first of the words has the key `first`.
__device__ __forceinline__ void MaskKey(int first, int end, WordQuad (&words)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t kept = first + 2 * i + 1 == end ? 0xffffu : 0xffffffffu;
#pragma unroll
    for (uint32_t& word : words[i].of) word &= kept;
  }
}

// Writes what a lane has of a panel as four words of four rows.
template <int kRows>
__device__ __forceinline__ void WriteTransposed(const WordQuad (&words)[4],
                                                const TransposePlace& place, int panel,
                                                SharedRows<kRows>& rows) {
  const int row = panel * kPanelWidth + place.quad * 4;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    *reinterpret_cast<WordQuad*>(rows.Chunk(row + i, place.chunk)) = {
        words[0].of[i], words[1].of[i], words[2].of[i], words[3].of[i]};
  }
}

// The steps of a block that walks the keys [begin, end) of a segment. A warp transposes four
// words of each lane's columns at a time.
template <int kHeadWords>
class WideSteps {
 public:
  using Memory = WideMemory<kHeadWords>;

  __device__ __forceinline__ WideSteps(Memory& memory, int segment, int end)
      : memory_(memory), segment_begin_(segment * kKeysPerSegment), end_(end) {}

  // Begins the copies of a step. Keys from the end on become zeros, as in StepStages.
  __device__ __forceinline__ void Copy(int step) const {
    const int thread = static_cast<int>(threadIdx.x);
    const int to = PanelQuad(thread / 4, thread % 4);
#pragma unroll
    for (int block = 0; block < kStepBlocks; ++block) {
      const int first = step + block * kKvBlockTokens, of_block = block * Memory::kWords / 2 + to;
      const uint8_t* from =
          memory_.blocks[(step - segment_begin_) / kKvBlockTokens + block] + thread * 16;
      CopyRounds(&memory_.k[of_block], from, first < end_);
      CopyRounds(&memory_.v[of_block], from + kKvBlockTokens * kHeadWords * 4,
                 first + thread / 4 % (kKvBlockTokens / 2) * 2 < end_);
    }
    CommitCopies();
  }

  // Makes rows of the panels. To be called between barriers.
  __device__ __forceinline__ void MakeRows(int step, typename Memory::Rows& rows) const {
    constexpr int kUnits = kHeadWords / 8;  // of the keys, and of the values
    const int warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
    for (int first = 0; first < 2 * kUnits; first += kWideWarps) {
      const int unit = first + warp;
      if (unit < kUnits) {
        TransposeKeys(unit % kKeyPanels, unit / kKeyPanels, rows);
      } else {
        TransposeValues(step, unit - kUnits, rows);
      }
    }
  }

 private:
  static __device__ __forceinline__ void CopyRounds(uint32_t* to, const uint8_t* from,
                                                    bool exists) {
    constexpr int kBytes = kWideThreads * 16, kRounds = Memory::kWords * 2 / kBytes;
    static_assert(kRounds == 1 || kRounds == 2);
    CopyAsync16(to, from, exists);
    if constexpr (kRounds > 1) CopyAsync16<kBytes>(to, from, exists);
  }
  // Transposes 32 words of a panel of keys.
  __device__ __forceinline__ void TransposeKeys(int panel, int half,
                                                typename Memory::Rows& rows) const {
    const TransposePlace place;
    WordQuad words[4];
    Read(&memory_.k[panel * kPanelWidth * kHeadWords], half * 32 + place.chunk * 4, place.quad,
         words);
    WriteTransposed(words, place, panel, rows.k[half]);
  }
  // Transposes a panel of values, in both KV blocks.
  __device__ __forceinline__ void TransposeValues(int step, int panel,
                                                  typename Memory::Rows& rows) const {
    const TransposePlace place;
    WordQuad words[4];
    Read(&memory_.v[place.chunk / 4 * Memory::kWords / 2],
         panel * kPanelWidth + place.chunk % 4 * 4, place.quad, words);
    if (step + kKeysPerStep > end_) MaskKey(step + place.chunk * 8, end_, words);
    WriteTransposed(words, place, panel, rows.v);
  }
  // Four rows of a panel, from `row` on.
  static __device__ __forceinline__ void Read(const uint32_t* panels, int row, int quad,
                                              WordQuad (&words)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      words[i] = *reinterpret_cast<const WordQuad*>(panels + PanelQuad(row + i, quad));
    }
  }

  Memory& memory_;
  const int segment_begin_, end_;
};

// Multiplies a warp's rows by `kTiles` times 8 rows in shared memory, over the 8 words from `word`
// on. In the background, four warps do so together. `place`: of the rows (RowsDescriptor).
template <int kTiles>
__device__ __forceinline__ void AddWideProduct(const uint32_t (&a)[4],
                                               const SharedRows<8 * kTiles>& rows, uint64_t place,
                                               int word, const Lane& lane,
                                               float (&sums)[kTiles][4]) {
  if constexpr (MultipliesInBackground<Bf16>()) {
    MultiplyInBackground(sums, a, RowsBehind(place, word * 4));
  } else {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      uint32_t b[2];
      rows.Read(tile, word, lane, b);
      Product<Bf16>::Add(sums[tile], a, b);
    }
  }
}

// Begins the products of a step's keys, which make the scores.
template <int kChunks>
__device__ __forceinline__ void BeginScores(const QueryWords<Bf16, kChunks>& q,
                                            const StepRows<kChunks * kMmaWords>& rows,
                                            const Lane& lane, float (&scores)[kKeyTiles][4]) {
#pragma unroll
  for (int i = 0; i < 4 * kKeyTiles; ++i) scores[i / 4][i % 4] = 0.0f;
  const uint64_t place = RowsDescriptor(rows.k[0].words[0]);
  BeginProducts();
#pragma unroll
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    const int half = chunk / 4;
    AddWideProduct<kKeyTiles>(q.words[chunk], rows.k[half],
                              RowsBehind(place, half * static_cast<int>(sizeof(rows.k[0]))),
                              chunk % 4 * kMmaWords, lane, scores);
  }
  EndProducts();
}

// A step's weights, as operands of products.
struct WeightWords {
  __device__ __forceinline__ void Take(const float (&weights)[kKeyTiles][4], const Lane& lane) {
    const RegisterWeights<Bf16> from{weights, lane};
#pragma unroll
    for (int i = 0; i < kKeyTiles / 2; ++i) from.Read(i, words[i]);
  }

  uint32_t words[kKeyTiles / 2][4];
};

// Begins the products of a step's values, which add to the state.
template <int kHeadWords>
__device__ __forceinline__ void BeginValues(const WeightWords& weights,
                                            const StepRows<kHeadWords>& rows, const Lane& lane,
                                            WalkState<kHeadWords / 4>& state) {
  const uint64_t place = RowsDescriptor(rows.v.words[0]);
  BeginProducts();
#pragma unroll
  for (int i = 0; i < kKeyTiles / 2; ++i) {
    AddWideProduct<kHeadWords / 4>(weights.words[i], rows.v, place, i * kMmaWords, lane,
                                   state.values);
  }
  EndProducts();
}

// Grid: KV heads, tiles, segments. Rows and keys that do not exist take part, with the weight 0.
template <int kChunks, AttentionKind kKind>
__global__ void __launch_bounds__(kWideThreads, 1) WideAttentionKernel(AttentionArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  constexpr int kHeadWords = kChunks * kMmaWords, kTiles = kHeadWords / 4;
  const int segment = static_cast<int>(blockIdx.z);
  // As in AttentionKernel, the tiles that see most keys begin first.
  const int tile_index = a.num_tiles - 1 - static_cast<int>(blockIdx.y);
  const AttentionTile tile = a.tiles[tile_index];
  RowRange of_tile(a, tile, tile.first_row, a.tile_rows, segment);
  of_tile.SkipShared<kKind>(a, tile_index);
  const int begin = of_tile.begin / kKeysPerStep * kKeysPerStep, end = of_tile.end;
  if (of_tile.count <= 0 || begin >= end) return;
  auto& memory = SharedMemory<WideMemory<kHeadWords>>();
  const int thread = static_cast<int>(threadIdx.x), row = thread / 32 * kAttentionRows;
  if (thread < kSegmentBlocks) {
    memory.blocks[thread] = BlockOfSegment(a, tile, segment, begin, end, thread);
  }
  const Lane lane;
  const QueryRows<Bf16> rows(OfKind<kKind>(), a, tile, tile.first_row + row, lane);
  const QueryWords<Bf16, kChunks> q(rows, lane);
  const RowRange range(a, tile, tile.first_row + row, kAttentionRows, segment);
  const WideSteps<kHeadWords> steps(memory, segment, end);
  WalkState<kTiles> state;
  TakeShared<kKind>(a, rows, tile_index, row, segment, 0, lane, state);
  __syncthreads();
  steps.Copy(begin);
  int odd = 0;
#pragma unroll 1
  for (int step = begin; step < end; step += kKeysPerStep) {
    auto& now = memory.rows[odd];
    WaitForCopies<0>();
    __syncthreads();  // the panels of this step are there
    steps.MakeRows(step, now);
    ShowWritesToProducts();
    __syncthreads();
    if (step + kKeysPerStep < end) steps.Copy(step + kKeysPerStep);
    float scores[kKeyTiles][4];
    BeginScores(q, now, lane, scores);
    WaitForProducts<0>();
    Weigh(a, rows, step, range.SeesAll(step), lane, scores, state);
    WeightWords weights;
    weights.Take(scores, lane);
    BeginValues(weights, now, lane, state);
    // Sums that are loaded in front of the loop would let ptxas serialize all products. It costs
    // nothing: GPUs with products in the background have SpecializedAttentionKernel.
    if constexpr (kKind != AttentionKind::kPlain) WaitForProducts<0>();
    odd = 1 - odd;
  }
  WaitForProducts<0>();
  WriteRows<kKind>(a, rows, tile_index, row, segment, 0, lane, state);
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
