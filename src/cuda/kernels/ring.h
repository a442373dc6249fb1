#pragma once

// A ring of stages in shared memory that some warps fill and others read. Each stage has two
// barriers with phases (dialect.h): one for each direction in which it changes hands.

#include <cstdint>

#include "cuda/kernels/dialect.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

// The stage of the ring that the n-th step has, and the parity of the barriers' phase at that step.
template <int kStages>
struct RingPlace {
  __device__ __forceinline__ void Advance() {
    index = index + 1 == kStages ? 0 : index + 1;
    parity ^= index == 0 ? 1 : 0;
  }

  int index = 0;
  uint32_t parity = 0;
};

// One arrival for a warp, when all of its lanes have come here.
__device__ __forceinline__ void ArriveAsWarp(uint64_t* barrier) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) Arrive(barrier);
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
