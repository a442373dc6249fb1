#pragma once

// The second kernel of random draws: one block for each row draws its token, as Sampler does on the
// processor, with the same result. A bound first selects the tokens that the cut-offs may keep. If
// these are more than kMaxCandidates, the row is left to the host.

#include <cstdint>

#include "cuda/kernels/dialect.h"
#include "cuda/kernels/draws/candidates.h"
#include "cuda/kernels/draws/draw_args.h"
#include "cuda/kernels/draws/weigh_groups.h"
#include "cuda/kernels/math.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

struct DrawOfRow {
  // The token; -1: the host has to draw it.
  __device__ __forceinline__ int Token() {
    const uint64_t bits = static_cast<uint64_t>(draw.random_high) << 32 | draw.random_low;
    const double random = static_cast<double>(bits) * 0x1p-53;
    int n;
    double total = 0.0;
    if (draw.top_k > 0) {
      n = TakeLargest();
    } else {
      total = SumUpGroups();
      if (draw.top_p >= 1.0f && draw.min_p <= 0.0f) return TokenOfAll(random, total);
      n = TakeLikely(total);
    }
    if (n > kMaxCandidates) return -1;
    if (draw.top_p < 1.0f) {
      if (draw.top_k > 0) total = set.SumUp(n);
      n = set.KeepMass(n, static_cast<double>(draw.top_p) * total);
    }
    if (draw.min_p > 0.0f) n = set.Keep(n, KeyOf(draw.min_p), n);
    const double target = random * set.SumUp(n);
    return set.shared.ids[set.CountOf(n, [&](int i) { return set.shared.sums[i] <= target; })];
  }

  // The candidates become the elements that are at least `floor`. Returns their number; any number
  // above kMaxCandidates: there are more. REQUIRES: floor is finite.
  __device__ __forceinline__ int Take(float floor) {
    int num_listed = 0, all;
#pragma unroll 1
    for (int first = 0; first < num_groups; first += kDrawThreads) {
      const int group = first + set.thread;
      const bool holds = group < num_groups && best[group] >= floor;
      const int rank = set.RankOf(holds, &all);
      if (num_listed + all > kMaxCandidates) return kMaxCandidates + 1;
      if (holds) set.shared.groups[num_listed + rank] = group;
      num_listed += all;
    }
    __syncthreads();
    int n = 0;
#pragma unroll 1
    for (int first = 0; first < num_listed; first += kDrawWarps) {
      const bool exists = first + set.warp < num_listed;
      n = TakeOfGroups(exists ? set.shared.groups[first + set.warp] : -1, floor, n);
      if (n > kMaxCandidates) return n;
    }
    __syncthreads();
    return n;
  }
  // Adds the candidates of one group for each warp, behind `n` others. group: of the warp; -1:
  // none.
  __device__ __forceinline__ int TakeOfGroups(int group, float floor, int n) {
    constexpr int kOfLane = kDrawGroup / 32;
    DrawShared& shared = set.shared;
    const int first = group * kDrawGroup + set.lane;
    float x[kOfLane];
    uint32_t votes[kOfLane];
    int count = 0, all;
#pragma unroll
    for (int i = 0; i < kOfLane; ++i) {
      const int id = first + 32 * i;
      x[i] = group >= 0 && id < vocab ? logits[id] : kMinusInfinity;
    }
#pragma unroll
    for (int i = 0; i < kOfLane; ++i) {
      if (draw.top_k == 0) x[i] = WeightOf(x[i], max, draw.temperature);
      votes[i] = __ballot_sync(kAllLanes, group >= 0 && x[i] >= floor);
      count += __popc(votes[i]);
    }
    int at = n + set.CountBefore(count, &all);
    if (n + all > kMaxCandidates) return n + all;
#pragma unroll
    for (int i = 0; i < kOfLane; ++i) {
      if ((votes[i] >> set.lane & 1u) != 0) {
        const int to = at + set.LanesBefore(votes[i]);
        shared.values[to] = x[i];
        shared.ids[to] = first + 32 * i;
      }
      at += __popc(votes[i]);
    }
    return n + all;
  }

  // The candidates become the top_k largest logits, as weights.
  __device__ __forceinline__ int TakeLargest() {
    float floor = -0x1.fffffep+127f;  // the weight of -inf is 0, so it is never drawn
    if (draw.top_k <= num_groups) {
      // top_k groups hold a logit as large as this.
      const uint32_t key =
          set.LargestKey(num_groups, draw.top_k, [&](int i) { return KeyOf(best[i]); });
      floor = NumberOf(key) > floor ? NumberOf(key) : floor;
    }
    int n = Take(floor);
    if (n > kMaxCandidates) return n;
    if (draw.top_k < n) n = set.KeepLargest(n, draw.top_k);
    for (int i = set.thread; i < n; i += kDrawThreads) {
      set.shared.values[i] = WeightOf(set.shared.values[i], max, draw.temperature);
    }
    __syncthreads();
    return n;
  }
  // The candidates become those that top_p or min_p may keep: Sampler::TakeLikely.
  __device__ __forceinline__ int TakeLikely(double total) {
    if (draw.top_p >= 1.0f) return Take(draw.min_p);
    const double rest = (1.0 - static_cast<double>(draw.top_p)) * total;
    // The margin exceeds the rounding of sums in any order.
    const double enough = static_cast<double>(draw.top_p) * total * (1.0 + 0x1p-30);
    const double last = 2.0 * static_cast<double>(vocab);
    double parts = last < 256.0 ? last : 256.0;
    while (true) {
      float floor = static_cast<float>(rest / parts);
      floor = floor < 1.0f ? floor : 1.0f;  // the weight of the largest
      const int n = Take(floor);
      if (n > kMaxCandidates || parts == last || set.EstimateSum(n) >= enough) return n;
      parts = 64.0 * parts < last ? 64.0 * parts : last;
    }
  }

  // Makes sums of all groups so far. Returns that of all. It is one chain by definition.
  __device__ __forceinline__ double SumUpGroups() {
    DrawShared& shared = set.shared;
    double sum = 0.0;  // of thread 0
#pragma unroll 1
    for (int first = 0; first < num_groups; first += kMaxCandidates) {
      const int count = num_groups - first < kMaxCandidates ? num_groups - first : kMaxCandidates;
      for (int i = set.thread; i < count; i += kDrawThreads) shared.sums[i] = sums[first + i];
      __syncthreads();
      if (set.thread == 0) {
        for (int i = 0; i < count; ++i) {
          sum += shared.sums[i];
          shared.sums[i] = sum;
        }
        shared.number = sum;
      }
      __syncthreads();
      for (int i = set.thread; i < count; i += kDrawThreads) sums[first + i] = shared.sums[i];
      __syncthreads();
    }
    return shared.number;
  }
  // Sampler::DrawOfAll.
  __device__ __forceinline__ int TokenOfAll(double random, double total) {
    DrawShared& shared = set.shared;
    const double target = random * total;
    const int group = set.CountOf(num_groups, [&](int i) { return sums[i] <= target; });
    const int id = group * kDrawGroup + set.thread;
    shared.values[set.thread] = id < vocab ? WeightOf(logits[id], max, draw.temperature) : 0.0f;
    __syncthreads();
    if (set.thread == 0) {
      double before = group > 0 ? sums[group - 1] : 0.0;
      int token = 0;
      for (int i = 0; i < kDrawGroup && before <= target; ++i) {
        if (shared.values[i] == 0.0f) continue;
        before += shared.values[i];
        token = group * kDrawGroup + i;
      }
      shared.digit = static_cast<uint32_t>(token);
    }
    __syncthreads();
    return static_cast<int>(shared.digit);
  }
  static_assert(kDrawGroup == kDrawThreads);

  Candidates set;
  RowDraw draw;
  float max;            // of the logits
  const float* logits;  // [vocab]
  const float* best;    // [num_groups]
  double* sums;         // [num_groups]
  int vocab, num_groups;
};

// Grid: rows. F: the type of the logits.
template <typename F>
__global__ void __launch_bounds__(kDrawThreads, 1) DrawKernel(DrawArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  const int64_t row = blockIdx.x;
  const RowDraw draw = a.draws[row];
  const RowLargest largest = a.rows[row];
  if (!IsDrawn(draw, largest)) return;
  const int num_groups = NumDrawGroups(a.vocab);
  const F* logits = a.logits + row * a.ldx;
  DrawOfRow of_row = {.set = Candidates(SharedMemory<DrawShared>()),
                      .draw = draw,
                      .max = largest.value,
                      .logits = logits,
                      .best = a.best + row * num_groups,
                      .sums = a.sums + row * num_groups,
                      .vocab = a.vocab,
                      .num_groups = num_groups};
  const int token = of_row.Token();
  if (threadIdx.x != 0) return;
  a.rows[row].index = token < 0 ? 0 : token;
  a.rows[row].left_to_host = token < 0 ? 1 : 0;
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
