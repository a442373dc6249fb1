#include "kernels/packed_weight.h"

#include <cstring>

#include "base/check.h"

namespace skein {
namespace {

constexpr int32_t kPadK = 32;

int32_t RoundUp(int32_t x, int32_t unit) { return (x + unit - 1) / unit * unit; }

// Element i of row `column` of a panel: where it lies, counted in elements.
size_t IndexInPanel(DType dtype, int32_t column, int32_t i) {
  if (dtype == DType::kF32) return size_t(i) * kPanelCols + column;
  return (size_t(i / 2) * kPanelCols + column) * 2 + i % 2;
}

float LoadElement(const void* src, DType dtype, size_t index) {
  if (dtype == DType::kF32) {
    float value;
    std::memcpy(&value, static_cast<const std::byte*>(src) + index * 4, 4);
    return value;
  }
  Bf16 value;
  std::memcpy(&value, static_cast<const std::byte*>(src) + index * 2, 2);
  return ToFloat(value);
}

}  // namespace

PackedWeight::PackedWeight(int32_t n, int32_t k, DType dtype)
    : n_(n), k_(k), k_padded_(RoundUp(k, kPadK)), dtype_(dtype) {
  SKEIN_CHECK(n >= 1 && k >= 1);
  SKEIN_CHECK(dtype == DType::kF32 || dtype == DType::kBf16);
  panel_bytes_ = size_t(k_padded_) * kPanelCols * SizeOf(dtype);
  buffer_ = AlignedBuffer(RoundUp(n, kPanelCols) / kPanelCols * panel_bytes_);
}

void PackedWeight::PackRows(int32_t row_begin, int32_t num_rows, const void* src, DType src_dtype) {
  SKEIN_CHECK(row_begin >= 0 && num_rows >= 0 && num_rows <= n_ - row_begin);
  SKEIN_CHECK(src_dtype == DType::kF32 || src_dtype == DType::kBf16);
  const auto* from = static_cast<const std::byte*>(src);
  const bool copy_bits = dtype_ == DType::kBf16 && src_dtype == DType::kBf16;
  for (int32_t r = 0; r < num_rows; ++r) {
    const int32_t row = row_begin + r;
    std::byte* panel = buffer_.data() + row / kPanelCols * panel_bytes_;
    const std::byte* src_row = from + size_t(r) * k_ * SizeOf(src_dtype);
    for (int32_t i = 0; i < k_; ++i) {
      std::byte* to = panel + IndexInPanel(dtype_, row % kPanelCols, i) * SizeOf(dtype_);
      if (copy_bits) {
        std::memcpy(to, src_row + size_t(i) * 2, 2);
        continue;
      }
      const float value = LoadElement(src_row, src_dtype, i);
      if (dtype_ == DType::kF32) {
        std::memcpy(to, &value, 4);
      } else {
        const Bf16 rounded = ToBf16(value);
        std::memcpy(to, &rounded, 2);
      }
    }
  }
}

void PackedWeight::UnpackRow(int32_t row, float* out) const {
  SKEIN_CHECK(row >= 0 && row < n_);
  const std::byte* from = panel(row / kPanelCols);
  for (int32_t i = 0; i < k_; ++i) {
    out[i] = LoadElement(from, dtype_, IndexInPanel(dtype_, row % kPanelCols, i));
  }
}

}  // namespace skein
