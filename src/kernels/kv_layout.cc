#include "kernels/kv_layout.h"

#include <cstring>

#include "base/check.h"

namespace skein {
namespace {

constexpr size_t kLanes = 16;      // keys of a K group, and d of a V panel
constexpr size_t kUnitBytes = 4;   // one f32, or two bf16 that lie together
constexpr size_t kLineBytes = 64;  // 16 units

// In both types K's order is PackedWeight's for 16 columns: units of 4 bytes, one line apart. The
// unit that the last element of an odd head_dim lies in keeps its other half.
void StoreK(std::byte* to, int32_t slot, size_t group_bytes, const std::byte* k, size_t k_bytes) {
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

}  // namespace

void KvLayout::Store(std::byte* base, int32_t slot, const void* k, const void* v) const {
  SKEIN_CHECK(slot >= 0 && slot < kKvBlockTokens);
  SKEIN_CHECK(dtype == DType::kF32 || dtype == DType::kBf16);
  StoreK(base, slot, k_bytes() / 2, static_cast<const std::byte*>(k), head_dim * SizeOf(dtype));
  std::byte* to = base + k_bytes();
  if (dtype == DType::kF32) {
    StoreVF32(reinterpret_cast<float*>(to), slot, static_cast<const float*>(v), head_dim);
  } else {
    StoreVBf16(reinterpret_cast<Bf16*>(to), slot, static_cast<const Bf16*>(v), head_dim);
  }
}

}  // namespace skein
