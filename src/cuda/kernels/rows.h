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

template <typename T>
__global__ void RmsNormKernel(RmsNormArgs a) {
  const RowOfThread at(a.num_rows);
  const int64_t row = !at.exists ? 0 : a.rows != nullptr ? a.rows[at.row] : at.row;
  const float* x = a.x + row * a.width;
  const int end = at.exists ? a.width : 0;
  float sum = 0.0f;
  for (int i = at.lane; i < end; i += kRowLanes) sum = fmaf(x[i], x[i], sum);
  const float mean = SumOfRowLanes(sum) / static_cast<float>(a.width);
  const float scale = 1.0f / sqrtf(mean + a.eps);
  T* out = static_cast<T*>(a.out) + at.row * a.ldo;
  for (int i = at.lane; i < end; i += kRowLanes) Round((x[i] * scale) * a.weight[i], out + i);
}

template <typename T>
__global__ void QuantizeKernel(QuantizeArgs a) {
  const RowOfThread at(a.num_rows);
  const T* x = static_cast<const T*>(a.x) + at.row * a.ldx;
  const int end = at.exists ? a.width : 0;
  float largest = 0.0f;
  for (int i = at.lane; i < end; i += kRowLanes) {
    // A NaN counts as an infinity here.
    const uint32_t magnitude = __float_as_uint(Widen(x[i])) & 0x7fffffffu;
    const float value = __uint_as_float(magnitude < 0x7f800000u ? magnitude : 0x7f800000u);
    largest = value > largest ? value : largest;
  }
  largest = MaxOfRowLanes(largest);
  if (!at.exists) return;
  const bool finite = __float_as_uint(largest) < 0x7f800000u;
  const bool zero = largest < 0x1p-100f;
  const float inverse = finite && !zero ? 127.0f / largest : 0.0f;
  int8_t* out = a.out + at.row * a.ldo;
  for (int i = at.lane; i < end; i += kRowLanes) {
    out[i] = finite ? static_cast<int8_t>(rintf(Widen(x[i]) * inverse)) : int8_t{0};
  }
  if (at.lane != 0) return;
  a.scales[at.row] = !finite ? __uint_as_float(0x7fc00000u) : zero ? 0.0f : largest / 127.0f;
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
