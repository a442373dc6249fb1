#pragma once

// Logits behind their product, and the largest of each row, for draws: so the logits need not go
// to the host. Few rows are divided into parts, so that many blocks read a row.

#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/math.h"
#include "cuda/kernels/rows.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

inline constexpr int kLogitsOfThread = 4;

// Grid: blocks of kRowThreads * kLogitsOfThread logits. F: their type.
template <typename F>
__global__ void FinishLogitsKernel(FinishLogitsArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * (kRowThreads * kLogitsOfThread);
  const float factor = a.cap > 0.0f ? 1.0f / a.cap : 0.0f;
#pragma unroll
  for (int i = 0; i < kLogitsOfThread; ++i) {
    const int64_t at = begin + i * kRowThreads + static_cast<int>(threadIdx.x);
    if (at >= a.num_logits) return;
    F x = a.x[at] / a.divisor;
    if (a.cap > 0.0f) x = SoftCap(x, factor, a.cap);
    a.x[at] = x;
  }
}

inline constexpr int kLargestThreads = 256;

// The largest of some elements, of equal ones the first. Not yet one: index < 0.
struct LargestSoFar {
  __device__ __forceinline__ void Take(float x, int at) {
    if (x != x || x == -kMinusInfinity) finite = 0;
    if (x > value) {
      value = x;
      index = at;
    }
  }
  __device__ __forceinline__ void Merge(const LargestSoFar& other) {
    finite &= other.finite;
    const bool first = other.value == value && other.index >= 0 && other.index < index;
    if (other.value > value || first) {
      value = other.value;
      index = other.index;
    }
  }

  float value = kMinusInfinity;
  int index = -1;
  int finite = 1;
};

// The largest of a warp, in all lanes.
__device__ __forceinline__ void MergeLanes(LargestSoFar& largest) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    LargestSoFar other;
    other.value = __shfl_xor_sync(kAllLanes, largest.value, distance);
    other.index = __shfl_xor_sync(kAllLanes, largest.index, distance);
    other.finite = __shfl_xor_sync(kAllLanes, largest.finite, distance);
    largest.Merge(other);
  }
}

__device__ __forceinline__ void WriteLargest(const LargestSoFar& largest, RowLargest* out) {
  const bool found = largest.index >= 0;
  // Adding +0 removes the sign of a zero, which depends on the order of the elements.
  *out = {found ? largest.index : 0, found ? largest.finite : 0, largest.value + 0.0f, 0};
}

__device__ __forceinline__ LargestSoFar LargestOf(const PartLargest& part) {
  LargestSoFar largest;
  largest.value = part.value;
  largest.index = part.index;
  largest.finite = part.finite;
  return largest;
}
__device__ __forceinline__ PartLargest PartOf(const LargestSoFar& largest) {
  return {largest.value, largest.index, largest.finite};
}

struct LargestOfWarps {
  PartLargest warps[kLargestThreads / 32];
};

// Grid: parts, rows. F: the type of the elements.
template <typename F>
__global__ void FindLargestKernel(FindLargestArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  constexpr int kInFlight = 4, kStep = 4 * kLargestThreads;
  auto& shared = SharedMemory<LargestOfWarps>();
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const int64_t row = blockIdx.y;
  const F* x = a.x + row * a.ldx;
  const bool whole = reinterpret_cast<uintptr_t>(x) % sizeof(Four<F>) == 0;
  const int begin = static_cast<int>(blockIdx.x) * a.part_width;
  const int end = begin + a.part_width < a.width ? begin + a.part_width : a.width;
  LargestSoFar largest;
#pragma unroll 1
  for (int first = begin + 4 * thread; first < end; first += kInFlight * kStep) {
    Four<F> fours[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      const int i = first + k * kStep;
      if (whole && i + 4 <= end) {
        fours[k] = *reinterpret_cast<const Four<F>*>(x + i);
        continue;
      }
#pragma unroll
      for (int e = 0; e < 4; ++e) fours[k].of[e] = i + e < end ? x[i + e] : kMinusInfinity;
    }
    // Minus infinity is never the largest.
#pragma unroll
    for (int k = 0; k < 4 * kInFlight; ++k) {
      largest.Take(fours[k / 4].of[k % 4], first + k / 4 * kStep + k % 4);
    }
  }
  MergeLanes(largest);
  if (thread % 32 == 0) shared.warps[warp] = PartOf(largest);
  __syncthreads();
  if (thread != 0) return;
#pragma unroll
  for (int i = 1; i < kLargestThreads / 32; ++i) largest.Merge(LargestOf(shared.warps[i]));
  if (a.num_parts == 1) return WriteLargest(largest, a.out + row);
  a.parts[row * a.num_parts + blockIdx.x] = PartOf(largest);
}

// Merges the parts of each row. A warp for each row.
template <typename F>
__global__ void MergeLargestKernel(FindLargestArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t row = int64_t{blockIdx.x} * (kRowThreads / 32) + threadIdx.x / 32;
  if (row >= a.num_rows) return;
  LargestSoFar largest;
#pragma unroll 4
  for (int i = lane; i < a.num_parts; i += 32) {
    largest.Merge(LargestOf(a.parts[row * a.num_parts + i]));
  }
  MergeLanes(largest);
  if (lane == 0) WriteLargest(largest, a.out + row);
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
