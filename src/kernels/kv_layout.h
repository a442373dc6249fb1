#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace skein {

inline constexpr int32_t kKvBlockTokens = 32;     // tokens of a KV block
inline constexpr int32_t kKeysPerStep = 64;       // keys of one step of the attention walk
inline constexpr int32_t kKeysPerAmxStep = 256;   // the number for the AMX and BF16 classes
inline constexpr int32_t kKeysPerSegment = 2048;  // keys of one segment of the online softmax
inline constexpr int32_t kMaxQueryRows = 64;      // query rows of one attention tile
// Bounds a tile's scratch memory, which is on the stack.
inline constexpr int32_t kMaxHeadDim = 256;

// The layout of K and V of one (layer, KV head, block) is the order in which the attention kernels
// read them. With d = head_dim padded to a multiple of 32, a block of 32 keys holds
//
//   bf16: K [2 groups of 16 keys][d / 2][16 keys][2]   then V [d / 16][16 key pairs][16 of d][2]
//   f32:  K [2 groups of 16 keys][d][16 keys]          then V [d / 16][32 keys][16 of d]
//   int8: K 2 groups of 16 keys: values [d / 4][16 keys][4], then scales [d / 32][16 keys] f32
//         then V values [d / 16][8 quads of keys][16 of d][4], then scales [32 keys] f32
//
// K and V have the panel order of PackedWeight: K with keys as columns, V with dimensions as
// columns. In int8, a byte holds value + 128; each 32 dimensions of a key have a scale, and each
// value vector has one. The whole memory is [layer][block][KV head][K, V]. A contiguous memory is
// [layer][KV head][block][K, V]: consecutive blocks of a head are adjacent, so that a sequence with
// consecutive blocks has its keys and values in one piece.
struct KvLayout {
  // The bytes of a group of 16 keys in int8, for each dimension: a byte for each key, and the part
  // of its scale.
  static constexpr int32_t kInt8GroupBytesOfDim = 16 + 16 * int32_t{sizeof(float)} / 32;

  DType dtype = DType::kF32;  // kF32, kBf16 or kInt8
  int32_t num_layers = 0;
  int32_t num_blocks = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  bool contiguous = false;

  int32_t head_dim_padded() const { return (head_dim + 31) / 32 * 32; }
  size_t k_bytes() const {
    if (dtype == DType::kInt8) return size_t{2 * kInt8GroupBytesOfDim} * head_dim_padded();
    return size_t{kKvBlockTokens} * head_dim_padded() * SizeOf(dtype);
  }
  size_t v_bytes() const {
    if (dtype == DType::kInt8) return kKvBlockTokens * (head_dim_padded() + sizeof(float));
    return k_bytes();
  }
  size_t head_bytes() const { return k_bytes() + v_bytes(); }
  size_t block_bytes() const { return num_kv_heads * head_bytes(); }  // of one layer
  size_t layer_bytes() const { return num_blocks * block_bytes(); }
  size_t total_bytes() const { return num_layers * layer_bytes(); }

  // The distance in bytes of a head's parts in adjacent blocks, and that of adjacent heads in one
  // block.
  size_t block_stride() const { return contiguous ? head_bytes() : block_bytes(); }
  size_t head_stride() const { return contiguous ? num_blocks * head_bytes() : head_bytes(); }

  // The byte offset of K of (layer, block, head); V is k_bytes() behind it.
  size_t Offset(int32_t layer, int32_t block, int32_t head) const {
    return layer * layer_bytes() + block * block_stride() + head * head_stride();
  }
  // StoreK writes the k of one token, StoreV its v, [head_dim] in dtype, to `slot` in [0, 32) of
  // the block and head at `base`. Threads may store to different slots of a block at the same time.
  // Not for int8.
  void StoreK(std::byte* base, int32_t slot, const void* k) const;
  void StoreV(std::byte* base, int32_t slot, const void* v) const;
  // The same for int8: k [head_dim_padded] with scales [head_dim_padded / 32], v [head_dim] with
  // its scale.
  void StoreInt8K(std::byte* base, int32_t slot, const int8_t* k, const float* scales) const;
  void StoreInt8V(std::byte* base, int32_t slot, const int8_t* v, float scale) const;
  // The inverse of StoreK: k [head_dim] in dtype. Not for int8.
  void LoadK(const std::byte* base, int32_t slot, void* k) const;
  // Copies slots [0, num_slots) of one (layer, block, head) from `from` to `to`. The other slots of
  // `to` stay as they are. `from` and `to` must not overlap.
  void CopySlots(const std::byte* from, std::byte* to, int32_t num_slots) const;
};

}  // namespace skein
