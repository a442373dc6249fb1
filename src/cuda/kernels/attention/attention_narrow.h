#pragma once

// A tile of at most 16 rows, as a decode has it. The warps divide the keys of a step for its
// scores and weights, and the elements of the head for its values:
//
//   warp w: scores of keys 16 w to 16 w + 15 -> maxima | weights of these keys -> shared memory |
//           a quarter of the values, of all 64 keys
//
// Two barriers of the block (|) belong to each step. The scores of the next step are computed
// between them and behind them, because a sum over the head is one chain of products, whose latency
// the other work hides.

#include <cmath>
#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/attention/attention_products.h"
#include "cuda/kernels/attention/attention_rows.h"
#include "cuda/kernels/attention/attention_steps.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/math.h"
#include "cuda/kernels/products.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

// The weights of a step in shared memory, as operands of the products with V.
template <typename T, int kLaneRows>
struct SharedWeights {
  __device__ __forceinline__ void Read(int product, uint32_t (&a)[4]) const {
    const int word = product * kMmaWords + lane.quad;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      a[i] = i % 2 < kLaneRows ? shared.weights[lane.group + i % 2 * 8][word + i / 2 * 4] : 0u;
    }
  }

  const AttentionShared<T>& shared;
  const Lane& lane;
};

// Two adjacent weights of a row, the first of them of the step's key `key`.
__device__ __forceinline__ void StoreWeights(AttentionShared<Bf16>& shared, int row, int key,
                                             float low, float high) {
  shared.weights[row][key / 2] = PairWord(low, high);
}
__device__ __forceinline__ void StoreWeights(AttentionShared<float>& shared, int row, int key,
                                             float low, float high) {
  shared.weights[row][key] = __float_as_uint(low);
  shared.weights[row][key + 1] = __float_as_uint(high);
}
__device__ __forceinline__ float WeightOf(const AttentionShared<Bf16>& shared, int row, int key) {
  const uint32_t word = shared.weights[row][key / 2];
  return __uint_as_float(key % 2 == 0 ? word << 16 : word & 0xffff0000u);
}
__device__ __forceinline__ float WeightOf(const AttentionShared<float>& shared, int row, int key) {
  return __uint_as_float(shared.weights[row][key]);
}

// The sum of a row's weights in a step, in the order of docs/numerics.md, over 16 lanes: each adds
// keys that are equal modulo 16.
template <typename T>
__device__ __forceinline__ float SumOfWeights(const AttentionShared<T>& shared, int row, int lane) {
  float sum = 0.0f;
#pragma unroll
  for (int key = 0; key < kKeysPerStep; key += kRowLanes) {
    sum = sum + WeightOf(shared, row, key + lane);
  }
  return SumOfRowLanes(sum);
}

// Shares the largest scores of the warp's keys for each row.
template <int kLaneRows, typename T>
__device__ __forceinline__ void ShareMaxima(const float (&scores)[2][4], int warp, const Lane& lane,
                                            AttentionShared<T>& shared) {
#pragma unroll
  for (int i = 0; i < kLaneRows; ++i) {
    const float max = MaxOfQuad(fmaxf(fmaxf(scores[0][2 * i], scores[0][2 * i + 1]),
                                      fmaxf(scores[1][2 * i], scores[1][2 * i + 1])));
    if (lane.quad == 0) shared.maxima[lane.group + 8 * i][warp] = max;
  }
}

// Turns the scores of the warp's keys into weights, and shares them. Gives the factors of the sums
// until now.
template <int kLaneRows, typename T, int kTiles>
__device__ __forceinline__ void ShareWeights(float (&scores)[2][4], int warp, const Lane& lane,
                                             AttentionShared<T>& shared, WalkState<kTiles>& state,
                                             float (&factors)[kLaneRows]) {
#pragma unroll
  for (int i = 0; i < kLaneRows; ++i) {
    const int row = lane.group + 8 * i;
    float max = state.max[i];
#pragma unroll
    for (int w = 0; w < kAttentionWarps; ++w) max = fmaxf(max, shared.maxima[row][w]);
    ComputeWeights(i, max, scores);
    RoundWeights<T>(i, scores);
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      StoreWeights(shared, row, warp * kPanelWidth + t * 8 + lane.quad * 2, scores[t][2 * i],
                   scores[t][2 * i + 1]);
    }
    factors[i] = state.NewMax(i, max);
  }
}

// The sums of weights. 16 lanes have those of a row, and of the row 8 behind it.
template <int kLaneRows>
struct RowSums {
  __device__ __forceinline__ explicit RowSums(const Lane& row_lane)
      : row(static_cast<int>(threadIdx.x) / kRowLanes), lane(row_lane.index % kRowLanes) {}

  template <typename T>
  __device__ __forceinline__ void Add(const AttentionShared<T>& shared,
                                      const float (&factors)[kLaneRows]) {
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i) {
      // Lanes 4 row to 4 row + 3 have the factor of a row.
      const float factor = __shfl_sync(kAllLanes, factors[i], row * 4);
      sums[i] = fmaf(sums[i], factor, SumOfWeights(shared, row + 8 * i, lane));
    }
  }
  // Goes on from the sums of a state.
  template <int kTiles>
  __device__ __forceinline__ void Take(const WalkState<kTiles>& state) {
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i) sums[i] = __shfl_sync(kAllLanes, state.sum[i], row * 4);
  }
  // Gives them to the lanes that have the rows' values. Overwrites the maxima.
  template <typename T, int kTiles>
  __device__ __forceinline__ void Share(const Lane& to, AttentionShared<T>& shared,
                                        WalkState<kTiles>& state) const {
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i) {
      if (lane == 0) shared.maxima[row + 8 * i][0] = sums[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i) state.sum[i] = shared.maxima[to.group + 8 * i][0];
  }

  int row, lane;
  float sums[kLaneRows] = {};
};

// kLaneRows: how many of a lane's two rows there can be; with one, the tile has at most 8 rows.
template <int kLaneRows, typename T, class Shape>
__device__ __forceinline__ void WalkNarrow(const AttentionArgs& a, int tile_index, int part,
                                           int segment, const RowRange& range, const Lane& lane,
                                           const QueryRows<T>& rows,
                                           const QueryWords<T, Shape::kChunks>& q,
                                           const StepStages<T, Shape>& steps,
                                           AttentionShared<T>& shared) {
  constexpr int kPanels = Shape::kTiles / 2 / kAttentionWarps;  // of the values of a warp
  static_assert(kAttentionWarps == kKeyPanels && kPanels >= 1);
  const int begin = range.begin / kKeysPerStep * kKeysPerStep, end = range.end;
  const int stages = steps.shape().stages, head_words = steps.shape().head_words;
  auto from = steps.AddressesOf(begin);  // of the next step whose V is to be copied
  for (int i = 0; i < stages; ++i) {
    if (i > 0) from = steps.AddressesOf(begin + i * kKeysPerStep);
    steps.CopyK(begin + i * kKeysPerStep, i, from);
    CommitCopies();
    if (i + 1 == stages) break;
    steps.CopyV(begin + i * kKeysPerStep, i, from);
    CommitCopies();
  }
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const PanelColumns columns(lane);
  const SharedWeights<T, kLaneRows> weights{shared, lane};
  const int first_element = (part * Shape::kTiles + warp * 2 * kPanels) * 8;
  RowSums<kLaneRows> sums(lane);
  WalkState<2 * kPanels> state;
  TakeShared<Shape::kKind>(a, rows, tile_index, 0, segment, first_element, lane, state);
  if constexpr (Shape::kKind != AttentionKind::kPlain) sums.Take(state);
  const int of_warp = warp * head_words * kPanelWidth;  // the warp's panel of K
  WaitForGroups(2 * stages - 2);
  __syncthreads();
  float scores[2][4] = {};
  AddChunks<-1, T, 1>(q, columns, steps.K(0) + of_warp, head_words, scores);
  int stage = 0;
  for (int step = begin; step < end; step += kKeysPerStep) {
    const int next = stage + 1 == stages ? 0 : stage + 1;
    const int before = stage == 0 ? stages - 1 : stage - 1;
    const auto from_behind = steps.AddressesOf(step + stages * kKeysPerStep);
    FinishScores<Shape>(a, rows, step + warp * kPanelWidth, range.SeesAll(step), lane, scores);
    ShareMaxima<kLaneRows>(scores, warp, lane, shared);
    WaitForGroups(2 * stages - 4);
    steps.MaskLastKey(step, stage);
    // The maxima, V of this step and K of the next are there; K of this step and V of the previous
    // one are no longer read.
    __syncthreads();
    // Behind the last step the next scores are of zeros, and nobody reads them.
    float next_scores[2][4] = {};
    const uint32_t* const next_k = steps.K(next) + of_warp;
    AddChunks<0, T, 1>(q, columns, next_k, head_words, next_scores);
    float factors[kLaneRows];
    ShareWeights<kLaneRows>(scores, warp, lane, shared, state, factors);
    steps.CopyV(step + (stages - 1) * kKeysPerStep, before, from);
    CommitCopies();
    steps.CopyK(step + stages * kKeysPerStep, stage, from_behind);
    CommitCopies();
    __syncthreads();  // the weights are there
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i) state.Rescale(i, factors[i]);
    AddValues<kPanels, kStepBlocks>(steps, weights, columns, stage, warp * kPanels, state);
    AddChunks<1, T, 1>(q, columns, next_k, head_words, next_scores);
    sums.Add(shared, factors);
#pragma unroll
    for (int i = 0; i < 8; ++i) scores[i / 4][i % 4] = next_scores[i / 4][i % 4];
    from = from_behind;
    stage = next;
  }
  sums.Share(lane, shared, state);
  WriteRows<Shape::kKind>(a, rows, tile_index, 0, segment, first_element, lane, state);
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
