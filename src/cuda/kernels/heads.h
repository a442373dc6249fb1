#pragma once

// Kernels that fill KV memory. The order in a block is that of KvLayout on the CPU, so that blocks
// can be exchanged: a word of 32 bits holds adjacent elements of K, or adjacent keys of V.

#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/math.h"
#include "cuda/kernels/rows.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

// The address of K of head `head` in block `block`. V follows K.
__device__ __forceinline__ uint8_t* HeadOfBlock(const KvPointers& kv, int32_t block, int head) {
  uint8_t* memory = kv.pool;
  if (block >= kv.num_pool_blocks) {
    memory = kv.own;
    block -= kv.num_pool_blocks;
  }
  return memory + block * kv.block_bytes + head * kv.head_bytes;
}

// The index of element `d` of key `slot` in K. As in a PackedWeight's panel, keys are the columns
// and d runs along k.
template <typename T>
__device__ __forceinline__ int64_t IndexInK(int slot, int d, int head_dim_padded) {
  return PanelIndex<T>(slot, d, head_dim_padded * static_cast<int>(sizeof(T)) / 4);
}
// The index of element `d` of key `slot` in V. Elements are the columns, and keys run along k.
template <typename T>
__device__ __forceinline__ int64_t IndexInV(int slot, int d) {
  return PanelIndex<T>(d, slot, kKvBlockTokens * static_cast<int>(sizeof(T)) / 4);
}

// Elements of a head that a lane has in flight: lane, lane + 16 and so on. A lane alone waits for
// memory only.
inline constexpr int kHeadElements = 8;
inline constexpr int kHeadStep = kHeadElements * kRowLanes;

__device__ __forceinline__ void LoadOfHead(const float* head, int first, int end,
                                           float (&elements)[kHeadElements]) {
#pragma unroll
  for (int k = 0; k < kHeadElements; ++k) {
    const int i = first + k * kRowLanes;
    elements[k] = i < end ? head[i] : 0.0f;
  }
}

// The cosines or sines of elements [0, 2 half) of a head, whose two halves have the same.
__device__ __forceinline__ void LoadAngles(const float* angles, int first, int half,
                                           float (&elements)[kHeadElements]) {
#pragma unroll
  for (int k = 0; k < kHeadElements; ++k) {
    const int i = first + k * kRowLanes;
    elements[k] = i < 2 * half ? angles[i < half ? i : i - half] : 0.0f;
  }
}

// The normed heads of a block, in which elements find their partners. Two heads lie in other banks.
struct StoreHeadsShared {
  float heads[kRowsPerBlock][kMaxHeadDim + kRowLanes];
};

// Which head a lane stores, and where.
template <typename T>
struct HeadOfLane {
  __device__ __forceinline__ HeadOfLane(const StoreHeadsArgs& a, int64_t row) {
    const int heads = a.num_heads + 2 * a.num_kv_heads;
    // Launches have fewer than 2^31 heads.
    token = static_cast<int>(row) / heads;
    head = static_cast<int>(row) % heads;
    is_q = head < a.num_heads;
    is_v = head >= a.num_heads + a.num_kv_heads;
    norm = is_v ? nullptr : is_q ? a.q_norm : a.k_norm;
    x = a.qkv + row * a.head_dim;
  }

  // Finds the places of the lane's elements, 16 apart.
  __device__ __forceinline__ void Find(const StoreHeadsArgs& a, int position, int32_t block,
                                       int lane) {
    const int slot = position % kKvBlockTokens;
    end = a.head_dim;
    if (is_q) {
      out = static_cast<T*>(a.q) + token * a.ldq + head * a.head_dim + lane;
      step = kRowLanes;
      return;
    }
    const int kv_head = head - a.num_heads - (is_v ? a.num_kv_heads : 0);
    out = reinterpret_cast<T*>(HeadOfBlock(a.kv, block, kv_head));
    const int64_t v = a.kv.head_bytes / 2 / static_cast<int>(sizeof(T));  // offset of V
    const auto padded = static_cast<int>(v / kKvBlockTokens);
    if (is_v) {
      out += v + IndexInV<T>(slot, lane);
      step = static_cast<int>(IndexInV<T>(0, kRowLanes));
    } else {
      out += IndexInK<T>(slot, lane, padded);
      step = static_cast<int>(IndexInK<T>(0, kRowLanes, padded));
      end = padded;  // products read K up to its padded width, so the padding must be zeros
    }
  }

  int token, head;
  bool is_q, is_v;
  const float* norm;
  const float* x;
  T* out = nullptr;
  int step = 0;  // from an element of the lane to the next
  int end = 0;   // of the elements to store
};

// 16 lanes store each head of each token: the heads of q, of k and of v.
template <typename T>
__global__ void StoreHeadsKernel(StoreHeadsArgs a) {
  LetNextKernelStart();
  const RowOfThread at(static_cast<int64_t>(a.num_tokens) * (a.num_heads + 2 * a.num_kv_heads));
  float(&shared)[kMaxHeadDim + kRowLanes] =
      SharedMemory<StoreHeadsShared>().heads[threadIdx.x / kRowLanes];
  HeadOfLane<T> head(a, at.exists ? at.row : 0);
  const int end = at.exists ? a.head_dim : 0;
  const int half = head.is_v || a.cos == nullptr ? 0 : a.rotary_dim / 2;
  const bool norms = head.norm != nullptr;
  float gain[kHeadElements], x[kHeadElements], cos[kHeadElements], sin[kHeadElements];
  // All but x is there before the pass's first kernel.
  const int position = a.positions[head.token];
  const int32_t block = a.blocks[head.token];
  const int64_t angle = static_cast<int64_t>(a.rope_positions[head.token]) * half;
  const float* all_cos = a.cos + angle;
  const float* all_sin = a.sin + angle;
  LoadOfHead(head.norm, at.lane, norms ? end : 0, gain);
  LoadAngles(all_cos, at.lane, half, cos);
  LoadAngles(all_sin, at.lane, half, sin);
  WaitForPreviousKernel();
  LoadOfHead(head.x, at.lane, end, x);
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < kHeadElements; ++k) {
    if (at.lane + k * kRowLanes < end) sum = fmaf(x[k], x[k], sum);
  }
  for (int i = at.lane + kHeadStep; i < end; i += kRowLanes) sum = fmaf(head.x[i], head.x[i], sum);
  const float mean = SumOfRowLanes(sum) / static_cast<float>(a.head_dim);
  const float scale = 1.0f / sqrtf(mean + a.eps);
#pragma unroll 1
  for (int first = at.lane; first < end; first += kHeadStep) {
    if (first >= kHeadStep) {
      LoadOfHead(head.norm, first, norms ? end : 0, gain);
      LoadOfHead(head.x, first, end, x);
    }
#pragma unroll
    for (int k = 0; k < kHeadElements; ++k) {
      const int i = first + k * kRowLanes;
      if (i < end) shared[i] = norms ? (x[k] * scale) * gain[k] : x[k];
    }
  }
  __syncthreads();
  if (!at.exists) return;
  head.Find(a, position, block, at.lane);
#pragma unroll 1
  for (int first = at.lane; first < head.end; first += kHeadStep) {
    if (first >= kHeadStep) {
      LoadAngles(all_cos, first, half, cos);
      LoadAngles(all_sin, first, half, sin);
    }
#pragma unroll
    for (int k = 0; k < kHeadElements; ++k) {
      const int i = first + k * kRowLanes;
      if (i >= head.end) break;
      float value = i < end ? shared[i] : 0.0f;
      if (i < half) {
        value = value * cos[k] - shared[i + half] * sin[k];
      } else if (i < 2 * half) {
        value = value * cos[k] + shared[i - half] * sin[k];
      }
      Round(value, head.out);
      head.out += head.step;
    }
  }
}

// Four words of 32 bits in a row of a KV block's panel.
using KvChunk = Four<uint32_t>;

// The chunks of a KV block that hold its first slots. A row of K has the same word of 16 keys; a
// row of V has a word of keys for each of 16 elements.
template <typename T>
struct SlotChunks {
  static constexpr int kPerWord = 4 / static_cast<int>(sizeof(T));
  static constexpr int kRowChunks = 16 / 4;

  __device__ __forceinline__ SlotChunks(int head_dim_padded, int num_slots)
      : k_rows_of_panel(head_dim_padded / kPerWord),
        k_chunks(kKvBlockTokens / 16 * k_rows_of_panel * kRowChunks),
        all(2 * k_chunks),
        slots(num_slots) {}

  // The number of the chunk's words that hold slots alone, from its first on.
  __device__ __forceinline__ int WholeWords(int chunk) const {
    if (chunk >= k_chunks) return FirstKey(chunk) + kPerWord <= slots ? 4 : 0;
    const int left = slots - FirstKey(chunk);
    return left < 0 ? 0 : left < 4 ? left : 4;
  }
  // Whether the lower half of each word is a slot's, and the other half is not.
  __device__ __forceinline__ bool HasHalfWords(int chunk) const {
    return chunk >= k_chunks && FirstKey(chunk) + 1 == slots && kPerWord == 2;
  }

  int k_rows_of_panel;
  int k_chunks, all;
  int slots;

 private:
  __device__ __forceinline__ int FirstKey(int chunk) const {
    const int row = chunk / kRowChunks;
    if (chunk < k_chunks) return row / k_rows_of_panel * 16 + chunk % kRowChunks * 4;
    return row % (kKvBlockTokens / kPerWord) * kPerWord;
  }
};

// Grid: copies, KV heads, layers.
template <typename T>
__global__ void CopySlotsKernel(CopySlotsArgs a) {
  constexpr int kCopies = 4;  // in flight
  LetNextKernelStart();
  WaitForPreviousKernel();
  const SlotCopy copy = a.copies[blockIdx.x];
  KvPointers kv = a.kv;
  kv.pool += blockIdx.z * a.layer_bytes;
  const int head = static_cast<int>(blockIdx.y);
  const auto* from = reinterpret_cast<const KvChunk*>(HeadOfBlock(kv, copy.from, head));
  auto* to = reinterpret_cast<KvChunk*>(HeadOfBlock(kv, copy.to, head));
  const SlotChunks<T> chunks(a.head_dim_padded, copy.slots);
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < chunks.all; i += kCopies * kRowThreads) {
    KvChunk loaded[kCopies] = {};
#pragma unroll
    for (int k = 0; k < kCopies; ++k) {
      const int at = i + k * kRowThreads;
      if (at < chunks.all) loaded[k] = from[at];
    }
#pragma unroll
    for (int k = 0; k < kCopies; ++k) {
      const int at = i + k * kRowThreads;
      if (at >= chunks.all) continue;
      const int whole = chunks.WholeWords(at);
      if (whole == 4) {
        to[at] = loaded[k];
        continue;
      }
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        if (w < whole) to[at].of[w] = loaded[k].of[w];
        if (chunks.HasHalfWords(at)) {
          __builtin_memcpy(&to[at].of[w], &loaded[k].of[w], sizeof(uint16_t));
        }
      }
    }
  }
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
