#include "kernels/kv_layout.h"

#include <span>

#include "base/check.h"

namespace skein {
namespace {

constexpr size_t kLanes = 16;  // keys of a K group, and d of a V panel

// Both are PackedWeight's panel order for 16 columns.
void StoreF32(float* k_to, float* v_to, int32_t slot, size_t d_padded, std::span<const float> k,
              std::span<const float> v) {
  k_to += slot / kLanes * d_padded * kLanes + slot % kLanes;
  for (size_t d = 0; d < k.size(); ++d) {
    k_to[d * kLanes] = k[d];
    v_to[(d / kLanes * kKvBlockTokens + slot) * kLanes + d % kLanes] = v[d];
  }
}

void StoreBf16(Bf16* k_to, Bf16* v_to, int32_t slot, size_t d_padded, std::span<const float> k,
               std::span<const float> v) {
  k_to += slot / kLanes * d_padded * kLanes + slot % kLanes * 2;
  v_to += slot / 2 * (2 * kLanes) + slot % 2;
  for (size_t d = 0; d < k.size(); ++d) {
    k_to[d / 2 * (2 * kLanes) + d % 2] = ToBf16(k[d]);
    v_to[d / kLanes * kKvBlockTokens * kLanes + d % kLanes * 2] = ToBf16(v[d]);
  }
}

}  // namespace

void KvLayout::Store(std::byte* base, int32_t slot, const float* k, const float* v) const {
  SKEIN_CHECK(slot >= 0 && slot < kKvBlockTokens);
  SKEIN_CHECK(dtype == DType::kF32 || dtype == DType::kBf16);
  const size_t d_padded = head_dim_padded();
  const std::span k_row(k, head_dim), v_row(v, head_dim);
  std::byte* v_base = base + k_bytes();
  if (dtype == DType::kF32) {
    StoreF32(reinterpret_cast<float*>(base), reinterpret_cast<float*>(v_base), slot, d_padded,
             k_row, v_row);
  } else {
    StoreBf16(reinterpret_cast<Bf16*>(base), reinterpret_cast<Bf16*>(v_base), slot, d_padded, k_row,
              v_row);
  }
}

}  // namespace skein
