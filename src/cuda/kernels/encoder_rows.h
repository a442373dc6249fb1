#pragma once

// Kernels that work row by row, for models with LayerNorms, tables that are added to the embedding,
// and results that are means of rows.

#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/rows.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

// The mean of a row, and one over the root of its variance.
struct RowMoments {
  __device__ __forceinline__ RowMoments(const FoursOfRow<const float>& x, float eps,
                                        RowShared& shared) {
    const auto width = static_cast<float>(x.width);
    mean =
        SumOfRow(x, shared, [](float of_lane, float element) { return of_lane + element; }) / width;
    // The other threads have read the first sum before the second takes its place: a barrier of the
    // second is between.
    const float center = mean;
    const float squares = SumOfRow(x, shared, [center](float of_lane, float element) {
      const float distance = element - center;
      return fmaf(distance, distance, of_lane);
    });
    scale = 1.0f / sqrtf(squares / width + eps);
  }

  float mean, scale;
};

// Grid: rows.
template <typename T>
__global__ void LayerNormKernel(LayerNormArgs a) {
  LetNextKernelStart();
  const int64_t at = blockIdx.x;
  const int64_t row = a.rows != nullptr ? a.rows[at] : at;
  WaitForPreviousKernel();  // all but x is there before the pass's first kernel
  const FoursOfRow<const float> weight(a.weight, a.width), bias(a.bias, a.width);
  const FoursOfRow<const float> x(a.x + row * a.ldx, a.width);
  const bool keeps = a.normed != nullptr, rounds = a.out != nullptr;
  const FoursOfRow<float> normed(keeps ? a.normed + at * a.width : nullptr, keeps ? a.width : 0);
  const FoursOfRow<T> out(rounds ? static_cast<T*>(a.out) + at * a.ldo : nullptr,
                          rounds ? a.width : 0);
  const RowMoments moments(x, a.eps, SharedMemory<RowShared>());
#pragma unroll 1
  for (int first = 4 * static_cast<int>(threadIdx.x); first < a.width; first += kRowSteps) {
    Four<float> of_x[kFours], gain[kFours], offset[kFours];
    x.Load(first, of_x);
    weight.Load(first, gain);
    bias.Load(first, offset);
#pragma unroll
    for (int k = 0; k < kFours; ++k) {
      Four<T> four;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float& value = of_x[k].of[e];
        value = fmaf((value - moments.mean) * moments.scale, gain[k].of[e], offset[k].of[e]);
        Round(value, &four.of[e]);
      }
      normed.Store(first + k * kRowStep, of_x[k]);
      out.Store(first + k * kRowStep, four);
    }
  }
}

// Grid: rows. X: the type of the residual stream.
template <typename X>
__global__ void AddTableRowsKernel(AddTableRowsArgs a) {
  LetNextKernelStart();
  const int64_t row = blockIdx.x, of_table = a.rows[row];
  const FoursOfRow<const float> table(a.table + of_table * a.width, a.width);
  WaitForPreviousKernel();  // all but x is there before the pass's first kernel
  const FoursOfRow<X> x(a.x + row * a.width, a.width);
#pragma unroll 1
  for (int first = 4 * static_cast<int>(threadIdx.x); first < a.width; first += kRowSteps) {
    Four<X> of_x[kFours];
    Four<float> added[kFours];
    x.Load(first, of_x);
    table.Load(first, added);
#pragma unroll
    for (int k = 0; k < kFours; ++k) {
#pragma unroll
      for (int e = 0; e < 4; ++e) of_x[k].of[e] = of_x[k].of[e] + added[k].of[e];
      x.Store(first + k * kRowStep, of_x[k]);
    }
  }
}

// Grid: columns / kRowThreads, means. A thread adds the rows of its column in order.
template <typename X>
__global__ void MeanKernel(MeanArgs a) {
  constexpr int kLoads = 8;  // in flight
  LetNextKernelStart();
  const RowsOfMean rows = a.rows[blockIdx.y];
  WaitForPreviousKernel();  // all but x is there before the pass's first kernel
  const int column = static_cast<int>(blockIdx.x) * kRowThreads + static_cast<int>(threadIdx.x);
  if (column >= a.width) return;
  const X* x = a.x + static_cast<int64_t>(rows.first) * a.width + column;
  float sum = 0.0f;
#pragma unroll 1
  for (int first = 0; first < rows.count; first += kLoads) {
    float loaded[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      loaded[i] = first + i < rows.count ? x[static_cast<int64_t>(first + i) * a.width] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (first + i < rows.count) sum = sum + loaded[i];
    }
  }
  a.out[static_cast<int64_t>(blockIdx.y) * a.width + column] = sum / static_cast<float>(rows.count);
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
