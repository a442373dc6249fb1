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

// 16 lanes store each head of each token: the heads of q, of k and of v.
template <typename T>
__global__ void StoreHeadsKernel(StoreHeadsArgs a) {
  const int heads = a.num_heads + 2 * a.num_kv_heads;
  const RowOfThread at(static_cast<int64_t>(a.num_tokens) * heads);
  const int64_t token = at.exists ? at.row / heads : 0;
  const int head = static_cast<int>(at.row % heads);
  const int kv_head = head < a.num_heads ? -1 : (head - a.num_heads) % a.num_kv_heads;
  const bool is_v = head >= a.num_heads + a.num_kv_heads;
  const float* x = a.qkv + (token * heads + head) * a.head_dim;
  const float* norm = is_v ? nullptr : kv_head < 0 ? a.q_norm : a.k_norm;
  const int end = at.exists ? a.head_dim : 0;
  float sum = 0.0f;
  for (int i = at.lane; i < end; i += kRowLanes) sum = fmaf(x[i], x[i], sum);
  const float mean = SumOfRowLanes(sum) / static_cast<float>(a.head_dim);
  const float scale = 1.0f / sqrtf(mean + a.eps);
  if (!at.exists) return;
  const auto normed = [&](int i) { return norm == nullptr ? x[i] : (x[i] * scale) * norm[i]; };
  const int half = is_v || a.cos == nullptr ? 0 : a.rotary_dim / 2;
  const int position = a.positions[token], slot = position % kKvBlockTokens;
  const float* cos = a.cos + static_cast<int64_t>(position) * half;
  const float* sin = a.sin + static_cast<int64_t>(position) * half;
  T* out = nullptr;
  int64_t v = 0;  // offset of V
  int padded = 0;
  if (kv_head < 0) {
    out = static_cast<T*>(a.q) + token * a.ldq + head * a.head_dim;
  } else {
    out = reinterpret_cast<T*>(HeadOfBlock(a.kv, a.blocks[token], kv_head));
    v = a.kv.head_bytes / 2 / static_cast<int>(sizeof(T));
    padded = static_cast<int>(v / kKvBlockTokens);
  }
  for (int i = at.lane; i < a.head_dim; i += kRowLanes) {
    float value = normed(i);
    if (i < half) {
      value = value * cos[i] - normed(i + half) * sin[i];
    } else if (i < 2 * half) {
      value = value * cos[i - half] + normed(i - half) * sin[i - half];
    }
    Round(value, out + (kv_head < 0 ? i
                        : is_v      ? v + IndexInV<T>(slot, i)
                                    : IndexInK<T>(slot, i, padded)));
  }
  if (kv_head < 0 || is_v) return;
  // Products read K up to its padded width, so the padding must be zeros.
  for (int i = a.head_dim + at.lane; i < padded; i += kRowLanes) {
    Round(0.0f, out + IndexInK<T>(slot, i, padded));
  }
}

// Grid: copies, KV heads, layers.
template <typename T>
__global__ void CopySlotsKernel(CopySlotsArgs a) {
  const SlotCopy copy = a.copies[blockIdx.x];
  KvPointers kv = a.kv;
  kv.pool += blockIdx.z * a.layer_bytes;
  const int head = static_cast<int>(blockIdx.y), padded = a.head_dim_padded;
  const T* from = reinterpret_cast<const T*>(HeadOfBlock(kv, copy.from, head));
  T* to = reinterpret_cast<T*>(HeadOfBlock(kv, copy.to, head));
  const int v = kKvBlockTokens * padded;  // offset of V
  for (int i = static_cast<int>(threadIdx.x); i < copy.slots * padded; i += kRowThreads) {
    const int64_t in_k = IndexInK<T>(i / padded, i % padded, padded);
    const int64_t in_v = v + IndexInV<T>(i / padded, i % padded);
    to[in_k] = from[in_k];
    to[in_v] = from[in_v];
  }
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
