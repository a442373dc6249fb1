#pragma once

// The first kernel of random draws: the largest element of each group of a row, and the sum of its
// weights (Kernels::Weigh). Rows that nothing is drawn from are passed over.

#include <cstdint>

#include "cuda/kernels/dialect.h"
#include "cuda/kernels/draws/draw_args.h"
#include "cuda/kernels/math.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

inline constexpr int kDrawThreads = 256;
inline constexpr int kDrawWarps = kDrawThreads / 32;
// 16 lanes weigh a group.
inline constexpr int kGroupsOfBlock = kDrawThreads / kRowLanes;

__device__ __forceinline__ bool IsDrawn(const RowDraw& draw, const RowLargest& largest) {
  return draw.temperature != 0.0f && largest.finite != 0;
}

// `max`: the largest logit of the row, whose weight is 1.
__device__ __forceinline__ float WeightOf(float logit, float max, float temperature) {
  return Exp((logit - max) / temperature);
}

// Grid: blocks of kGroupsOfBlock groups, rows. F: the type of the logits.
template <typename F>
__global__ void __launch_bounds__(kDrawThreads) WeighGroupsKernel(DrawArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  constexpr int kOfLane = kDrawGroup / kRowLanes;
  const int64_t row = blockIdx.y;
  const RowDraw draw = a.draws[row];
  const RowLargest largest = a.rows[row];
  if (!IsDrawn(draw, largest)) return;
  const F* logits = a.logits + row * a.ldx;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kRowLanes;
  const int group = static_cast<int>(blockIdx.x) * kGroupsOfBlock + thread / kRowLanes;
  F x[kOfLane];
#pragma unroll
  for (int i = 0; i < kOfLane; ++i) {
    const int id = group * kDrawGroup + i * kRowLanes + lane;
    x[i] = id < a.vocab ? logits[id] : kMinusInfinity;
  }
  double sum = 0.0;
  if (draw.top_k == 0) {
#pragma unroll
    for (int i = 0; i < kOfLane; ++i) {
      x[i] = WeightOf(x[i], largest.value, draw.temperature);
      sum += x[i];
    }
    for (int distance = kRowLanes / 2; distance > 0; distance /= 2) {
      sum = sum + __shfl_xor_sync(kAllLanes, sum, distance);
    }
  }
  F best = x[0];
#pragma unroll
  for (int i = 1; i < kOfLane; ++i) best = x[i] > best ? x[i] : best;
  best = MaxOfRowLanes(best);
  const int num_groups = NumDrawGroups(a.vocab);
  if (lane != 0 || group >= num_groups) return;
  a.best[row * num_groups + group] = best;
  if (draw.top_k == 0) a.sums[row * num_groups + group] = sum;
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
