#pragma once

// A mixture of experts: which experts each token goes through, the tokens of each expert, and the
// sum of their results (docs/numerics.md, "Experts"). The products between are grouped (gemm.h).

#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/math.h"
#include "cuda/kernels/rows.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

inline constexpr int kExpertThreads = 128;
inline constexpr int kExpertWarps = kExpertThreads / 32;

// Maps logits to integers that compare as the logits do. Both zeros have the same integer, and a
// NaN has the lowest one.
__device__ __forceinline__ uint32_t OrderOf(float logit) {
  if (logit != logit) return 0;
  const uint32_t bits = __float_as_uint(logit + 0.0f);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}

// A token's expert as far as a warp has compared them. None: expert < 0.
struct BestExpert {
  __device__ __forceinline__ void Take(uint32_t other_order, int other) {
    const bool better = other_order > order || (other_order == order && other < expert);
    if (other < 0 || (expert >= 0 && !better)) return;
    order = other_order;
    expert = other;
  }

  uint32_t order = 0;
  int expert = -1;
};

// The experts with the largest logits, of equal ones the lowest. Lane i gets the i-th, the first
// ones to the left. Lanes from per_token on get -1. A lane holds the logits lane, lane + 32 and so
// on: kHeld of them.
template <int kHeld>
__device__ __forceinline__ int LargestExperts(const ChooseExpertsArgs& a, const float* logits,
                                              int lane) {
  uint32_t orders[kHeld];
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    orders[j] = lane + 32 * j < a.num_experts ? OrderOf(logits[lane + 32 * j]) : 0;
  }
  uint32_t chosen = 0;  // bit j: expert lane + 32 j
  int mine = -1;
#pragma unroll 1
  for (int i = 0; i < a.per_token; ++i) {
    BestExpert best;
#pragma unroll
    for (int j = 0; j < kHeld; ++j) {
      const bool exists = lane + 32 * j < a.num_experts && (chosen >> j & 1u) == 0;
      if (exists) best.Take(orders[j], lane + 32 * j);
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      const uint32_t order = __shfl_xor_sync(kAllLanes, best.order, distance);
      best.Take(order, __shfl_xor_sync(kAllLanes, best.expert, distance));
    }
    if (best.expert % 32 == lane) chosen |= 1u << (best.expert / 32);
    if (i == lane) mine = best.expert;
  }
  return mine;
}

// The same by ascending number.
__device__ __forceinline__ int SortExperts(int mine, int per_token, int lane) {
  int rank = 0;
  for (int i = 0; i < per_token; ++i) rank += __shfl_sync(kAllLanes, mine, i) < mine ? 1 : 0;
  int sorted = -1;
  for (int i = 0; i < per_token; ++i) {
    const int rank_of = __shfl_sync(kAllLanes, rank, i);
    const int expert = __shfl_sync(kAllLanes, mine, i);
    if (rank_of == lane) sorted = expert;
  }
  return sorted;
}

// A warp for each token. `F`: the type of the logits. kShared: whether there is a shared expert,
// whose weight takes registers.
template <typename F, bool kShared>
__global__ void ChooseExpertsKernel(ChooseExpertsArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t token =
      static_cast<int64_t>(blockIdx.x) * kExpertWarps + static_cast<int>(threadIdx.x) / 32;
  if (token >= a.num_tokens) return;
  const F* logits = a.logits + token * a.ldl;
  constexpr int kFew = 4;  // most models have at most 128 experts
  const int largest = a.num_experts <= 32 * kFew
                          ? LargestExperts<kFew>(a, logits, lane)
                          : LargestExperts<kMaxExperts / 32>(a, logits, lane);
  const float shift = logits[__shfl_sync(kAllLanes, largest, 0)];
  const int expert = SortExperts(largest, a.per_token, lane);
  const float mine = expert < 0 ? 0.0f : Exp(logits[expert] - shift);
  float sum = 0.0f;
  if (a.norm_weights) {
    for (int i = 0; i < a.per_token; ++i) sum = sum + __shfl_sync(kAllLanes, mine, i);
  } else {
    for (int first = 0; first < a.num_experts; first += 32) {
      const int end = a.num_experts - first < 32 ? a.num_experts - first : 32;
      const float of_lane = lane < end ? Exp(logits[first + lane] - shift) : 0.0f;
#pragma unroll 8
      for (int i = 0; i < end; ++i) sum = sum + __shfl_sync(kAllLanes, of_lane, i);
    }
  }
  if (kShared && lane == 0) {
    const double logit = logits[a.shared_logit];
    a.shared_weights[token] = static_cast<float>(1 / (1 + exp(-logit)));
  }
  if (expert < 0) return;
  a.experts[token * a.per_token + lane] = expert;
  a.weights[token * a.per_token + lane] = mine / sum;
}

// The warps of an expert in ListSlotsKernel, and the slots that each of them has in flight.
inline constexpr int kListThreads = 256;
inline constexpr int kListWarps = kListThreads / 32;
inline constexpr int kListLoads = 8;
inline constexpr int kListStep = 32 * kListLoads;
struct ListSlotsShared {
  int counts[kListWarps];
};

// Loads the experts of slots first + lane, first + lane + 32 and so on; behind `end` there is none.
__device__ __forceinline__ void LoadExperts(const int32_t* experts, int first, int end,
                                            int (&loaded)[kListLoads]) {
#pragma unroll
  for (int k = 0; k < kListLoads; ++k) {
    const int slot = first + 32 * k;
    loaded[k] = slot < end ? experts[slot] : -1;
  }
}

// Grid: experts. Each warp lists a part of the slots, whose place follows from the counts of the
// parts before. `Slot`: the type of slots.
template <typename Slot>
__global__ void ListSlotsKernel(ListSlotsArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  auto& shared = SharedMemory<ListSlotsShared>();
  const int expert = static_cast<int>(blockIdx.x), warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  constexpr int kAtOnce = kListWarps * kListStep;
  const int part = (a.num_slots + kAtOnce - 1) / kAtOnce * kListStep, begin = warp * part;
  const int end = a.num_slots < begin + part ? a.num_slots : begin + part;
  int experts[kListLoads], count = 0;
  if (part < a.num_slots) {  // otherwise the first warp has all slots
#pragma unroll 1
    for (int first = begin; first < end; first += kListStep) {
      LoadExperts(a.experts, first + lane, end, experts);
#pragma unroll
      for (int k = 0; k < kListLoads; ++k) count += experts[k] == expert ? 1 : 0;
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      count += __shfl_xor_sync(kAllLanes, count, distance);
    }
    if (lane == 0) shared.counts[warp] = count;
    __syncthreads();
    count = 0;
    for (int i = 0; i < warp; ++i) count += shared.counts[i];
  }
  Slot* slots = a.slots + static_cast<int64_t>(expert) * a.capacity;
#pragma unroll 1
  for (int first = begin; first < end; first += kListStep) {
    LoadExperts(a.experts, first + lane, end, experts);
#pragma unroll
    for (int k = 0; k < kListLoads; ++k) {
      const bool listed = experts[k] == expert;
      const uint32_t all = __ballot_sync(kAllLanes, listed);
      const uint32_t before = all & ((1u << lane) - 1u);
      if (listed) slots[count + __popc(before)] = first + 32 * k + lane;
      count += __popc(all);
    }
  }
  const bool has_last = end == a.num_slots && begin < end;
  if (lane == 0 && has_last) a.counts[expert] = count;
}

// Adds weight * out to four elements of a row.
__device__ __forceinline__ void AddWeighed(const FoursOfRow<const float>& out, float weight,
                                           int first, Four<float>& sum) {
  Four<float> four[1];
  out.Load(first, four);
#pragma unroll
  for (int e = 0; e < 4; ++e) sum.of[e] = sum.of[e] + weight * four[0].of[e];
}

// Grid: kRowStep elements, tokens.
template <typename X>
__global__ void SumExpertsKernel(SumExpertsArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  const int64_t token = blockIdx.y;
  const int first = static_cast<int>(blockIdx.x) * kRowStep + 4 * static_cast<int>(threadIdx.x);
  const FoursOfRow<X> x(a.x + token * a.stride, a.width);
  Four<X> sum[1];
  x.Load(first, sum);
#pragma unroll 4
  for (int slot = 0; slot < a.per_token; ++slot) {
    const int64_t at = token * a.per_token + slot;
    const FoursOfRow<const float> out(a.out + at * a.stride, a.width);
    AddWeighed(out, a.weights[at], first, sum[0]);
  }
  if (a.shared != nullptr) {
    const FoursOfRow<const float> shared(a.shared + token * a.stride, a.width);
    AddWeighed(shared, a.shared_weights[token], first, sum[0]);
  }
  x.Store(first, sum[0]);
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
