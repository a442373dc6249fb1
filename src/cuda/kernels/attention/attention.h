#pragma once

// The attention walk of docs/numerics.md, with the rounding and the order of the FMA class. Steps
// are 64 keys at absolute multiples of 64, inside segments of 2,048 keys that are merged left to
// right. A block of 4 warps computes one segment for the query rows of a tile under one KV head,
// step after step:
//
//   scores: [rows, 64 keys] = q · K^T, a sum over the head for each
//   values: [rows, head_dim] = values * e^(old maximum - new) + weights · V, in order of keys
//
// One walk serves prefill, decode and cached prefixes: keys and values are always read from blocks.
// The warps share each step in shared memory. In a tile of more than 16 rows each warp has 16 rows
// of its own; a narrow tile has all warps work on its rows (attention_narrow.h). In bf16, wide
// tiles of common heads have another kernel (attention_wide.h). In a layer with a window the walk
// begins at the step of the first key that a row of the tile sees.

#include <cmath>
#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/attention/attention_narrow.h"
#include "cuda/kernels/attention/attention_products.h"
#include "cuda/kernels/attention/attention_rows.h"
#include "cuda/kernels/attention/attention_steps.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/math.h"
#include "cuda/kernels/products.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

// Walks a tile of which each warp has 16 rows.
template <typename T, class Shape>
__device__ __forceinline__ void WalkWide(const AttentionArgs& a, const AttentionTile& tile,
                                         int tile_index, int part, int segment, int begin, int end,
                                         int row, const Lane& lane, const QueryRows<T>& rows,
                                         const QueryWords<T, Shape::kChunks>& q,
                                         const StepStages<T, Shape>& steps) {
  const int stages = steps.shape().stages;
  // A single stage is filled when the step before it has ended.
  const int ahead = stages > 1 ? stages - 1 : 1;
  const auto copy = [&](int step, int stage) {
    const auto from = steps.AddressesOf(step);
    if (step < end) steps.CopyK(step, stage, from);
    CommitCopies();
    if (step < end) steps.CopyV(step, stage, from);
    CommitCopies();
  };
  for (int i = 0; i < stages - 1; ++i) copy(begin + i * kKeysPerStep, i);
  const RowRange range(a, tile, tile.first_row + row, kAttentionRows, segment);
  const bool has_rows = range.count > 0 && row < a.tile_rows;
  const PanelColumns columns(lane);
  const int first_element = part * Shape::kTiles * 8;
  WalkState<Shape::kTiles> state;
  TakeShared<Shape::kKind>(a, rows, tile_index, row, segment, first_element, lane, state);
  int stage = 0, next_stage = stages - 1;
  for (int step = begin; step < end; step += kKeysPerStep) {
    if (stages == 1) {
      __syncthreads();
      copy(step, 0);
    }
    // The first scores begin before V has arrived.
    const bool waits_twice = step == begin || stages == 1;
    if (waits_twice) {
      WaitForGroups(2 * ahead - 1);
    } else {
      WaitForGroups(2 * ahead - 2);
      steps.MaskLastKey(step, stage);
    }
    // After this, the keys and values of this step are in shared memory, and no warp reads those of
    // the step before.
    __syncthreads();
    if (stages > 1) copy(step + ahead * kKeysPerStep, next_stage);
    float scores[kKeyTiles][4] = {};
    const bool takes_part = has_rows && range.Sees(step);
    if (takes_part) {
      // A step with keys of one KV block alone is half the work.
      if (step + kKvBlockTokens < range.end) {
        AddScores<kStepBlocks>(steps, q, columns, stage, scores);
      } else {
        AddScores<1>(steps, q, columns, stage, scores);
      }
      WeighVisible<Shape>(a, rows, step, range.SeesAll(step), lane, scores, state);
    }
    if (waits_twice) {
      WaitForGroups(2 * stages - 2);
      steps.MaskLastKey(step, stage);
      __syncthreads();
    }
    if (takes_part) {
      const RegisterWeights<T> weights{scores, lane};
      if (step + kKvBlockTokens < range.end) {
        AddValues<Shape::kTiles / 2, kStepBlocks>(steps, weights, columns, stage, 0, state);
      } else {
        AddValues<Shape::kTiles / 2, 1>(steps, weights, columns, stage, 0, state);
      }
    }
    stage = stage + 1 == stages ? 0 : stage + 1;
    next_stage = next_stage + 1 == stages ? 0 : next_stage + 1;
  }
  if (!has_rows) return;
  WriteRows<Shape::kKind>(a, rows, tile_index, row, segment, first_element, lane, state);
}

// Grid: KV heads, tiles, segments x parts. A part is 8 * kTiles elements of the values. Wider heads
// would need more registers than there are; they have several parts, and each part computes the
// weights of the keys again.
template <typename T, int kTiles, int kChunks, AttentionKind kKind>
__global__ void __launch_bounds__(
    kAttentionThreads, AttentionShape<T, kTiles, kChunks, kKind>::kBlocksPerMultiprocessor)
    AttentionKernel(AttentionArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  using Shape = AttentionShape<T, kTiles, kChunks, kKind>;
  const int parts = Shape(a.head_dim_padded).parts();
  const int part = static_cast<int>(blockIdx.z) % parts;
  const int segment = static_cast<int>(blockIdx.z) / parts;
  // A prompt's last tiles see most keys, so they begin first.
  const int tile_index = a.num_tiles - 1 - static_cast<int>(blockIdx.y);
  const AttentionTile tile = a.tiles[tile_index];
  RowRange range(a, tile, tile.first_row, a.tile_rows, segment);
  range.SkipShared<kKind>(a, tile_index);
  const int begin = range.begin / kKeysPerStep * kKeysPerStep, end = range.end;
  if (range.count <= 0 || begin >= end) return;
  auto& shared = SharedMemory<AttentionShared<T>>();
  const StepStages<T, Shape> steps(a, tile, part, segment, begin, end, shared);
  // For heads of a fixed width WideAttentionKernel takes the other tiles.
  const bool narrow = kChunks > 0 || (range.count <= kAttentionRows && steps.shape().stages > 1);
  const Lane lane;
  const int row = narrow ? 0 : static_cast<int>(threadIdx.x) / 32 * kAttentionRows;
  const QueryRows<T> rows(OfKind<kKind>(), a, tile, tile.first_row + row, lane);
  const QueryWords<T, kChunks> q(rows, lane);
  steps.ShareBlocks();
  __syncthreads();
  if (!narrow) {
    if constexpr (kChunks == 0) {
      WalkWide(a, tile, tile_index, part, segment, begin, end, row, lane, rows, q, steps);
    }
  } else if (kChunks == 0 || range.count > kAttentionRows / 2) {
    WalkNarrow<2>(a, tile_index, part, segment, range, lane, rows, q, steps, shared);
  } else {
    WalkNarrow<1>(a, tile_index, part, segment, range, lane, rows, q, steps, shared);
  }
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
