#pragma once

#include <cstddef>
#include <cstdint>

namespace skein::ablation {

// An alternative to the engine's way, to measure the cost of that: AVX-512 with bf16 dot products
// in place of the matrix unit. Nothing here is part of the engine.

// out[16 * num_panels] = w · a for one row a [k_padded] of bf16 and panels in PackedWeight's order,
// one behind the other. Four sums over k for each output, added at the end: k is split.
void OneRowProduct(const uint16_t* a, const std::byte* panels, int32_t num_panels, int32_t k_padded,
                   float* out);

inline constexpr int32_t kHeadDim = 128;
inline constexpr int32_t kGroup = 2;       // query heads of a KV head
inline constexpr int32_t kGroupKeys = 16;  // keys that are weighed together

// The softmax state of kGroup query heads over some keys of one sequence.
struct WalkState {
  alignas(64) float acc[kGroup][kHeadDim];
  float max[kGroup];
  float sum[kGroup];
};

// The keys of one sequence under one KV head, in KvLayout's order for bf16 and kHeadDim.
struct Walked {
  const uint16_t* q = nullptr;    // [kGroup, kHeadDim]
  const std::byte* kv = nullptr;  // the head's part of block 0
  size_t block_stride = 0;
  const int32_t* block_table = nullptr;
  int32_t num_keys = 0;
  float scale2 = 0;  // scale * log2(e)
};

// Walks keys [16 * first, 16 * last), as far as there are any, into `*state`, which begins anew.
void Walk(const Walked& walked, int32_t first, int32_t last, WalkState* state);

// `*total` takes on the keys of `part`.
void Merge(const WalkState& part, WalkState* total);

// out[kGroup, kHeadDim] in bf16.
void Finish(const WalkState& state, uint16_t* out);

}  // namespace skein::ablation
