#pragma once

// The largest logit of each row, for greedy draws: so the logits need not go to the host.

#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/math.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

inline constexpr int kLargestThreads = 512;

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

struct LargestOfWarps {
  float values[kLargestThreads / 32];
  int indices[kLargestThreads / 32];
  int finite[kLargestThreads / 32];
};

// Grid: rows. F: the type of the elements.
template <typename F>
__global__ void FindLargestKernel(FindLargestArgs a) {
  auto& shared = SharedMemory<LargestOfWarps>();
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const F* x = a.x + static_cast<int64_t>(blockIdx.x) * a.ldx;
  LargestSoFar largest;
  for (int i = thread; i < a.width; i += kLargestThreads) largest.Take(x[i], i);
  for (int distance = 16; distance > 0; distance /= 2) {
    LargestSoFar other;
    other.value = __shfl_xor_sync(kAllLanes, largest.value, distance);
    other.index = __shfl_xor_sync(kAllLanes, largest.index, distance);
    other.finite = __shfl_xor_sync(kAllLanes, largest.finite, distance);
    largest.Merge(other);
  }
  if (thread % 32 == 0) {
    shared.values[warp] = largest.value;
    shared.indices[warp] = largest.index;
    shared.finite[warp] = largest.finite;
  }
  __syncthreads();
  if (thread != 0) return;
  for (int i = 1; i < kLargestThreads / 32; ++i) {
    LargestSoFar other;
    other.value = shared.values[i];
    other.index = shared.indices[i];
    other.finite = shared.finite[i];
    largest.Merge(other);
  }
  const bool found = largest.index >= 0;
  a.out[blockIdx.x].index = found ? largest.index : 0;
  a.out[blockIdx.x].finite = found ? largest.finite : 0;
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
