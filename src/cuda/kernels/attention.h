#pragma once

// The attention walk of docs/numerics.md, with the rounding and the order of the FMA class. Steps
// are 64 keys at absolute multiples of 64, inside segments of 2,048 keys that are merged left to
// right. One warp computes one segment for 16 query rows of one sequence under one KV head:
//
//   scores: [16 rows, 64 keys] = q · K^T, a sum over the head for each
//   values: [16 rows, head_dim] = values * e^(old maximum - new) + weights · V, in order of keys
//
// One walk serves prefill, decode and cached prefixes: keys and values are always read from blocks.
// In a layer with a window the walk begins at the step of the first key that a row of the tile
// sees.

#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/heads.h"
#include "cuda/kernels/math.h"
#include "cuda/kernels/products.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

inline constexpr int kAttentionWarps = 4;
inline constexpr int kAttentionThreads = 32 * kAttentionWarps;
inline constexpr int kKeyTiles = kKeysPerStep / 8;  // products, of 8 keys each
// Products, of 8 elements of the values each.
inline constexpr int kNarrowTiles = 8, kWideTiles = 16;

// The first key that the token at `position` sees.
__device__ __forceinline__ int FirstKey(const AttentionArgs& a, int position) {
  return a.keys_before < 0 || position < a.keys_before ? 0 : position - a.keys_before;
}

// A lane's two query rows: row group and row group + 8 of the tile.
template <typename T>
struct QueryRows {
  __device__ __forceinline__ QueryRows(const AttentionArgs& a, const AttentionTile& tile,
                                       const Lane& lane) {
    const int group_size = a.num_heads / a.num_kv_heads, kv_head = static_cast<int>(blockIdx.y);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = tile.first_row + lane.group + 8 * i;
      exists[i] = row < tile.num_tokens * group_size;
      const int token = exists[i] ? row / group_size : 0;
      const int head = kv_head * group_size + (exists[i] ? row % group_size : 0);
      keys[i] = exists[i] ? tile.begin + token + 1 : 0;
      first[i] = FirstKey(a, tile.begin + token);
      q[i] = static_cast<const T*>(a.q) + (tile.first_token + token) * a.ldq + head * a.head_dim;
      out[i] = static_cast<T*>(a.out) + (tile.first_token + token) * a.ldo + head * a.head_dim;
    }
    words = a.head_dim * static_cast<int>(sizeof(T)) / 4;
  }

  __device__ __forceinline__ uint32_t Word(int i, int word) const {
    return exists[i] && word < words ? reinterpret_cast<const uint32_t*>(q[i])[word] : 0u;
  }

  bool exists[2];
  int keys[2];   // the end of the keys that the row sees: behind its own position
  int first[2];  // the first of them
  const T* q[2];
  T* out[2];
  int words;  // words of a head
};

// The sums of a lane's two rows: e^max * sum and e^max * values. values[t] has, for both rows,
// elements 8 t + 2 quad and 8 t + 2 quad + 1 of the warp's part of the head.
template <int kTiles>
struct WalkState {
  float max[2] = {kMinusInfinity, kMinusInfinity};
  float sum[2] = {0.0f, 0.0f};
  float values[kTiles][4] = {};
};

// The blocks of one step. Each address is the sum of one that depends on the lane and of constants
// that the compiler knows.
template <typename T>
struct StepBlocks {
  static constexpr int kPerWord = 4 / sizeof(T);
  static constexpr int kKeyWords = kKvBlockTokens / kPerWord;  // of a block, along its keys

  __device__ __forceinline__ StepBlocks(const AttentionArgs& a, const int32_t* table, int step,
                                        int end)
      : head_words(a.head_dim_padded / kPerWord) {
#pragma unroll
    for (int i = 0; i < kKeysPerStep / kKvBlockTokens; ++i) {
      const int key = step + i * kKvBlockTokens;
      blocks[i] = key >= end
                      ? nullptr
                      : reinterpret_cast<const uint32_t*>(HeadOfBlock(
                            a.kv, table[key / kKvBlockTokens], static_cast<int>(blockIdx.y)));
    }
  }

  // The 32-bit word number `word` of K, for the key with index `8 * tile + column` in the step.
  __device__ __forceinline__ uint32_t K(int tile, int word, int column) const {
    const int in_block = tile % (kKvBlockTokens / 8);
    return blocks[tile * 8 / kKvBlockTokens]
                 [(in_block / 2 * head_words + word) * 16 + in_block % 2 * 8 + column];
  }
  // The 32-bit word number `lane.quad + more` of the keys that belong to `product`, for the element
  // of V with index `8 * tile + lane.group` in the head.
  __device__ __forceinline__ uint32_t V(int product, int more, int tile, const Lane& lane) const {
    const uint32_t* v = blocks[product * kMmaWords / kKeyWords] + kKvBlockTokens * head_words +
                        lane.quad * 16 + lane.group;
    const int word = product * kMmaWords % kKeyWords + more;
    return v[(tile / 2 * kKeyWords + word) * 16 + tile % 2 * 8];
  }

  const uint32_t* blocks[kKeysPerStep / kKvBlockTokens];
  int head_words;
};

template <typename T>
__device__ __forceinline__ void Scores(const StepBlocks<T>& blocks, const QueryRows<T>& rows,
                                       int num_tiles, const Lane& lane,
                                       float (&scores)[kKeyTiles][4]) {
#pragma unroll 1
  for (int first = 0; first < blocks.head_words; first += kMmaWords) {
    const int word = first + lane.quad;
    const uint32_t a[4] = {rows.Word(0, word), rows.Word(1, word), rows.Word(0, word + 4),
                           rows.Word(1, word + 4)};
#pragma unroll
    for (int tile = 0; tile < kKeyTiles; ++tile) {
      if (tile >= num_tiles) break;
      const uint32_t b[2] = {blocks.K(tile, word, lane.group),
                             blocks.K(tile, word + 4, lane.group)};
      Product<T>::Add(scores[tile], a, b);
    }
  }
}

// Turns the scores of a step into weights, rounded to T, and rescales the state to the new maximum.
template <typename T, int kTiles>
__device__ __forceinline__ void Weigh(const AttentionArgs& a, const QueryRows<T>& rows, int step,
                                      const Lane& lane, float (&scores)[kKeyTiles][4],
                                      WalkState<kTiles>& state) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float max = state.max[i];
#pragma unroll
    for (int c = 0; c < 2 * kKeyTiles; ++c) {
      float& score = scores[c / 2][2 * i + c % 2];
      const int key = step + c / 2 * 8 + lane.quad * 2 + c % 2;
      const bool visible = key >= rows.first[i] && key < rows.keys[i];
      score = visible ? score * a.scale : kMinusInfinity;
      max = score > max ? score : max;
    }
#pragma unroll
    for (int distance = 1; distance <= 2; distance *= 2) {
      const float other = __shfl_xor_sync(kAllLanes, max, distance);
      max = other > max ? other : max;
    }
    float lanes[2][2] = {};  // sums over keys that are equal modulo 16
#pragma unroll
    for (int c = 0; c < 2 * kKeyTiles; ++c) {
      float& score = scores[c / 2][2 * i + c % 2];
      T weight;
      Round(score == kMinusInfinity ? 0.0f : Exp(score - max), &weight);
      score = Widen(weight);
      float& sum = lanes[c / 2 % 2][c % 2];
      sum = sum + score;
    }
    float sums[2];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      float sum = lanes[0][c] + lanes[1][c];
      sum = sum + __shfl_xor_sync(kAllLanes, sum, 2);
      sums[c] = sum + __shfl_xor_sync(kAllLanes, sum, 1);
    }
    // Before its first visible key a row has the maximum -inf.
    const float factor = state.max[i] == max ? 1.0f : Exp(state.max[i] - max);
    state.max[i] = max;
    state.sum[i] = fmaf(state.sum[i], factor, sums[0] + sums[1]);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      state.values[tile][2 * i] = state.values[tile][2 * i] * factor;
      state.values[tile][2 * i + 1] = state.values[tile][2 * i + 1] * factor;
    }
  }
}

// The lane's weights for 8 words of keys, as an operand of the product with V.
__device__ __forceinline__ void WeightWords(const float (&weights)[kKeyTiles][4], int product,
                                            const Lane&, Bf16, uint32_t (&a)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float* pair = &weights[2 * product + i / 2][i % 2 * 2];
    a[i] = __float_as_uint(pair[0]) >> 16 | (__float_as_uint(pair[1]) & 0xffff0000u);
  }
}
// In f32, a lane has the weights of keys 2 quad and 2 quad + 1, and needs those of keys quad and
// quad + 4.
__device__ __forceinline__ void WeightWords(const float (&weights)[kKeyTiles][4], int product,
                                            const Lane& lane, float, uint32_t (&a)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int from = lane.group * 4 + lane.quad / 2 + i / 2 * 2;
    const float* pair = &weights[product][i % 2 * 2];
    const float even = __shfl_sync(kAllLanes, pair[0], from);
    const float odd = __shfl_sync(kAllLanes, pair[1], from);
    a[i] = __float_as_uint(lane.quad % 2 == 0 ? even : odd);
  }
}

// A mask of the keys before `end` in the word of keys that begins with `key`. It is needed because
// stale values may not be zeros.
__device__ __forceinline__ uint32_t MaskOfKeys(int key, int end, Bf16) {
  return key + 1 < end ? 0xffffffffu : key < end ? 0xffffu : 0u;
}
__device__ __forceinline__ uint32_t MaskOfKeys(int key, int end, float) {
  return key < end ? 0xffffffffu : 0u;
}

template <typename T, int kTiles>
__device__ __forceinline__ void AddValues(const AttentionArgs& a, const StepBlocks<T>& blocks,
                                          const float (&weights)[kKeyTiles][4], int part, int step,
                                          int end, const Lane& lane, WalkState<kTiles>& state) {
  constexpr int kPerWord = 4 / sizeof(T);
  constexpr int kProducts = kKeysPerStep / kPerWord / kMmaWords;
#pragma unroll
  for (int product = 0; product < kProducts; ++product) {
    if (step + product * kMmaWords * kPerWord >= end) break;
    uint32_t words[4];
    WeightWords(weights, product, lane, T{}, words);
    const int word = product * kMmaWords + lane.quad;
    const uint32_t low = MaskOfKeys(step + word * kPerWord, end, T{});
    const uint32_t high = MaskOfKeys(step + (word + 4) * kPerWord, end, T{});
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const int of_head = part * kTiles + tile;
      if (of_head * 8 >= a.head_dim_padded) break;
      const uint32_t b[2] = {blocks.V(product, 0, of_head, lane) & low,
                             blocks.V(product, 4, of_head, lane) & high};
      Product<T>::Add(state.values[tile], words, b);
    }
  }
}

// The address of a row's partial sums of a segment.
__device__ __forceinline__ float* PartialOf(const AttentionArgs& a, int segment, int tile,
                                            int kv_head, int row) {
  const int64_t tile_index =
      (static_cast<int64_t>(segment) * a.num_tiles + tile) * a.num_kv_heads + kv_head;
  return a.partial + (tile_index * kAttentionRows + row) * (2 + a.head_dim);
}

template <typename T, int kTiles>
__device__ __forceinline__ void WriteRows(const AttentionArgs& a, const QueryRows<T>& rows,
                                          int tile_index, int segment, int part, const Lane& lane,
                                          const WalkState<kTiles>& state) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (rows.keys[i] <= segment * kKeysPerSegment) continue;  // nothing of it is in the segment
    if (rows.first[i] >= (segment + 1) * kKeysPerSegment) continue;
    float* partial = nullptr;
    if (a.num_segments > 1) {
      partial = PartialOf(a, segment, tile_index, static_cast<int>(blockIdx.y), lane.group + 8 * i);
      partial[0] = state.max[i];
      partial[1] = state.sum[i];
    }
    const float inverse = 1.0f / state.sum[i];
#pragma unroll
    for (int c = 0; c < 2 * kTiles; ++c) {
      const int d = (part * kTiles + c / 2) * 8 + lane.quad * 2 + c % 2;
      if (d >= a.head_dim) continue;
      const float value = state.values[c / 2][2 * i + c % 2];
      if (partial != nullptr) {
        partial[2 + d] = value;
      } else {
        Round((value + 0.0f) * inverse, rows.out[i] + d);  // up to here a zero may have either sign
      }
    }
  }
}

// Grid: tiles / kAttentionWarps, KV heads, segments x parts. A part is 8 * kTiles elements of the
// values. Wider heads would need more registers than there are; they have several parts, and each
// part computes the weights of the keys again.
template <typename T, int kTiles>
__global__ void __launch_bounds__(kAttentionThreads, 1) AttentionKernel(AttentionArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  const Lane lane;
  const int parts = (a.head_dim_padded + 8 * kTiles - 1) / (8 * kTiles);
  const int part = static_cast<int>(blockIdx.z) % parts;
  const int segment = static_cast<int>(blockIdx.z) / parts;
  const int tile_index =
      static_cast<int>(blockIdx.x) * kAttentionWarps + static_cast<int>(threadIdx.x) / 32;
  if (tile_index >= a.num_tiles) return;
  const AttentionTile tile = a.tiles[tile_index];
  const int group_size = a.num_heads / a.num_kv_heads;
  const int last_row = tile.first_row + kAttentionRows - 1;
  const int last_token =
      last_row < tile.num_tokens * group_size ? last_row / group_size : tile.num_tokens - 1;
  // The keys that any row sees in this segment, from the step of the first.
  int begin = segment * kKeysPerSegment;
  int end = tile.begin + last_token + 1;
  end = end < begin + kKeysPerSegment ? end : begin + kKeysPerSegment;
  const int first = FirstKey(a, tile.begin + tile.first_row / group_size);
  begin = begin < first ? first / kKeysPerStep * kKeysPerStep : begin;
  if (begin >= end) return;
  const QueryRows<T> rows(a, tile, lane);
  WalkState<kTiles> state;
  for (int step = begin; step < end; step += kKeysPerStep) {
    const StepBlocks<T> blocks(a, a.tables + tile.table, step, end);
    float scores[kKeyTiles][4] = {};
    Scores(blocks, rows, (end - step + 7) / 8, lane, scores);
    Weigh(a, rows, step, lane, scores, state);
    AddValues(a, blocks, scores, part, step, end, lane, state);
  }
  WriteRows(a, rows, tile_index, segment, part, lane, state);
}

// Merges the segments of each row, left to right. 16 lanes compute each row of each tile and KV
// head.
template <typename T>
__global__ void MergeSegmentsKernel(AttentionArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  const RowOfThread at(static_cast<int64_t>(a.num_tiles) * a.num_kv_heads * kAttentionRows);
  if (!at.exists) return;
  const int row = static_cast<int>(at.row % kAttentionRows);
  const int kv_head = static_cast<int>(at.row / kAttentionRows % a.num_kv_heads);
  const int tile_index = static_cast<int>(at.row / kAttentionRows / a.num_kv_heads);
  const AttentionTile tile = a.tiles[tile_index];
  const int group_size = a.num_heads / a.num_kv_heads;
  const int of_sequence = tile.first_row + row;
  if (of_sequence >= tile.num_tokens * group_size) return;
  const int token = of_sequence / group_size;
  const int segments = (tile.begin + token) / kKeysPerSegment + 1;
  const int first = FirstKey(a, tile.begin + token) / kKeysPerSegment;
  T* out = static_cast<T*>(a.out) + (tile.first_token + token) * a.ldo +
           (kv_head * group_size + of_sequence % group_size) * a.head_dim;
  for (int d = at.lane; d < a.head_dim; d += kRowLanes) {
    const float* part = PartialOf(a, first, tile_index, kv_head, row);
    float max = part[0], sum = part[1], value = part[2 + d];
    for (int segment = first + 1; segment < segments; ++segment) {
      part = PartialOf(a, segment, tile_index, kv_head, row);
      const float new_max = part[0] > max ? part[0] : max;
      const float factor = Exp(max - new_max), part_factor = Exp(part[0] - new_max);
      max = new_max;
      sum = fmaf(sum, factor, part[1] * part_factor);
      value = fmaf(value, factor, part[2 + d] * part_factor);
    }
    Round((value + 0.0f) * (1.0f / sum), out + d);
  }
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
