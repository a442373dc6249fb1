#pragma once

// The query rows of an attention tile: the keys that they see, their words, and their sums.

#include <cmath>
#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/math.h"
#include "cuda/kernels/products.h"
#include "cuda/kernels/rows.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

// The end of the keys that the token at `position` sees, and the first of them.
__device__ __forceinline__ int EndOfKeys(const AttentionArgs& a, const AttentionTile& tile,
                                         int position) {
  const int end = position + 1 + a.keys_after;
  return end < tile.num_keys ? end : tile.num_keys;
}
__device__ __forceinline__ int FirstKey(const AttentionArgs& a, const AttentionTile& tile,
                                        int position) {
  if (a.keys_before < 0 || position < a.keys_before) return 0;
  const int first = position - a.keys_before;
  return first < tile.num_keys ? first : tile.num_keys - 1;
}

// The kind of a kernel says what it computes beside the walk. Each is compiled apart, so that the
// plain kernels keep their registers.
enum class AttentionKind : uint8_t {
  kPlain,
  kExtended,  // sinks, and walks of shared prefixes
  // For heads of any width alone:
  kCapped,  // the same, and soft caps
  kBiased,  // the same as kExtended, and DistanceTerms
};
// Whether there are kernels of a kind for heads of one width.
constexpr bool IsForCommonWidths(AttentionKind kind) { return kind <= AttentionKind::kExtended; }

// Some rows of a tile's sequence, and the keys of a segment that they see:
//
//   key:   | begin ...    | common_begin ... | common_end ... | end
//          | seen by some | seen by all      | seen by some   |
struct RowRange {
  __device__ __forceinline__ RowRange(const AttentionArgs& a, const AttentionTile& tile, int first,
                                      int most, int segment)
      : first_row(first) {
    const int group_size = a.num_heads / a.num_kv_heads;
    const int behind = tile.num_tokens * group_size - first;
    count = behind < most ? behind : most;
    if (count <= 0) return;
    const int first_position = tile.begin + first / group_size;
    const int last_position = tile.begin + (first + count - 1) / group_size;
    const int of_segment = segment * kKeysPerSegment;
    const int first_key = FirstKey(a, tile, first_position);
    begin = first_key > of_segment ? first_key : of_segment;
    common_begin = FirstKey(a, tile, last_position);
    common_end = EndOfKeys(a, tile, first_position);
    end = EndOfKeys(a, tile, last_position);
    end = end < of_segment + kKeysPerSegment ? end : of_segment + kKeysPerSegment;
  }

  // Leaves out the keys that a walk of a shared prefix has seen.
  template <AttentionKind kKind>
  __device__ __forceinline__ void SkipShared(const AttentionArgs& a, int tile_index) {
    if constexpr (kKind != AttentionKind::kPlain) {
      if (a.shared.of_tiles == nullptr || count <= 0) return;
      const int num_keys = a.shared.of_tiles[tile_index].num_keys;
      if (begin < num_keys) begin = num_keys;
    }
  }

  // Whether any of the rows sees a key of the step that begins with the key `step`; whether each of
  // them sees all keys of it.
  __device__ __forceinline__ bool Sees(int step) const {
    return step < end && step + kKeysPerStep > begin;
  }
  __device__ __forceinline__ bool SeesAll(int step) const {
    return step >= common_begin && step + kKeysPerStep <= common_end;
  }

  int first_row, count;  // count <= 0: there are none
  int begin = 0, common_begin = 0, common_end = 0, end = 0;
};

// The kind as a value of a type.
template <AttentionKind kKind>
struct OfKind {};

// The token with an index in a tile's list of tokens.
template <AttentionKind kKind>
__device__ __forceinline__ int TokenAt(OfKind<kKind>, const AttentionArgs& a, int index) {
  if constexpr (kKind != AttentionKind::kPlain) {
    if (a.tokens != nullptr) return a.tokens[index];
  }
  return index;
}

// A lane's two query rows: row group and row group + 8 of the 16 that begin with `first_row`.
template <typename T>
struct QueryRows {
  template <AttentionKind kKind>
  __device__ __forceinline__ QueryRows(OfKind<kKind> kind, const AttentionArgs& a,
                                       const AttentionTile& tile, int first_row, const Lane& lane) {
    const int group_size = a.num_heads / a.num_kv_heads, kv_head = static_cast<int>(blockIdx.x);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = first_row + lane.group + 8 * i;
      exists[i] = row < tile.num_tokens * group_size;
      const int token = exists[i] ? row / group_size : 0;
      const int head = kv_head * group_size + (exists[i] ? row - token * group_size : 0);
      keys[i] = exists[i] ? EndOfKeys(a, tile, tile.begin + token) : 0;
      first[i] = FirstKey(a, tile, tile.begin + token);
      in_batch[i] = TokenAt(kind, a, tile.first_token + token);
      q[i] = static_cast<const T*>(a.q) + in_batch[i] * a.ldq + head * a.head_dim;
      out[i] = static_cast<T*>(a.out) + in_batch[i] * a.ldo + head * a.head_dim;
    }
    origin = tile.first_token - tile.begin;
    words = a.head_dim * static_cast<int>(sizeof(T)) / 4;
  }

  __device__ __forceinline__ uint32_t Word(int i, int word) const {
    return exists[i] && word < words ? reinterpret_cast<const uint32_t*>(q[i])[word] : 0u;
  }

  bool exists[2];
  int keys[2];      // the end of the keys that the row sees
  int first[2];     // the first of them
  int in_batch[2];  // the index of the row's token
  int origin;       // that of the sequence's first token, if it is in the batch
  const T* q[2];
  T* out[2];
  int words;  // words of a head
};

// The operands of the products with K: in registers where the head has kChunks times 8 words, else
// (kChunks = 0) read again for each product.
template <typename T, int kChunks>
struct QueryWords {
  __device__ __forceinline__ QueryWords(const QueryRows<T>& query_rows, const Lane& query_lane)
      : rows(query_rows), lane(query_lane) {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) ReadMemory(chunk, words[chunk]);
  }

  __device__ __forceinline__ void Read(int chunk, uint32_t (&a)[4]) const {
    if constexpr (kChunks > 0) {
#pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = words[chunk][i];
    } else {
      ReadMemory(chunk, a);
    }
  }
  __device__ __forceinline__ void ReadMemory(int chunk, uint32_t (&a)[4]) const {
    const int word = chunk * kMmaWords + lane.quad;
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i] = rows.Word(i % 2, word + i / 2 * 4);
  }

  const QueryRows<T>& rows;
  const Lane& lane;
  uint32_t words[kChunks > 0 ? kChunks : 1][4];
};

// While the maximum is -inf the row has seen no key, and every weight is 0.
__device__ __forceinline__ float FiniteMax(float max) { return max == kMinusInfinity ? 0.0f : max; }

// The weighted sums of values of a lane's two rows: e^max * values. values[t] has, for both rows,
// elements 8 t + 2 quad and 8 t + 2 quad + 1 of the warp's part of the head.
template <int kTiles>
struct WalkState {
  // The factor of the sums until now, for a new maximum.
  __device__ __forceinline__ float NewMax(int i, float new_max) {
    // Before its first visible key a row has the maximum -inf, and the factor is e^0.
    const float change = max[i] == new_max ? 0.0f : max[i] - new_max;
    max[i] = new_max;
    return ExpOfNegative(change);
  }
  __device__ __forceinline__ void Rescale(int i, float factor) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      values[tile][2 * i] = values[tile][2 * i] * factor;
      values[tile][2 * i + 1] = values[tile][2 * i + 1] * factor;
    }
  }

  float max[2] = {kMinusInfinity, kMinusInfinity};
  float sum[2] = {0.0f, 0.0f};  // e^max * sum
  float values[kTiles][4] = {};
};

// The index of a row's partial sums of a segment, in a launch with tiles of `tile_rows` rows.
__device__ __forceinline__ int64_t PartialIndex(const AttentionArgs& a, int segment, int tile,
                                                int kv_head, int tile_rows, int row) {
  const int64_t tile_index =
      (static_cast<int64_t>(tile) * a.num_segments + segment) * a.num_kv_heads + kv_head;
  return (tile_index * tile_rows + row) * (2 + a.head_dim);
}
__device__ __forceinline__ float* PartialOf(const AttentionArgs& a, int segment, int tile,
                                            int kv_head, int row) {
  return a.partial + PartialIndex(a, segment, tile, kv_head, a.tile_rows, row);
}
// Those of a row in the launch over shared prefixes.
__device__ __forceinline__ const float* SharedPartialOf(const AttentionArgs& a, int segment,
                                                        int kv_head, int row) {
  const int rows = a.shared.tile_rows, tile = row / rows;
  return a.shared.partial + PartialIndex(a, segment, tile, kv_head, rows, row - tile * rows);
}

// Goes on from the walk of a shared prefix, if it ends in the segment. The arguments are those of
// WriteRows.
template <AttentionKind kKind, typename T, int kTiles>
__device__ __forceinline__ void TakeShared(const AttentionArgs& a, const QueryRows<T>& rows,
                                           int tile_index, int row_in_tile, int segment,
                                           int first_element, const Lane& lane,
                                           WalkState<kTiles>& state) {
  if constexpr (kKind != AttentionKind::kPlain) {
    if (a.shared.of_tiles == nullptr) return;
    const SharedPrefix prefix = a.shared.of_tiles[tile_index];
    if (prefix.num_keys <= segment * kKeysPerSegment) return;
    const int first_row = prefix.first_row + a.tiles[tile_index].first_row + row_in_tile;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (!rows.exists[i]) continue;
      const float* const partial =
          SharedPartialOf(a, segment, static_cast<int>(blockIdx.x), first_row + lane.group + 8 * i);
      const int first = first_element + lane.quad * 2;
      state.max[i] = partial[0];
      state.sum[i] = partial[1];
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        if (first + tile * 8 >= a.head_dim) break;
        state.values[tile][2 * i] = partial[2 + first + tile * 8];
        state.values[tile][2 * i + 1] = partial[3 + first + tile * 8];
      }
    }
  }
}

// The query head of a row of a sequence.
__device__ __forceinline__ int HeadOfRow(const AttentionArgs& a, int kv_head, int row) {
  const int group_size = a.num_heads / a.num_kv_heads;
  return kv_head * group_size + row % group_size;
}

// The sum of a row's weights, e^max * sum, with the weight of its head's sink.
__device__ __forceinline__ float WithSink(const AttentionArgs& a, int head, float max, float sum) {
  return sum + Exp(a.sinks[head] - max);
}

// Rounds two elements to T and stores them at an even index.
__device__ __forceinline__ void StorePair(float low, float high, float* out) {
  out[0] = low;
  out[1] = high;
}
__device__ __forceinline__ void StorePair(float low, float high, Bf16* out) {
  *reinterpret_cast<uint32_t*>(out) = RoundPairToBf16(low, high);
}

// Writes what a warp has of its rows: elements of the head from `first_element` on.
template <AttentionKind kKind, typename T, int kTiles>
__device__ __forceinline__ void WriteRows(const AttentionArgs& a, const QueryRows<T>& rows,
                                          int tile_index, int row_in_tile, int segment,
                                          int first_element, const Lane& lane,
                                          const WalkState<kTiles>& state) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (rows.keys[i] <= segment * kKeysPerSegment) continue;  // nothing of it is in the segment
    if (rows.first[i] >= (segment + 1) * kKeysPerSegment) continue;
    const int first = first_element + lane.quad * 2;
    bool writes_partial = a.num_segments > 1;
    if constexpr (kKind != AttentionKind::kPlain) writes_partial |= a.tokens != nullptr;
    if (writes_partial) {
      float* partial = PartialOf(a, segment, tile_index, static_cast<int>(blockIdx.x),
                                 row_in_tile + lane.group + 8 * i);
      partial[0] = state.max[i];
      partial[1] = state.sum[i];
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        if (first + tile * 8 >= a.head_dim) break;
        partial[2 + first + tile * 8] = state.values[tile][2 * i];
        partial[3 + first + tile * 8] = state.values[tile][2 * i + 1];
      }
      continue;
    }
    float sum = state.sum[i];
    if (kKind != AttentionKind::kPlain && a.sinks != nullptr) {
      const int row = a.tiles[tile_index].first_row + row_in_tile + lane.group + 8 * i;
      sum = WithSink(a, HeadOfRow(a, static_cast<int>(blockIdx.x), row), state.max[i], sum);
    }
    const float inverse = 1.0f / sum;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      if (first + tile * 8 >= a.head_dim) break;
      // Up to here a zero may have either sign.
      StorePair((state.values[tile][2 * i] + 0.0f) * inverse,
                (state.values[tile][2 * i + 1] + 0.0f) * inverse, rows.out[i] + first + tile * 8);
    }
  }
}

// Merges the segments of each row, left to right. 16 lanes compute each row of each tile and KV
// head.
template <typename T, AttentionKind kKind>
__global__ void MergeSegmentsKernel(AttentionArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  const RowOfThread at(static_cast<int64_t>(a.num_tiles) * a.num_kv_heads * a.tile_rows);
  if (!at.exists) return;
  const int row = static_cast<int>(at.row % a.tile_rows);
  const int kv_head = static_cast<int>(at.row / a.tile_rows % a.num_kv_heads);
  const int tile_index = static_cast<int>(at.row / a.tile_rows / a.num_kv_heads);
  const AttentionTile tile = a.tiles[tile_index];
  const int group_size = a.num_heads / a.num_kv_heads;
  const int of_sequence = tile.first_row + row;
  if (of_sequence >= tile.num_tokens * group_size) return;
  const int token = of_sequence / group_size;
  const int segments = (EndOfKeys(a, tile, tile.begin + token) - 1) / kKeysPerSegment + 1;
  const int first = FirstKey(a, tile, tile.begin + token) / kKeysPerSegment;
  const int head = HeadOfRow(a, kv_head, of_sequence);
  T* out = static_cast<T*>(a.out) + (tile.first_token + token) * a.ldo + head * a.head_dim;
  SharedPrefix prefix;
  if constexpr (kKind != AttentionKind::kPlain) {
    if (a.shared.of_tiles != nullptr) prefix = a.shared.of_tiles[tile_index];
  }
  const auto part_of = [&](int segment) -> const float* {
    if (kKind != AttentionKind::kPlain && (segment + 1) * kKeysPerSegment <= prefix.num_keys) {
      return SharedPartialOf(a, segment, kv_head, prefix.first_row + of_sequence);
    }
    return PartialOf(a, segment, tile_index, kv_head, row);
  };
  for (int d = at.lane; d < a.head_dim; d += kRowLanes) {
    const float* part = part_of(first);
    float max = part[0], sum = part[1], value = part[2 + d];
    for (int segment = first + 1; segment < segments; ++segment) {
      part = part_of(segment);
      const float new_max = part[0] > max ? part[0] : max;
      // With hidden keys, a row may have seen none up to here.
      const float finite = FiniteMax(new_max);
      const float factor = Exp(max - finite), part_factor = Exp(part[0] - finite);
      max = new_max;
      sum = fmaf(sum, factor, part[1] * part_factor);
      value = fmaf(value, factor, part[2 + d] * part_factor);
    }
    if (kKind != AttentionKind::kPlain && a.sinks != nullptr) {
      sum = WithSink(a, head, max, sum);
    }
    Round((value + 0.0f) * (1.0f / sum), out + d);
  }
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
