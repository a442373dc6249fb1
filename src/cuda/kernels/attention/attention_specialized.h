#pragma once

// The walk of attention_wide.h, for GPUs whose barriers have phases (dialect.h). Its warps have
// roles, and meet no barrier of the block while they walk. Four warps produce the rows of step
// after step. Two consumers of four warps each compute 64 of the tile's rows. While one of them
// computes exponentials, the other one multiplies.
//
// The rows of the last kStages steps lie in a ring, whose stages change hands:
//
//   producer:  wait for empty[stage], write rows, arrive at full[stage]
//   consumer:  wait for full[stage], multiply, arrive at empty[stage]
//
// A consumer works on two steps at a time. The products of a step's values run while it computes
// the weights of the next step:
//
//   products:  | keys s | values s - 1    | keys s + 1 | values s    |
//   consumer:           | weights of s              | | weights of s + 1 ...
//
// The bits are those of attention_wide.h, whose operations and order these are.

#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/attention/attention_products.h"
#include "cuda/kernels/attention/attention_rows.h"
#include "cuda/kernels/attention/attention_steps.h"
#include "cuda/kernels/attention/attention_wide.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/products.h"
#include "cuda/kernels/ring.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

inline constexpr int kProducerWarps = 4, kProducerThreads = 32 * kProducerWarps;
inline constexpr int kSpecializedThreads = kWideThreads + kProducerThreads;
inline constexpr int kProducerRegisters = 72, kConsumerRegisters = 216;
static_assert(kProducerThreads * kProducerRegisters + kWideThreads * kConsumerRegisters <=
              kSpecializedThreads * kBeginRegisters);

template <int kHeadWords>
struct SpecializedMemory {
  static constexpr int kStages = 4;
  static constexpr int kCopies = 3;                   // steps whose panels are being copied
  static constexpr int kRounds = kHeadWords / 16;     // panels that a warp transposes in a step
  static constexpr int kKeyRounds = kHeadWords / 32;  // those of keys

  StepRows<kHeadWords> rows[kStages];
  // Each lane of the producer transposes what it has copied itself: four words of four rows of
  // a panel.
  WordQuad copies[kCopies][kRounds][kProducerWarps][4][32];
  const uint8_t* blocks[kSegmentBlocks];  // as in AttentionShared
  uint64_t full[kStages], empty[kStages];
};

// Makes the rows of the steps from a block's begin to its end.
template <int kHeadWords>
class RowProducer {
 public:
  using Memory = SpecializedMemory<kHeadWords>;

  __device__ __forceinline__ RowProducer(Memory& memory, int segment, int end)
      : memory_(memory),
        segment_begin_(segment * kKeysPerSegment),
        end_(end),
        warp_(static_cast<int>(threadIdx.x) / 32 - kWideWarps) {}

  __device__ __forceinline__ void Run(int begin) const {
    for (int i = 0; i < Memory::kCopies; ++i) Copy(begin + i * kKeysPerStep, i);
    RingPlace<Memory::kStages> stage;
    int copy = 0;
#pragma unroll 1
    for (int step = begin; step < end_; step += kKeysPerStep) {
      WaitForCopies<Memory::kCopies - 1>();
      WaitForPhase(&memory_.empty[stage.index], stage.parity ^ 1);
      MakeRows(step, copy, memory_.rows[stage.index]);
      ShowWritesToProducts();
      ArriveAsWarp(&memory_.full[stage.index]);
      Copy(step + Memory::kCopies * kKeysPerStep, copy);
      copy = copy + 1 == Memory::kCopies ? 0 : copy + 1;
      stage.Advance();
    }
  }

 private:
  // Begins the copies of a step. Keys from the end on become zeros, as in StepStages.
  __device__ __forceinline__ void Copy(int step, int copy) const {
    if (step < end_) {
      const int row = place_.chunk * 4, offset = place_.quad * 16;
      const uint8_t* const* blocks = &memory_.blocks[(step - segment_begin_) / kKvBlockTokens];
      // A warp has the same panel of keys in each round, and other words of it.
      const uint8_t* keys = blocks[warp_ / 2] + (warp_ % 2 * kHeadWords + row) * kRowBytes + offset;
      const bool exists = step + warp_ / 2 * kKvBlockTokens < end_;
#pragma unroll
      for (int round = 0; round < Memory::kKeyRounds; ++round) {
        CopyRows(copy, round, keys + round * 32 * kRowBytes, exists, exists, exists, exists);
      }
      const uint8_t* values = blocks[place_.chunk / 4] + kKvBlockTokens * kHeadWords * 4 +
                              (warp_ * kPanelWidth + row % kPanelWidth) * kRowBytes + offset;
      const int left = end_ - step - place_.chunk * 8;  // keys, of the lane's eight
#pragma unroll
      for (int round = Memory::kKeyRounds; round < Memory::kRounds; ++round) {
        constexpr int kNext = kProducerWarps * kPanelWidth * kRowBytes;
        CopyRows(copy, round, values + (round - Memory::kKeyRounds) * kNext, left > 0, left > 2,
                 left > 4, left > 6);
      }
    }
    CommitCopies();
  }
  __device__ __forceinline__ void CopyRows(int copy, int round, const uint8_t* from, bool first,
                                           bool second, bool third, bool fourth) const {
    constexpr int kNext = 32 * sizeof(WordQuad);
    WordQuad* to = &memory_.copies[copy][round][warp_][0][place_.lane.index];
    CopyAsync16(to, from, first);
    CopyAsync16<kNext, kRowBytes>(to, from, second);
    CopyAsync16<2 * kNext, 2 * kRowBytes>(to, from, third);
    CopyAsync16<3 * kNext, 3 * kRowBytes>(to, from, fourth);
  }

  __device__ __forceinline__ void MakeRows(int step, int copy, StepRows<kHeadWords>& rows) const {
#pragma unroll
    for (int round = 0; round < Memory::kRounds; ++round) {
      WordQuad words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        words[i] = memory_.copies[copy][round][warp_][i][place_.lane.index];
      }
      if (round < Memory::kKeyRounds) {
        WriteTransposed(words, place_, warp_, rows.k[round]);
        continue;
      }
      if (step + kKeysPerStep > end_) MaskKey(step + place_.chunk * 8, end_, words);
      WriteTransposed(words, place_, (round - Memory::kKeyRounds) * kProducerWarps + warp_, rows.v);
    }
  }

  static constexpr int kRowBytes = kPanelWidth * 4;
  static_assert(kKeyPanels == kProducerWarps);

  Memory& memory_;
  const int segment_begin_, end_, warp_;
  const TransposePlace place_;
};

// A warp of a consumer: 16 rows of the tile.
template <AttentionKind kKind, int kChunks>
__device__ __forceinline__ void ConsumeRows(const AttentionArgs& a, const AttentionTile& tile,
                                            int tile_index, int segment, int begin, int end,
                                            SpecializedMemory<kChunks * kMmaWords>& memory) {
  constexpr int kTiles = kChunks * kMmaWords / 4;
  const int row = static_cast<int>(threadIdx.x) / 32 * kAttentionRows;
  const Lane lane;
  const QueryRows<Bf16> rows(OfKind<kKind>(), a, tile, tile.first_row + row, lane);
  const QueryWords<Bf16, kChunks> q(rows, lane);
  const RowRange range(a, tile, tile.first_row + row, kAttentionRows, segment);
  WalkState<kTiles> state;
  TakeShared<kKind>(a, rows, tile_index, row, segment, 0, lane, state);
  WeightWords weights;
  float scores[kKeyTiles][4], max[2];
  RingPlace<SpecializedMemory<kChunks * kMmaWords>::kStages> stage, next;
  const auto wait_for_rows = [&](int step) {
    if (step < end) WaitForPhase(&memory.full[next.index], next.parity);
  };
  wait_for_rows(begin);
  BeginScores(q, memory.rows[stage.index], lane, scores);
  WaitForProducts<0>();
  Weigh(a, rows, begin, range.SeesAll(begin), lane, scores, state);
  weights.Take(scores, lane);
  next.Advance();
  wait_for_rows(begin + kKeysPerStep);
#pragma unroll 1
  for (int step = begin + kKeysPerStep; step < end; step += kKeysPerStep) {
    BeginScores(q, memory.rows[next.index], lane, scores);
    BeginValues(weights, memory.rows[stage.index], lane, state);
    uint64_t* const empty = &memory.empty[stage.index];
    stage = next;
    WaitForProducts<1>();
    BeginWeights(a, rows, step, range.SeesAll(step), lane, state, scores, max);
    ComputeNow(scores);
    next.Advance();
    // As this may be a loop, it also keeps nvcc from moving the next wait before the weights.
    wait_for_rows(step + kKeysPerStep);
    WaitForProducts<0>();
    ArriveAsWarp(empty);
    EndWeights<Bf16>(max, scores, state);
    weights.Take(scores, lane);
  }
  BeginValues(weights, memory.rows[stage.index], lane, state);
  WaitForProducts<0>();
  WriteRows<kKind>(a, rows, tile_index, row, segment, 0, lane, state);
}

// Grid and tiles: those of WideAttentionKernel. It runs only where kHasPhases.
template <int kChunks, AttentionKind kKind>
__global__ void __launch_bounds__(kSpecializedThreads, 1)
    SpecializedAttentionKernel(AttentionArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  if constexpr (kHasPhases) {
    const int segment = static_cast<int>(blockIdx.z);
    // As in AttentionKernel, the tiles that see most keys begin first.
    const int tile_index = a.num_tiles - 1 - static_cast<int>(blockIdx.y);
    const AttentionTile tile = a.tiles[tile_index];
    RowRange of_tile(a, tile, tile.first_row, a.tile_rows, segment);
    of_tile.SkipShared<kKind>(a, tile_index);
    const int begin = of_tile.begin / kKeysPerStep * kKeysPerStep, end = of_tile.end;
    if (of_tile.count <= 0 || begin >= end) return;
    using Memory = SpecializedMemory<kChunks * kMmaWords>;
    auto& memory = SharedMemory<Memory>();
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < kSegmentBlocks) {
      memory.blocks[thread] = BlockOfSegment(a, tile, segment, begin, end, thread);
    }
    if (thread < Memory::kStages) {
      InitBarrier(&memory.full[thread], kProducerWarps);
      InitBarrier(&memory.empty[thread], kWideWarps);
    }
    __syncthreads();
    if (thread >= kWideThreads) {
      GiveRegisters<kProducerRegisters>();
      RowProducer<kChunks * kMmaWords>(memory, segment, end).Run(begin);
    } else {
      TakeRegisters<kConsumerRegisters>();
      ConsumeRows<kKind, kChunks>(a, tile, tile_index, segment, begin, end, memory);
    }
  } else {
    Trap();
  }
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
