#pragma once

// StoreHeadsKernel for many tokens of bf16, in heads of whole 16s. It has the same results. A warp
// takes one head of 8 tokens that follow each other. Four lanes have a token: lane l of them holds
// the elements 4 l to 4 l + 3 of each 16. So both halves of a rotated pair are in the same lane,
// the sums of the 16 lanes of a row are four sums of each lane, and stores fill whole sectors.

#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/heads.h"
#include "cuda/kernels/math.h"
#include "cuda/kernels/rows.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

// A launch of fewer tokens has too few warps. Those of a decode would write single keys, too.
inline constexpr int kManyHeadTokens = 65;
inline constexpr int kHeadsPerBlock = kRowThreads / 32;  // a warp for each
inline constexpr int kLanesOfToken = 4;
inline constexpr int kTokensOfWarp = 32 / kLanesOfToken;

// The token of a lane, and its key's place.
struct TokenOfLane {
  __device__ __forceinline__ explicit TokenOfLane(const StoreHeadsArgs& a)
      : quad(static_cast<int>(threadIdx.x) % kLanesOfToken) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int first = static_cast<int>(blockIdx.y) * kTokensOfWarp;
    token = first + lane / kLanesOfToken;
    exists = token < a.num_tokens;
    if (!exists) token = a.num_tokens - 1;
    position = a.positions[token];
    block = a.blocks[token];
  }

  int quad;
  int token;
  bool exists;  // false: the lane repeats the last token, and stores nothing
  int position;
  int32_t block;
};

// The elements of a lane: four of each 16.
template <int kHeadDim>
struct HeadPart {
  static constexpr int kParts = kHeadDim / 16;

  __device__ __forceinline__ void Load(const float* head, int quad) {
#pragma unroll
    for (int g = 0; g < kParts; ++g) fours[g] = FourAt(head, g, quad);
  }
  static __device__ __forceinline__ Four<float> FourAt(const float* head, int g, int quad) {
    return *reinterpret_cast<const Four<float>*>(head + 16 * g + 4 * quad);
  }

  // The sum of squares of a token's lanes. It has the order of 16 lanes with an element of each 16.
  __device__ __forceinline__ float SumOfSquares() const {
    float sums[4] = {};
#pragma unroll
    for (int g = 0; g < kParts; ++g) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[e] = fmaf(fours[g].of[e], fours[g].of[e], sums[e]);
    }
#pragma unroll
    for (int distance = kLanesOfToken / 2; distance > 0; distance /= 2) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        sums[e] = sums[e] + __shfl_xor_sync(kAllLanes, sums[e], distance);
      }
    }
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
  }

  __device__ __forceinline__ void Norm(const float* norm, float eps, int quad) {
    const float mean = SumOfSquares() / static_cast<float>(kHeadDim);
    const float scale = 1.0f / sqrtf(mean + eps);
#pragma unroll
    for (int g = 0; g < kParts; ++g) {
      const Four<float> gain = FourAt(norm, g, quad);
#pragma unroll
      for (int e = 0; e < 4; ++e) fours[g].of[e] = (fours[g].of[e] * scale) * gain.of[e];
    }
  }

  // Rotates all elements of the head.
  __device__ __forceinline__ void Rotate(const float* all_cos, const float* all_sin, int quad) {
#pragma unroll
    for (int g = 0; g < kParts / 2; ++g) {
      const Four<float> cos = FourAt(all_cos, g, quad), sin = FourAt(all_sin, g, quad);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float &low = fours[g].of[e], &high = fours[g + kParts / 2].of[e];
        const float rotated = low * cos.of[e] - high * sin.of[e];
        high = high * cos.of[e] + low * sin.of[e];
        low = rotated;
      }
    }
  }

  // Elements 2 i and 2 i + 1 of the four of part g as a word of bf16.
  __device__ __forceinline__ uint32_t Word(int g, int i) const {
    return RoundPairToBf16(fours[g].of[2 * i], fours[g].of[2 * i + 1]);
  }

  Four<float> fours[kParts];
};

struct alignas(8) TwoWords {
  uint32_t of[2];
};

template <int kHeadDim>
__device__ __forceinline__ void StoreQuery(const HeadPart<kHeadDim>& part, Bf16* head, int quad) {
#pragma unroll
  for (int g = 0; g < part.kParts; ++g) {
    const TwoWords words = {{part.Word(g, 0), part.Word(g, 1)}};
    *reinterpret_cast<TwoWords*>(head + 16 * g + 4 * quad) = words;
  }
}

// The lanes of adjacent slots write adjacent words.
template <int kHeadDim>
__device__ __forceinline__ void StoreKey(const HeadPart<kHeadDim>& part, Bf16* keys, int slot,
                                         int quad) {
  auto* words = reinterpret_cast<uint32_t*>(keys + IndexInK<Bf16>(slot, 4 * quad, kHeadDim));
#pragma unroll
  for (int g = 0; g < part.kParts; ++g) {
#pragma unroll
    for (int i = 0; i < 2; ++i) words[(8 * g + i) * 16] = part.Word(g, i);
  }
}

// A word of V has two keys. If the warp has both, their lanes exchange halves: of each two parts,
// the lane of the even slot writes the words of the first, and that of the odd slot those of the
// second. Otherwise the other half of the word belongs to a key that is not in the warp.
template <int kHeadDim>
__device__ __forceinline__ void StoreValue(const HeadPart<kHeadDim>& part, Bf16* values,
                                           const TokenOfLane& at) {
  static_assert(HeadPart<kHeadDim>::kParts % 2 == 0);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int slot = at.position % kKvBlockTokens;
  const bool odd = slot % 2 != 0;
  const int other = odd ? lane - kLanesOfToken : lane + kLanesOfToken;
  const int position = __shfl_sync(kAllLanes, at.position, other & 31);
  const int32_t block = __shfl_sync(kAllLanes, at.block, other & 31);
  const bool other_exists = __shfl_sync(kAllLanes, at.exists ? 1 : 0, other & 31) != 0;
  const bool has_both = other == (other & 31) && at.exists && other_exists && block == at.block &&
                        position == (at.position ^ 1);
  Bf16* row = values + IndexInV<Bf16>(slot, 4 * at.quad);
  constexpr int kPart = kKvBlockTokens * 16;  // from a part to the next
  Bf16* both = odd ? row - 1 + kPart : row;   // the words that the lane writes for both
#pragma unroll
  for (int g = 0; g < part.kParts; g += 2) {
    uint32_t words[2][2], low[2], high[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      words[0][i] = part.Word(g, i);
      words[1][i] = part.Word(g + 1, i);
      const uint32_t mine = odd ? words[1][i] : words[0][i];
      const uint32_t theirs = __shfl_sync(kAllLanes, odd ? words[0][i] : words[1][i], other & 31);
      low[i] = odd ? theirs : mine;
      high[i] = odd ? mine : theirs;
    }
    if (has_both) {
      Four<uint32_t> pairs;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        pairs.of[2 * i] = (low[i] & 0xffffu) | high[i] << 16;
        pairs.of[2 * i + 1] = low[i] >> 16 | (high[i] & 0xffff0000u);
      }
      *reinterpret_cast<Four<uint32_t>*>(both + g * kPart) = pairs;
    } else if (at.exists) {
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        row[(g + k / 4) * kPart + k % 4 * 2].bits =
            static_cast<uint16_t>(words[k / 4][k % 4 / 2] >> 16 * (k % 2));
      }
    }
  }
}

// Grid: four heads, 8 tokens.
template <int kHeadDim>
__global__ void __launch_bounds__(kRowThreads, 6) StoreManyHeadsKernel(StoreHeadsArgs a) {
  LetNextKernelStart();
  const TokenOfLane at(a);
  const int heads = a.num_heads + 2 * a.num_kv_heads;
  const int head =
      static_cast<int>(blockIdx.x) * kHeadsPerBlock + static_cast<int>(threadIdx.x) / 32;
  WaitForPreviousKernel();  // all but qkv is there before the pass's first kernel
  if (head >= heads) return;
  HeadPart<kHeadDim> part;
  part.Load(a.qkv + (static_cast<int64_t>(at.token) * heads + head) * kHeadDim, at.quad);
  const bool is_q = head < a.num_heads;
  const int kv_head = head - a.num_heads;
  if (kv_head >= a.num_kv_heads) {
    uint8_t* keys = HeadOfBlock(a.kv, at.block, kv_head - a.num_kv_heads);
    StoreValue(part, reinterpret_cast<Bf16*>(keys) + kKvBlockTokens * kHeadDim, at);
    return;
  }
  const float* norm = is_q ? a.q_norm : a.k_norm;
  if (norm != nullptr) part.Norm(norm, a.eps, at.quad);
  if (a.cos != nullptr) {
    const int64_t angles = static_cast<int64_t>(a.rope_positions[at.token]) * (kHeadDim / 2);
    part.Rotate(a.cos + angles, a.sin + angles, at.quad);
  }
  if (!at.exists) return;
  if (is_q) {
    StoreQuery(part, static_cast<Bf16*>(a.q) + at.token * a.ldq + head * kHeadDim, at.quad);
  } else {
    auto* keys = reinterpret_cast<Bf16*>(HeadOfBlock(a.kv, at.block, kv_head));
    StoreKey(part, keys, at.position % kKvBlockTokens, at.quad);
  }
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
