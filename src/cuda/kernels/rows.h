#pragma once

// Kernels that work row by row. 16 lanes of a warp compute a row: lane i takes the elements i, i +
// 16 and so on. This is also the order of every sum along a row.

#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/math.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

inline constexpr int kRowThreads = 128;
inline constexpr int kRowsPerBlock = kRowThreads / kRowLanes;

struct RowOfThread {
  __device__ __forceinline__ explicit RowOfThread(int64_t count)
      : lane(static_cast<int>(threadIdx.x) % kRowLanes),
        row(static_cast<int64_t>(blockIdx.x) * kRowsPerBlock + threadIdx.x / kRowLanes),
        exists(row < count) {}

  int lane;
  int64_t row;
  bool exists;  // false: the lane has no row, but still takes part in sums
};

// The index of the element (column of w, index along k) in a PackedWeight with `words` words per
// row.
template <typename T>
__device__ __forceinline__ int64_t PanelIndex(int64_t column, int64_t k, int64_t words) {
  constexpr int kPerWord = 4 / sizeof(T);
  return ((column / 16 * words + k / kPerWord) * 16 + column % 16) * kPerWord + k % kPerWord;
}

// Grid: tokens. kPanels: the table is a PackedWeight; otherwise it has plain rows.
template <typename T, bool kPanels>
__global__ void EmbedKernel(EmbedArgs a) {
  const int64_t row = blockIdx.x, token = a.tokens[row];
  const T* table = static_cast<const T*>(a.table);
  for (int i = static_cast<int>(threadIdx.x); i < a.hidden; i += kRowThreads) {
    const T element = table[kPanels ? PanelIndex<T>(token, i, a.words) : token * a.hidden + i];
    float value = 0.0f;
    if constexpr (sizeof(T) == 1) {
      value = static_cast<float>(element) * a.scales[token];
    } else {
      value = Widen(element);
    }
    a.x[row * a.hidden + i] = a.scale == 1.0f ? value : value * a.scale;
  }
}

// One over the root of the mean square of a row of `width` elements. `end`: 0 without a row.
__device__ __forceinline__ float ScaleOfRow(const float* x, int lane, int end, int width,
                                            float eps) {
  float sum = 0.0f;
  for (int i = lane; i < end; i += kRowLanes) sum = fmaf(x[i], x[i], sum);
  const float mean = SumOfRowLanes(sum) / static_cast<float>(width);
  return 1.0f / sqrtf(mean + eps);
}

template <typename T>
__global__ void RmsNormKernel(RmsNormArgs a) {
  const RowOfThread at(a.num_rows);
  const int64_t row = !at.exists ? 0 : a.rows != nullptr ? a.rows[at.row] : at.row;
  const float* x = a.x + row * a.ldx;
  const int end = at.exists ? a.width : 0;
  const float scale = ScaleOfRow(x, at.lane, end, a.width, a.eps);
  T* out = static_cast<T*>(a.out) + at.row * a.ldo;
  for (int i = at.lane; i < end; i += kRowLanes) {
    Round(a.weight == nullptr ? x[i] : (x[i] * scale) * a.weight[i], out + i);
  }
}

// X: the type of the residual stream.
template <typename X>
__global__ void BranchKernel(BranchArgs a) {
  const RowOfThread at(a.num_rows);
  const float* branch = a.branch + at.row * a.width;
  const int end = at.exists ? a.width : 0;
  const float scale = ScaleOfRow(branch, at.lane, end, a.width, a.eps);
  X* x = a.x + at.row * a.width;
  for (int i = at.lane; i < end; i += kRowLanes) {
    const float value = a.weight == nullptr ? branch[i] : (branch[i] * scale) * a.weight[i];
    x[i] = x[i] + a.scale * value;
  }
}

template <typename T>
__global__ void ActivateKernel(ActivateArgs a) {
  const RowOfThread at(a.num_rows);
  if (!at.exists) return;
  T* out = static_cast<T*>(a.out) + at.row * a.ldo;
  for (int i = at.lane; i < a.width; i += kRowLanes) {
    Round(Activate(a.gate, a.x[at.row * a.width + i]), out + i);
  }
}

// The larger of `largest` and the magnitude of x. Infinity stands for a NaN, too.
__device__ __forceinline__ float LargerMagnitude(float largest, float x) {
  const uint32_t magnitude = __float_as_uint(x) & 0x7fffffffu;
  const float value = __uint_as_float(magnitude < 0x7f800000u ? magnitude : 0x7f800000u);
  return value > largest ? value : largest;
}

// How values up to a magnitude become int8.
struct RowScale {
  __device__ __forceinline__ explicit RowScale(float largest) {
    finite = __float_as_uint(largest) < 0x7f800000u;
    const bool zero = largest < 0x1p-100f;
    inverse = finite && !zero ? 127.0f / largest : 0.0f;
    scale = !finite ? __uint_as_float(0x7fc00000u) : zero ? 0.0f : largest / 127.0f;
  }
  __device__ __forceinline__ int8_t Quantize(float x) const {
    return finite ? static_cast<int8_t>(rintf(x * inverse)) : int8_t{0};
  }

  bool finite;
  float inverse, scale;
};

template <typename T>
__global__ void QuantizeKernel(QuantizeArgs a) {
  const RowOfThread at(a.num_rows);
  const T* x = static_cast<const T*>(a.x) + at.row * a.ldx;
  const int end = at.exists ? a.width : 0;
  float largest = 0.0f;
  for (int i = at.lane; i < end; i += kRowLanes) largest = LargerMagnitude(largest, Widen(x[i]));
  const RowScale scale(MaxOfRowLanes(largest));
  if (!at.exists) return;
  int8_t* out = a.out + at.row * a.ldo;
  for (int i = at.lane; i < end; i += kRowLanes) out[i] = scale.Quantize(Widen(x[i]));
  if (at.lane == 0) a.scales[at.row] = scale.scale;
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
