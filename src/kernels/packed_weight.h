#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/dtype.h"
#include "kernels/block_panel.h"

namespace skein {

// Columns of the output in one panel: one vector of 16 f32.
inline constexpr int32_t kPanelCols = 16;

// A weight matrix w [n, k] in the order the kernels read it; the same for every instruction set:
//
//   bf16: [n / 16 panels][k / 2 pairs][16 columns][2 of k]
//   f32:  [n / 16 panels][k][16 columns]
//   int8: [n / 16 panels][k / 4 quads][16 columns][4 of k], and a scale for each row of w
//
// 16 pairs of a bf16 panel, or 16 quads of an int8 panel, are one tile of the matrix unit. Zeros
// pad n to 16 and k to 32 (int8: to 64).
//
// Blocks: each panel has a format of its own (kernels/block_panel.h), its values and its scales:
//
//   values: [k / 32 blocks][quads as above, 4 to 8 bits for each element]
//   scales: [k / 32 or k / 256 blocks] of BlockScales
//
// Two quads of 4 bits share 64 bytes, the first in the low halves. The fifth bits of eight quads
// are 64 bytes behind them, bit i that of quad i; upper two bits are 128 bytes, bits 2 (i % 4) and
// the next those of quad i, four quads in 64 bytes.
class PackedWeight {
 public:
  PackedWeight() = default;
  // All zeros. dtype: kF32, kBf16, or kInt8 with k <= kMaxInt8Terms.
  PackedWeight(int32_t n, int32_t k, DType dtype);
  // Blocks, all zeros: a format for each panel. k is a multiple of each format's file_elements.
  PackedWeight(int32_t n, int32_t k, std::vector<BlockFormat> formats);

  int32_t n() const { return n_; }
  int32_t k() const { return k_; }
  int32_t k_padded() const { return k_padded_; }
  DType dtype() const { return dtype_; }
  size_t bytes() const;

  // Fills rows [row_begin, row_begin + num_rows) from src [num_rows, k] of src_dtype (contiguous,
  // any alignment). Threads may pack disjoint rows at the same time. f32 to bf16 rounds to nearest
  // even; bf16 to f32 is exact; int8 is QuantizeRow of each row.
  void PackRows(int32_t row_begin, int32_t num_rows, const void* src, DType src_dtype);
  // The same for blocks, from rows as in the file; their panels have this format. Threads may pack
  // rows of different panels at the same time.
  void PackBlocks(int32_t row_begin, int32_t num_rows, const std::byte* src, BlockFormat format);

  // The inverse of PackRows for one row: out [k]. An int8 row becomes q * scale, an element of a
  // block scale * value, plus the minimum if its format has one; each operation is rounded.
  void UnpackRow(int32_t row, float* out) const;

  // 64-byte aligned.
  const std::byte* panel(int32_t index) const { return buffer_.data() + index * panel_bytes_; }

  // For blocks.
  struct BlockPanel {
    BlockFormat format;
    const std::byte* values;  // 64-byte aligned
    const std::byte* scales;
  };
  BlockPanel block_panel(int32_t index) const {
    const PanelPlace& place = places_[index];
    return {place.format, buffer_.data() + place.values, buffer_.data() + place.scales};
  }

  // For int8, [n] padded to 16 with zeros: the scales of the rows, and -128 times the sums of their
  // q. A kernel that reads int8 + 128 as unsigned starts its sums from the latter.
  const float* scales() const { return scales_.data(); }
  const int32_t* offsets() const { return offsets_.data(); }

 private:
  struct PanelPlace {
    BlockFormat format;
    size_t values, scales;  // offsets in the buffer
  };

  void PackInt8(int32_t row, const float* values, int8_t* quantized);
  void UnpackBlockRow(int32_t row, float* out) const;

  int32_t n_ = 0;
  int32_t k_ = 0;
  int32_t k_padded_ = 0;
  DType dtype_ = DType::kF32;
  size_t panel_bytes_ = 0;
  AlignedBuffer buffer_;
  std::vector<float> scales_;
  std::vector<int32_t> offsets_;
  std::vector<PanelPlace> places_;  // of a matrix of blocks' panels
};

}  // namespace skein
