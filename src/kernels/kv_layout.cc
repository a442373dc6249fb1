#include "kernels/kv_layout.h"

#include <algorithm>
#include <cstring>
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

// Of `num_rows` rows of `stride` elements, copies the first `count` elements.
template <typename T>
void CopyRows(const std::byte* from, std::byte* to, size_t num_rows, size_t stride, size_t count) {
  if (count == 0) return;
  for (size_t row = 0; row < num_rows; ++row) {
    std::memcpy(to + row * stride * sizeof(T), from + row * stride * sizeof(T), count * sizeof(T));
  }
}

// `keys_per_cell`: keys whose elements lie side by side (2 in bf16, 1 in f32).
template <typename T, size_t keys_per_cell>
void CopySlotsOf(const std::byte* from, std::byte* to, size_t d_padded, size_t num_slots) {
  // K: a group of 16 keys is d / keys_per_cell rows of 16 keys.
  constexpr size_t kRow = kLanes * keys_per_cell;
  const size_t group_rows = d_padded / keys_per_cell;
  for (size_t key = 0; key < num_slots; key += kLanes) {
    const size_t at = key * d_padded * sizeof(T);
    CopyRows<T>(from + at, to + at, group_rows, kRow,
                std::min(num_slots - key, kLanes) * keys_per_cell);
  }
  // V: a panel of 16 dimensions is 32 / keys_per_cell rows, each of keys_per_cell keys.
  from += kKvBlockTokens * d_padded * sizeof(T);
  to += kKvBlockTokens * d_padded * sizeof(T);
  const size_t whole = num_slots / keys_per_cell * keys_per_cell;
  CopyRows<T>(from, to, d_padded / kLanes, kKvBlockTokens * kLanes, whole * kLanes);
  if (whole == num_slots) return;
  const auto* from_keys = reinterpret_cast<const T*>(from) + whole * kLanes;
  auto* to_keys = reinterpret_cast<T*>(to) + whole * kLanes;
  for (size_t panel = 0; panel < d_padded / kLanes; ++panel) {
    const size_t at = panel * kKvBlockTokens * kLanes;
    for (size_t d = 0; d < kLanes; ++d) {
      to_keys[at + d * keys_per_cell] = from_keys[at + d * keys_per_cell];
    }
  }
}

}  // namespace

void KvLayout::CopySlots(const std::byte* from, std::byte* to, int32_t num_slots) const {
  SKEIN_CHECK(num_slots >= 0 && num_slots <= kKvBlockTokens);
  SKEIN_CHECK(dtype == DType::kF32 || dtype == DType::kBf16);
  if (dtype == DType::kF32) {
    CopySlotsOf<float, 1>(from, to, head_dim_padded(), num_slots);
  } else {
    CopySlotsOf<Bf16, 2>(from, to, head_dim_padded(), num_slots);
  }
}

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
