#pragma once

// The products of a step of attention, and the weights between them.

#include <cmath>
#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/attention/attention_rows.h"
#include "cuda/kernels/attention/attention_steps.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/math.h"
#include "cuda/kernels/products.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

// Adds 8 words of the head to the scores of kPanels panels of keys, which begin at `k`.
template <typename T, int kPanels, int kChunks>
__device__ __forceinline__ void AddChunk(const QueryWords<T, kChunks>& q,
                                         const PanelColumns& columns, const uint32_t* k,
                                         int head_words, int chunk,
                                         float (&scores)[2 * kPanels][4]) {
  uint32_t a[4];
  q.Read(chunk, a);
#pragma unroll
  for (int panel = 0; panel < kPanels; ++panel) {
    uint32_t first[2], second[2];
    columns.Read(k + (panel * head_words + chunk * kMmaWords) * kPanelWidth, first, second);
    Product<T>::Add(scores[2 * panel], a, first);
    Product<T>::Add(scores[2 * panel + 1], a, second);
  }
}

// Adds a part of the head to scores: kHalf = 0 the first half of its words, 1 the second, -1 all.
template <int kHalf, typename T, int kPanels, int kChunks>
__device__ __forceinline__ void AddChunks(const QueryWords<T, kChunks>& q,
                                          const PanelColumns& columns, const uint32_t* k,
                                          int head_words, float (&scores)[2 * kPanels][4]) {
  if constexpr (kChunks > 0) {
    constexpr int kBegin = kHalf == 1 ? kChunks / 2 : 0, kEnd = kHalf == 0 ? kChunks / 2 : kChunks;
#pragma unroll
    for (int chunk = kBegin; chunk < kEnd; ++chunk) {
      AddChunk<T, kPanels>(q, columns, k, head_words, chunk, scores);
    }
  } else {
    const int chunks = head_words / kMmaWords;  // an even number
    const int end = kHalf == 0 ? chunks / 2 : chunks;
#pragma unroll 1
    for (int chunk = kHalf == 1 ? chunks / 2 : 0; chunk < end; ++chunk) {
      AddChunk<T, kPanels>(q, columns, k, head_words, chunk, scores);
    }
  }
}

// Adds to the scores of the first kBlocks KV blocks of a step.
template <int kBlocks, typename T, class Shape>
__device__ __forceinline__ void AddScores(const StepStages<T, Shape>& steps,
                                          const QueryWords<T, Shape::kChunks>& q,
                                          const PanelColumns& columns, int stage,
                                          float (&scores)[kKeyTiles][4]) {
  constexpr int kPanels = kBlocks * kKvBlockTokens / kPanelWidth;
  auto& of_blocks = reinterpret_cast<float(&)[2 * kPanels][4]>(scores);
  AddChunks<-1, T, kPanels>(q, columns, steps.K(stage), steps.shape().head_words, of_blocks);
}

// Adds RelativeTerms to scores of adjacent keys.
template <typename T, int kTiles>
__device__ __forceinline__ void AddTerms(const AttentionArgs& a, const QueryRows<T>& rows,
                                         int first_key, const Lane& lane,
                                         float (&scores)[kTiles][4]) {
  const RelativeTerms& relative = a.relative;
  if (relative.rows == nullptr) return;
  const int head = static_cast<int>(blockIdx.x);
  const auto terms_of = [&](int of_head, int token) {
    const int64_t row = static_cast<int64_t>(of_head) * relative.num_tokens + token;
    return relative.terms + row * relative.num_rows;
  };
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float* const of_query = terms_of(head, rows.in_batch[i]);
    const int32_t* const row_of_key0 =
        relative.rows + rows.in_batch[i] - rows.origin + relative.num_positions - 1;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int key = first_key + tile * 8 + lane.quad * 2 + c;
        if (key >= rows.keys[i]) continue;
        const int at = row_of_key0[-key];
        float& score = scores[tile][2 * i + c];
        score = score + (of_query[at] + terms_of(a.num_heads + head, rows.origin + key)[at]);
      }
    }
  }
}

// Adds DistanceTerms to scores of adjacent keys.
template <typename T, int kTiles>
__device__ __forceinline__ void AddDistanceTerms(const AttentionArgs& a, const QueryRows<T>& rows,
                                                 int first_key, const Lane& lane,
                                                 float (&scores)[kTiles][4]) {
  const DistanceTerms& distances = a.distances;
  const float* const of_head =
      distances.terms + static_cast<int64_t>(blockIdx.x) * distances.stride;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int position = rows.in_batch[i] - rows.origin;
    const float* const of_key0 = of_head + distances.num_positions - 1 - position;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int key = first_key + tile * 8 + lane.quad * 2 + c;
        float& score = scores[tile][2 * i + c];
        if (key < rows.keys[i]) score = score + of_key0[key];
      }
    }
  }
}

// Scales scores of adjacent keys from `first_key` on, and caps them in kernels that do so. Those
// that a row does not see become -inf.
template <AttentionKind kKind, typename T, int kTiles>
__device__ __forceinline__ void ScaleScores(const AttentionArgs& a, const QueryRows<T>& rows,
                                            int first_key, bool all_visible, const Lane& lane,
                                            float (&scores)[kTiles][4]) {
  if constexpr (kKind == AttentionKind::kCapped) {
    const float factor = a.scale / a.soft_cap;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int c = 0; c < 4; ++c) scores[tile][c] = SoftCap(scores[tile][c], factor, a.soft_cap);
    }
  } else {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int c = 0; c < 4; ++c) scores[tile][c] = scores[tile][c] * a.scale;
    }
  }
  if (all_visible) return;
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int key = first_key + tile * 8 + lane.quad * 2 + c % 2;
      const bool visible = key >= rows.first[c / 2] && key < rows.keys[c / 2];
      scores[tile][c] = visible ? scores[tile][c] : kMinusInfinity;
    }
  }
}

// Makes the scores of keys that a row does not see -inf, where AttentionArgs::visible says so.
// `first_key` is a multiple of 16.
template <typename T, int kTiles>
__device__ __forceinline__ void HideKeys(const AttentionArgs& a, const QueryRows<T>& rows,
                                         int first_key, const Lane& lane,
                                         float (&scores)[kTiles][4]) {
  if (a.visible == nullptr) return;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t* const words =
        a.visible + static_cast<int64_t>(rows.in_batch[i]) * a.visible_words;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const int key = first_key + tile * 8;
      const uint32_t bits = words[key / 32] >> (key % 32 + lane.quad * 2);
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float& score = scores[tile][2 * i + c];
        score = (bits >> c & 1u) != 0 ? score : kMinusInfinity;
      }
    }
  }
}

// Makes scores of adjacent keys from products. Kernels for heads of any width know hidden keys, and
// the plain ones of them know terms.
template <class Shape, typename T, int kTiles>
__device__ __forceinline__ void FinishScores(const AttentionArgs& a, const QueryRows<T>& rows,
                                             int first_key, bool all_visible, const Lane& lane,
                                             float (&scores)[kTiles][4]) {
  constexpr bool kAnyWidth = Shape::kChunks == 0;
  if constexpr (kAnyWidth && Shape::kKind == AttentionKind::kPlain) {
    AddTerms(a, rows, first_key, lane, scores);
  }
  if constexpr (Shape::kKind == AttentionKind::kBiased) {
    AddDistanceTerms(a, rows, first_key, lane, scores);
  }
  ScaleScores<Shape::kKind>(a, rows, first_key, all_visible, lane, scores);
  if constexpr (kAnyWidth) HideKeys(a, rows, first_key, lane, scores);
}

__device__ __forceinline__ float MaxOfQuad(float max) {
  max = fmaxf(max, __shfl_xor_sync(kAllLanes, max, 1));
  return fmaxf(max, __shfl_xor_sync(kAllLanes, max, 2));
}

// Rounds two adjacent weights.
__device__ __forceinline__ void RoundPair(float*, float*, float) {}
__device__ __forceinline__ void RoundPair(float* low, float* high, Bf16) {
  const uint32_t word = RoundPairToBf16(*low, *high);
  *low = __uint_as_float(word << 16);
  *high = __uint_as_float(word & 0xffff0000u);
}

// Turns the scores of the lane's row i into weights e^(score - max).
template <int kTiles>
__device__ __forceinline__ void ComputeWeights(int i, float max, float (&scores)[kTiles][4]) {
  const float finite = FiniteMax(max);
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    float &low = scores[tile][2 * i], &high = scores[tile][2 * i + 1];
    low = ExpOfNegative(low - finite);
    high = ExpOfNegative(high - finite);
  }
}

template <typename T, int kTiles>
__device__ __forceinline__ void RoundWeights(int i, float (&weights)[kTiles][4]) {
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    RoundPair(&weights[tile][2 * i], &weights[tile][2 * i + 1], T{});
  }
}

// Turns the scaled scores of a step into weights that are not rounded yet, and gives the new
// maxima. Both rows go through each part together, so that one hides the latency of the other.
template <int kTiles>
__device__ __forceinline__ void ComputeStepWeights(const WalkState<kTiles>& state,
                                                   float (&scores)[kKeyTiles][4], float (&max)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) max[i] = state.max[i];
#pragma unroll
  for (int c = 0; c < 4 * kKeyTiles; ++c) {
    max[c / 2 % 2] = fmaxf(max[c / 2 % 2], scores[c / 4][c % 4]);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) max[i] = MaxOfQuad(max[i]);
#pragma unroll
  for (int i = 0; i < 2; ++i) ComputeWeights(i, max[i], scores);
}

// The first half of a step's weights: all but their rounding.
template <typename T, int kTiles>
__device__ __forceinline__ void BeginWeights(const AttentionArgs& a, const QueryRows<T>& rows,
                                             int step, bool all_visible, const Lane& lane,
                                             const WalkState<kTiles>& state,
                                             float (&scores)[kKeyTiles][4], float (&max)[2]) {
  ScaleScores<AttentionKind::kPlain>(a, rows, step, all_visible, lane, scores);
  ComputeStepWeights(state, scores, max);
}

// The second half: rounds the weights, and rescales the state to the new maxima.
template <typename T, int kTiles>
__device__ __forceinline__ void EndWeights(const float (&max)[2], float (&weights)[kKeyTiles][4],
                                           WalkState<kTiles>& state) {
#pragma unroll
  for (int i = 0; i < 2; ++i) RoundWeights<T>(i, weights);
  float lanes[2][4] = {};  // sums over keys that are equal modulo 16
#pragma unroll
  for (int c = 0; c < 4 * kKeyTiles; ++c) {
    lanes[c / 4 % 2][c % 4] = lanes[c / 4 % 2][c % 4] + weights[c / 4][c % 4];
  }
  float sums[4];
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    float sum = lanes[0][c] + lanes[1][c];
    sum = sum + __shfl_xor_sync(kAllLanes, sum, 2);
    sums[c] = sum + __shfl_xor_sync(kAllLanes, sum, 1);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float factor = state.NewMax(i, max[i]);
    state.sum[i] = fmaf(state.sum[i], factor, sums[2 * i] + sums[2 * i + 1]);
    state.Rescale(i, factor);
  }
}

// Turns the scores of a step into weights, rounded to T, and rescales the state to the new maximum.
template <typename T, int kTiles>
__device__ __forceinline__ void Weigh(const AttentionArgs& a, const QueryRows<T>& rows, int step,
                                      bool all_visible, const Lane& lane,
                                      float (&scores)[kKeyTiles][4], WalkState<kTiles>& state) {
  float max[2];
  BeginWeights(a, rows, step, all_visible, lane, state, scores, max);
  EndWeights<T>(max, scores, state);
}

// The same in kernels for heads of any width.
template <class Shape, typename T, int kTiles>
__device__ __forceinline__ void WeighVisible(const AttentionArgs& a, const QueryRows<T>& rows,
                                             int step, bool all_visible, const Lane& lane,
                                             float (&scores)[kKeyTiles][4],
                                             WalkState<kTiles>& state) {
  float max[2];
  FinishScores<Shape>(a, rows, step, all_visible, lane, scores);
  ComputeStepWeights(state, scores, max);
  EndWeights<T>(max, scores, state);
}

__device__ __forceinline__ uint32_t PairWord(float low, float high) {
  return __float_as_uint(low) >> 16 | (__float_as_uint(high) & 0xffff0000u);
}

// The weights of a step that a warp has in the places of its scores.
template <typename T>
struct RegisterWeights {
  // The lane's weights for 8 words of keys, as an operand of the product with V.
  __device__ __forceinline__ void Read(int product, uint32_t (&a)[4]) const {
    Read(product, a, T{});
  }
  __device__ __forceinline__ void Read(int product, uint32_t (&a)[4], Bf16) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float* pair = &scores[2 * product + i / 2][i % 2 * 2];
      a[i] = PairWord(pair[0], pair[1]);
    }
  }
  // In f32, a lane has the weights of keys 2 quad and 2 quad + 1, and needs those of keys quad and
  // quad + 4.
  __device__ __forceinline__ void Read(int product, uint32_t (&a)[4], float) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int from = lane.group * 4 + lane.quad / 2 + i / 2 * 2;
      const float* pair = &scores[product][i % 2 * 2];
      const float even = __shfl_sync(kAllLanes, pair[0], from);
      const float odd = __shfl_sync(kAllLanes, pair[1], from);
      a[i] = __float_as_uint(lane.quad % 2 == 0 ? even : odd);
    }
  }

  const float (&scores)[kKeyTiles][4];
  const Lane& lane;
};

// Adds weights · V of the first kBlocks KV blocks of a step, for kPanels panels of V from
// `first_panel` on. Keys that a row does not see have the weight 0.
template <int kPanels, int kBlocks, typename T, class Shape, class Weights>
__device__ __forceinline__ void AddValues(const StepStages<T, Shape>& steps, const Weights& weights,
                                          const PanelColumns& columns, int stage, int first_panel,
                                          WalkState<2 * kPanels>& state) {
  constexpr int kProducts = kBlocks * Shape::kKeyWords / kMmaWords;
  const int panels = steps.panels();
  const uint32_t* const v = steps.V(stage);
#pragma unroll
  for (int product = 0; product < kProducts; ++product) {
    const int block = product * kMmaWords / Shape::kKeyWords;
    const int word = product * kMmaWords % Shape::kKeyWords;
    uint32_t a[4];
    weights.Read(product, a);
#pragma unroll
    for (int i = 0; i < kPanels; ++i) {
      const int panel = first_panel + i;
      if (Shape::kChunks == 0 && panel >= panels) break;
      uint32_t first[2], second[2];
      columns.Read(v + ((block * panels + panel) * Shape::kKeyWords + word) * kPanelWidth, first,
                   second);
      Product<T>::Add(state.values[2 * i], a, first);
      Product<T>::Add(state.values[2 * i + 1], a, second);
    }
  }
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
