#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/dtype.h"
#include "base/result.h"
#include "base/threads/numa.h"
#include "kernels/block_panel.h"

namespace skein {

// The number of columns of the output in one panel, which are rows of the weight matrix: one vector
// of 16 f32.
inline constexpr int32_t kPanelCols = 16;

// A weight matrix w [n, k] in the order in which the kernels read it, which is the same for every
// instruction set:
//
//   bf16: [n / 16 panels][k / 2 pairs][16 columns][2 of k]
//   f32:  [n / 16 panels][k][16 columns]
//   int8: [n / 16 panels][k / 4 quads][16 columns][4 of k], and a scale for each row of w
//
// 16 pairs of a bf16 panel, or 16 quads of an int8 panel, are one tile of the matrix unit. Zeros
// pad n to a multiple of 16 and k to a multiple of 32 (int8: of 64).
//
// With blocks, each panel has its own format (kernels/block_panel.h), and consists of values and
// scales:
//
//   values: [k / 32 blocks][quads as above, 4 to 8 bits for each element]
//   scales: [k / 32 or k / 256 blocks] of BlockScales
//
// Two quads of 4-bit values share 64 bytes; the first quad lies in the low halves of the bytes. The
// fifth bits of eight quads are the 64 bytes behind their low bits; bit i of a byte belongs to quad
// i. Upper two bits are 128 bytes, 64 for four quads each; bits 2 (i % 4) and 2 (i % 4) + 1 of a
// byte belong to quad i.
class PackedWeight {
 public:
  PackedWeight() = default;
  // Makes a matrix of zeros. dtype: kF32, kBf16, or kInt8 with k <= kMaxInt8Terms.
  PackedWeight(int32_t n, int32_t k, DType dtype);
  // Makes a matrix of blocks, all zeros, with a format for each panel. k is a multiple of each
  // format's file_elements.
  PackedWeight(int32_t n, int32_t k, std::vector<BlockFormat> formats);

  int32_t n() const { return n_; }
  int32_t k() const { return k_; }
  int32_t k_padded() const { return k_padded_; }
  DType dtype() const { return dtype_; }
  size_t bytes() const;

  // Fills rows [row_begin, row_begin + num_rows) from src [num_rows, k] of src_dtype (contiguous,
  // any alignment). Threads may pack disjoint rows at the same time. f32 to bf16 rounds to nearest
  // even; bf16 to f32 is exact; int8 is the result of QuantizeRow for each row.
  void PackRows(int32_t row_begin, int32_t num_rows, const void* src, DType src_dtype);
  // PackRows for blocks: the rows come as in the file, and their panels must have this format.
  // Threads may pack rows of different panels at the same time.
  void PackBlocks(int32_t row_begin, int32_t num_rows, const std::byte* src, BlockFormat format);

  // Lets the panels lie on the nodes in turn. Fails as InterleavePages and OnEachNode do.
  Status Interleave(const std::vector<NumaNode>& nodes);
  // Copies the panels to the memory of each node. From now on, a thread reads the copy of its node
  // (ThisNode); nothing may be packed any more. Fails as OnEachNode does.
  Status CopyToNodes(const std::vector<NumaNode>& nodes);

  // The inverse of PackRows for one row: out [k]. An element of an int8 row becomes q * scale. An
  // element of a block becomes scale * value, plus the minimum if its format has one. Each
  // operation is rounded.
  void UnpackRow(int32_t row, float* out) const;

  // A panel of a matrix without blocks, 64-byte aligned.
  const std::byte* panel(int32_t index) const { return panels() + index * panel_bytes_; }

  // A panel of a matrix of blocks.
  struct BlockPanel {
    BlockFormat format;
    const std::byte* values;  // 64-byte aligned
    const std::byte* scales;
  };
  BlockPanel block_panel(int32_t index) const {
    const PanelPlace& place = places_[index];
    return {place.format, panels() + place.values, panels() + place.scales};
  }

  // For int8, [n] padded to a multiple of 16 with zeros: the scales of the rows, and -128 times the
  // sum of each row's q. A kernel that reads int8 + 128 as unsigned starts its sums from the
  // latter.
  const float* scales() const { return scales_.data(); }
  const int32_t* offsets() const { return offsets_.data(); }

 private:
  struct PanelPlace {
    BlockFormat format;
    size_t values, scales;  // offsets in the buffer
  };

  const std::byte* panels() const {
    if (copies_.empty()) return buffer_.data();
    return copies_[std::min<size_t>(ThisNode(), copies_.size() - 1)].data();
  }
  void PackInt8(int32_t row, const float* values, int8_t* quantized);
  void UnpackBlockRow(int32_t row, float* out) const;

  int32_t n_ = 0;
  int32_t k_ = 0;
  int32_t k_padded_ = 0;
  DType dtype_ = DType::kF32;
  size_t panel_bytes_ = 0;
  AlignedBuffer buffer_;               // the panels, unless there are copies
  std::vector<AlignedBuffer> copies_;  // one for each node
  std::vector<float> scales_;
  std::vector<int32_t> offsets_;
  std::vector<PanelPlace> places_;  // of the panels of a matrix of blocks
};

}  // namespace skein
