#pragma once

// The candidates of one draw, by ascending id, in the shared memory of a block. CandidateSet is the
// same on the processor, with the same results: the order of all sums is part of their definition
// (docs/numerics.md, "Draws").

#include <cstdint>

#include "cuda/kernels/dialect.h"
#include "cuda/kernels/draws/draw_args.h"
#include "cuda/kernels/draws/weigh_groups.h"
#include "cuda/kernels/math.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

// Integers in the order of the numbers. -0 becomes +0.
__device__ __forceinline__ uint32_t KeyOf(float value) {
  const uint32_t bits = __float_as_uint(value + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ float NumberOf(uint32_t key) {
  return __uint_as_float((key & 0x80000000u) != 0 ? key & 0x7fffffffu : ~key);
}

inline constexpr int kDigitBits = 11;
struct DrawShared {
  double sums[kMaxCandidates];   // of the values so far, of groups so far, or of buckets
  float values[kMaxCandidates];  // logits, then weights
  int32_t ids[kMaxCandidates];
  int32_t groups[kMaxCandidates];  // that hold candidates
  double sums_of_warps[kDrawWarps];
  int32_t counts_of_warps[kDrawWarps];
  uint32_t occupied[(1 << kDigitBits) / 32];  // a bit for each bucket with candidates
  uint32_t digit;
  double number;  // thread 0's, for all
};
static_assert(1 << kDigitBits <= kMaxCandidates);

// All threads of the block call all functions, with the same arguments but for `flag`.
struct Candidates {
  __device__ __forceinline__ explicit Candidates(DrawShared& memory)
      : shared(memory),
        thread(static_cast<int>(threadIdx.x)),
        lane(thread % 32),
        warp(thread / 32) {}

  // The sum of `count` over the warps before this one; *all becomes that of all warps.
  __device__ __forceinline__ int CountBefore(int count, int* all) {
    __syncthreads();  // the counts of the last call have been read
    if (lane == 0) shared.counts_of_warps[warp] = count;
    __syncthreads();
    int before = 0;
    *all = 0;
#pragma unroll
    for (int i = 0; i < kDrawWarps; ++i) {
      const int of_warp = shared.counts_of_warps[i];
      if (i < warp) before += of_warp;
      *all += of_warp;
    }
    return before;
  }
  __device__ __forceinline__ int LanesBefore(uint32_t votes) const {
    return __popc(votes & ((1u << lane) - 1u));
  }
  // The threads before this one whose flag is set; *all becomes the number of all.
  __device__ __forceinline__ int RankOf(bool flag, int* all) {
    const uint32_t votes = __ballot_sync(kAllLanes, flag);
    return CountBefore(__popc(votes), all) + LanesBefore(votes);
  }

  // How many i in [0, n) `holds` is true for.
  template <typename Holds>
  __device__ __forceinline__ int CountOf(int n, const Holds& holds) {
    int count = 0, all = 0;
    for (int first = 0; first < n; first += kDrawThreads) {
      const int i = first + thread;
      count += __popc(__ballot_sync(kAllLanes, i < n && holds(i)));
    }
    CountBefore(count, &all);
    return all;
  }
  // The k-th largest of key(0), ..., key(n - 1), bit by bit. REQUIRES: 1 <= k <= n.
  template <typename Key>
  __device__ __forceinline__ uint32_t LargestKey(int n, int k, const Key& key) {
    uint32_t largest = 0;
#pragma unroll 1
    for (int bit = 31; bit >= 0; --bit) {
      const uint32_t trial = largest | 1u << bit;
      if (CountOf(n, [&](int i) { return key(i) >= trial; }) >= k) largest = trial;
    }
    return largest;
  }

  // Keeps the candidates whose key is above `cut`, and the first `num_equal` whose key is `cut`.
  // Returns their number. REQUIRES: a barrier behind the last change of the candidates.
  __device__ __forceinline__ int Keep(int n, uint32_t cut, int num_equal) {
    int num_kept = 0;
#pragma unroll 1
    for (int first = 0; first < n; first += kDrawThreads) {
      const int i = first + thread;
      const bool exists = i < n;
      const float value = exists ? shared.values[i] : 0.0f;
      const int id = exists ? shared.ids[i] : 0;
      const uint32_t key = KeyOf(value);
      const bool equal = exists && key == cut;
      int all_equal, all_kept;
      const int rank = RankOf(equal, &all_equal);
      const bool keeps = (exists && key > cut) || (equal && rank < num_equal);
      num_equal -= all_equal;
      // The barriers of this rank lie between the reads above and the writes below, which are never
      // ahead of what the next round reads.
      const int to = num_kept + RankOf(keeps, &all_kept);
      if (keeps) {
        shared.values[to] = value;
        shared.ids[to] = id;
      }
      num_kept += all_kept;
    }
    __syncthreads();
    return num_kept;
  }
  // Keeps the k largest. REQUIRES: 1 <= k <= n.
  __device__ __forceinline__ int KeepLargest(int n, int k) {
    const auto key = [&](int i) { return KeyOf(shared.values[i]); };
    const uint32_t cut = LargestKey(n, k, key);
    const int above = CountOf(n, [&](int i) { return key(i) > cut; });
    return Keep(n, cut, k - above);
  }
  // Keeps the fewest that sum to `mass`. REQUIRES: n >= 1, values >= +0.
  __device__ __forceinline__ int KeepMass(int n, double mass) {
    uint32_t cut = FindDigit(n, 0, 21, kDigitBits, &mass) << 21;
    cut |= FindDigit(n, cut, 10, kDigitBits, &mass) << 10;
    cut |= FindDigit(n, cut, 0, 10, &mass);
    const double value = NumberOf(cut);
    int num_equal = n;
    if (mass < kAllMass && value > 0.0) {
      const double needed = mass / value;  // about as many as there are, at most
      num_equal = static_cast<int>(needed);
      if (static_cast<double>(num_equal) < needed) ++num_equal;
      num_equal = num_equal > 1 ? num_equal : 1;
    }
    return Keep(n, cut, num_equal);
  }

  // Makes shared.sums from the values, by ascending id. Returns the sum of all. REQUIRES: n >= 1.
  __device__ __forceinline__ double SumUp(int n) {
    if (thread == 0) {
      double sum = 0.0;
      for (int i = 0; i < n; ++i) {
        sum += shared.values[i];
        shared.sums[i] = sum;
      }
    }
    __syncthreads();
    const double all = shared.sums[n - 1];
    __syncthreads();
    return all;
  }
  // The sum of the values in an order of its own, which is not part of any definition.
  __device__ __forceinline__ double EstimateSum(int n) {
    double sum = 0.0;
    for (int i = thread; i < n; i += kDrawThreads) sum += shared.values[i];
    for (int distance = 16; distance > 0; distance /= 2) {
      sum = sum + __shfl_xor_sync(kAllLanes, sum, distance);
    }
    if (lane == 0) shared.sums_of_warps[warp] = sum;
    __syncthreads();
    sum = 0.0;
#pragma unroll
    for (int i = 0; i < kDrawWarps; ++i) sum += shared.sums_of_warps[i];
    __syncthreads();
    return sum;
  }

  // A mass that is never reached: all candidates are kept.
  static constexpr double kAllMass = __builtin_inf();

  // CandidateSet::FindDigit with a mass alone. A thread owns every kDrawThreads-th bucket, and adds
  // its candidates by ascending id.
  __device__ __forceinline__ uint32_t FindDigit(int n, uint32_t prefix, int shift, int bits,
                                                double* mass) {
    const int num_buckets = 1 << bits;
    for (int digit = thread; digit < num_buckets; digit += kDrawThreads) shared.sums[digit] = -1.0;
#pragma unroll 4
    for (int i = 0; i < n; ++i) {
      const float value = shared.values[i];
      const uint32_t key = KeyOf(value);
      if (shift + bits < 32 && (key ^ prefix) >> (shift + bits) != 0) continue;
      const int digit = static_cast<int>(key >> shift) & (num_buckets - 1);
      if (digit % kDrawThreads != thread) continue;
      const double sum = shared.sums[digit];
      shared.sums[digit] = sum < 0.0 ? value : sum + value;
    }
    for (int first = 0; first < num_buckets; first += kDrawThreads) {
      const uint32_t votes = __ballot_sync(kAllLanes, shared.sums[first + thread] >= 0.0);
      if (lane == 0) shared.occupied[first / 32 + warp] = votes;
    }
    __syncthreads();
    if (thread == 0) WalkDown(num_buckets, *mass);
    __syncthreads();
    *mass = shared.number;
    return shared.digit;
  }
  // Subtracts buckets from the highest on until one of them reaches what is left.
  __device__ __forceinline__ void WalkDown(int num_buckets, double left) {
    int digit = 0;
    bool found = false;
    for (int word = num_buckets / 32 - 1; word >= 0 && !found; --word) {
      uint32_t bits = shared.occupied[word];
      while (bits != 0 && !found) {
        const int bit = 31 - __clz(static_cast<int>(bits));
        bits ^= 1u << bit;
        digit = word * 32 + bit;
        found = shared.sums[digit] >= left;
        if (!found) left -= shared.sums[digit];
      }
    }
    shared.digit = static_cast<uint32_t>(digit);
    shared.number = found ? left : kAllMass;  // only rounding leads to the second
  }

  DrawShared& shared;
  const int thread, lane, warp;
};

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
