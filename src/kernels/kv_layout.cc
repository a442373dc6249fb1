#include "kernels/kv_layout.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace skein {
namespace {

constexpr size_t kLanes = 16;      // keys of a K group, and dimensions of a V panel
constexpr size_t kUnitBytes = 4;   // one f32, or two adjacent bf16
constexpr size_t kLineBytes = 64;  // 16 units

// Stores K, which has PackedWeight's order for 16 columns in both types: units of 4 bytes, one
// cache line apart. If head_dim is odd, the second half of the last unit is kept.
void StoreUnits(std::byte* to, int32_t slot, size_t group_bytes, const std::byte* k,
                size_t k_bytes) {
  to += slot / kLanes * group_bytes + slot % kLanes * kUnitBytes;
  size_t i = 0;
  for (; i + kUnitBytes <= k_bytes; i += kUnitBytes, to += kLineBytes) {
    std::memcpy(to, k + i, kUnitBytes);
  }
  if (i < k_bytes) std::memcpy(to, k + i, k_bytes - i);
}

void StoreVF32(float* to, int32_t slot, const float* v, size_t head_dim) {
  for (size_t d = 0; d < head_dim; ++d) {
    to[(d / kLanes * kKvBlockTokens + slot) * kLanes + d % kLanes] = v[d];
  }
}

void StoreVBf16(Bf16* to, int32_t slot, const Bf16* v, size_t head_dim) {
  to += slot / 2 * (2 * kLanes) + slot % 2;
  size_t d = 0;
  for (; d + kLanes <= head_dim; d += kLanes, to += kKvBlockTokens * kLanes) {
    for (size_t i = 0; i < kLanes; ++i) to[2 * i] = v[d + i];
  }
  for (size_t i = 0; d + i < head_dim; ++i) to[2 * i] = v[d + i];
}

// Copies the first `count` elements of each of `num_rows` rows. The rows are `stride` elements
// apart.
template <typename T>
void CopyRows(const std::byte* from, std::byte* to, size_t num_rows, size_t stride, size_t count) {
  if (count == 0) return;
  for (size_t row = 0; row < num_rows; ++row) {
    std::memcpy(to + row * stride * sizeof(T), from + row * stride * sizeof(T), count * sizeof(T));
  }
}

// `keys_per_cell`: the number of keys whose elements are adjacent (2 in bf16, 1 in f32).
template <typename T, size_t keys_per_cell>
void CopySlotsOf(const std::byte* from, std::byte* to, size_t d_padded, size_t num_slots) {
  // K: a group of 16 keys is d / keys_per_cell rows of elements of 16 keys.
  constexpr size_t kRow = kLanes * keys_per_cell;
  const size_t group_rows = d_padded / keys_per_cell;
  for (size_t key = 0; key < num_slots; key += kLanes) {
    const size_t at = key * d_padded * sizeof(T);
    CopyRows<T>(from + at, to + at, group_rows, kRow,
                std::min(num_slots - key, kLanes) * keys_per_cell);
  }
  // V: a panel of 16 dimensions is 32 / keys_per_cell rows, each with elements of keys_per_cell
  // keys.
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

// The offsets at which an int8 layout has a slot's key and value.
struct Int8Slot {
  size_t k;        // of the key's first quad; the others follow every kLineBytes
  size_t k_scale;  // of its first scale; the others follow every kLineBytes
  size_t v;        // behind K: of the value's first element
  size_t v_scale;  // behind K
};

Int8Slot Int8SlotOf(const KvLayout& layout, size_t slot) {
  const size_t d = layout.head_dim_padded(), group = slot / kLanes * (layout.k_bytes() / 2);
  const size_t lane = slot % kLanes * kUnitBytes;
  return {.k = group + lane,
          .k_scale = group + kLanes * d + lane,
          .v = slot / kUnitBytes * kLineBytes + slot % kUnitBytes,
          .v_scale = kKvBlockTokens * d + slot * sizeof(float)};
}

std::byte OffsetByte(int8_t value) { return static_cast<std::byte>(value) ^ std::byte{0x80}; }

void CopyInt8Slot(const KvLayout& layout, const std::byte* from, std::byte* to, size_t slot) {
  const Int8Slot at = Int8SlotOf(layout, slot);
  const size_t d = layout.head_dim_padded();
  for (size_t i = 0; i < d / 4; ++i) {
    std::memcpy(to + at.k + i * kLineBytes, from + at.k + i * kLineBytes, kUnitBytes);
  }
  for (size_t i = 0; i < d / 32; ++i) {
    std::memcpy(to + at.k_scale + i * kLineBytes, from + at.k_scale + i * kLineBytes, kUnitBytes);
  }
  from += layout.k_bytes();
  to += layout.k_bytes();
  for (size_t i = 0; i < d; ++i) {
    const size_t v = at.v + i / kLanes * (kKvBlockTokens * kLanes) + i % kLanes * kUnitBytes;
    to[v] = from[v];
  }
  std::memcpy(to + at.v_scale, from + at.v_scale, sizeof(float));
}

}  // namespace

void KvLayout::CopySlots(const std::byte* from, std::byte* to, int32_t num_slots) const {
  SKEIN_CHECK(num_slots >= 0 && num_slots <= kKvBlockTokens);
  SKEIN_CHECK(dtype == DType::kF32 || dtype == DType::kBf16 || dtype == DType::kInt8);
  if (dtype == DType::kInt8) {
    for (int32_t slot = 0; slot < num_slots; ++slot) CopyInt8Slot(*this, from, to, slot);
  } else if (dtype == DType::kF32) {
    CopySlotsOf<float, 1>(from, to, head_dim_padded(), num_slots);
  } else {
    CopySlotsOf<Bf16, 2>(from, to, head_dim_padded(), num_slots);
  }
}

void KvLayout::StoreK(std::byte* base, int32_t slot, const void* k) const {
  SKEIN_CHECK(slot >= 0 && slot < kKvBlockTokens);
  SKEIN_CHECK(dtype == DType::kF32 || dtype == DType::kBf16);
  StoreUnits(base, slot, k_bytes() / 2, static_cast<const std::byte*>(k), head_dim * SizeOf(dtype));
}

void KvLayout::LoadK(const std::byte* base, int32_t slot, void* k) const {
  SKEIN_CHECK(slot >= 0 && slot < kKvBlockTokens);
  SKEIN_CHECK(dtype == DType::kF32 || dtype == DType::kBf16);
  auto* to = static_cast<std::byte*>(k);
  const size_t bytes = head_dim * SizeOf(dtype);
  base += slot / kLanes * (k_bytes() / 2) + slot % kLanes * kUnitBytes;
  for (size_t i = 0; i < bytes; i += kUnitBytes, base += kLineBytes) {
    std::memcpy(to + i, base, std::min(kUnitBytes, bytes - i));
  }
}

// The stored elements lie between elements of other slots, to which other threads may be writing.
// So no store is wider than one element.
void KvLayout::StoreV(std::byte* base, int32_t slot, const void* v) const {
  SKEIN_CHECK(slot >= 0 && slot < kKvBlockTokens);
  SKEIN_CHECK(dtype == DType::kF32 || dtype == DType::kBf16);
  std::byte* to = base + k_bytes();
  if (dtype == DType::kF32) {
    StoreVF32(reinterpret_cast<float*>(to), slot, static_cast<const float*>(v), head_dim);
  } else {
    StoreVBf16(reinterpret_cast<Bf16*>(to), slot, static_cast<const Bf16*>(v), head_dim);
  }
}

void KvLayout::StoreInt8K(std::byte* base, int32_t slot, const int8_t* k,
                          const float* scales) const {
  SKEIN_CHECK(slot >= 0 && slot < kKvBlockTokens && dtype == DType::kInt8);
  const Int8Slot at = Int8SlotOf(*this, slot);
  const size_t d = head_dim_padded();
  for (size_t i = 0; i < d; i += kUnitBytes) {
    std::byte quad[kUnitBytes];
    for (size_t j = 0; j < kUnitBytes; ++j) quad[j] = OffsetByte(k[i + j]);
    std::memcpy(base + at.k + i / kUnitBytes * kLineBytes, quad, kUnitBytes);
  }
  for (size_t i = 0; i < d / 32; ++i) {
    std::memcpy(base + at.k_scale + i * kLineBytes, scales + i, sizeof(float));
  }
}

void KvLayout::StoreInt8V(std::byte* base, int32_t slot, const int8_t* v, float scale) const {
  SKEIN_CHECK(slot >= 0 && slot < kKvBlockTokens && dtype == DType::kInt8);
  const Int8Slot at = Int8SlotOf(*this, slot);
  std::byte* to = base + k_bytes();
  std::memcpy(to + at.v_scale, &scale, sizeof(float));
  for (size_t d = 0; d < static_cast<size_t>(head_dim); ++d) {
    to[at.v + d / kLanes * (kKvBlockTokens * kLanes) + d % kLanes * kUnitBytes] = OffsetByte(v[d]);
  }
}

}  // namespace skein
