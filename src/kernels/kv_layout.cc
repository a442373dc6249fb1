#include "kernels/kv_layout.h"

#include <cstring>

#include "base/check.h"

namespace skein {
namespace {

constexpr int32_t kLanes = 16;  // keys of a K group, and d of a V panel

void Put(std::byte* base, DType dtype, size_t index, float value) {
  if (dtype == DType::kF32) {
    std::memcpy(base + index * 4, &value, 4);
  } else {
    const Bf16 rounded = ToBf16(value);
    std::memcpy(base + index * 2, &rounded, 2);
  }
}

}  // namespace

void KvLayout::Store(std::byte* base, int32_t slot, const float* k, const float* v) const {
  SKEIN_CHECK(slot >= 0 && slot < kKvBlockTokens);
  SKEIN_CHECK(dtype == DType::kF32 || dtype == DType::kBf16);
  const size_t d_padded = head_dim_padded();
  const size_t group = slot / kLanes;
  const size_t key = slot % kLanes;
  std::byte* v_base = base + k_bytes();
  for (size_t d = 0; d < size_t(head_dim); ++d) {
    const size_t panel = d / kLanes;
    const size_t lane = d % kLanes;
    if (dtype == DType::kF32) {
      Put(base, dtype, (group * d_padded + d) * kLanes + key, k[d]);
      Put(v_base, dtype, (panel * kKvBlockTokens + slot) * kLanes + lane, v[d]);
    } else {
      Put(base, dtype, ((group * d_padded / 2 + d / 2) * kLanes + key) * 2 + d % 2, k[d]);
      Put(v_base, dtype, ((panel * kKvBlockTokens / 2 + slot / 2) * kLanes + lane) * 2 + slot % 2,
          v[d]);
    }
  }
}

}  // namespace skein
