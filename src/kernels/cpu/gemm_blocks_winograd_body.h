#pragma once

// Products of blocks with signed values (Q8_0, IQ4_NL, IQ4_XS) for many rows, by Winograd's inner
// product (gemm_int8_winograd_body.h). The integer sum of a block is exact, and the f32 sums add
// the blocks in order, as those of gemm_blocks_body.h do. math_body.h says how this file is used;
// it is for avx2::Vec.

#include "kernels/cpu/gemm_blocks_body.h"
#include "kernels/cpu/gemm_int8_winograd_body.h"

namespace skein::avx2 {

static_assert(kWinogradTerms == kBlocksPerChunk * kBlockTerms);

// The blocks of a chunk of rows [kWinogradRows], widened.
struct WideRowBlocks {
  // A block of a row: the negated sum of the products of its pairs, and its scale.
  struct Block {
    int32_t start;
    float scale;
  };

  alignas(64) std::byte quads[kWinogradRows * kWideRowStride];
  Block blocks[kWinogradRows][kBlocksPerChunk];
};

// The blocks of a chunk of a panel, widened.
struct WidePanelBlocks {
  alignas(64) std::byte quads[kWinogradQuads * kWidePanelQuadBytes];
  // The negated sums of the products of each column's pairs.
  alignas(64) int32_t starts[kBlocksPerChunk][kPanelCols];
  TileScales scales;
};

// Widens blocks [first, first + count) of rows [row, row + rows).
inline void WidenRowBlocks(const GemmCall& call, int32_t row, int32_t rows, int32_t first,
                           int32_t count, WideRowBlocks* out) {
  for (int32_t r = 0; r < rows; ++r) {
    const int8_t* a =
        static_cast<const int8_t*>(call.a) + (row + r) * call.lda + first * kBlockTerms;
    const RowBlock* blocks = call.a_blocks + (row + r) * (call.lda / kBlockTerms) + first;
    std::byte* quads = out->quads + r * kWideRowStride;
    for (int32_t b = 0; b < count; ++b, a += kBlockTerms, quads += kQuadsOfBlock * kWideQuadBytes) {
      const uint32_t products = SumOfLanes(WidenRowTerms(Vec::LoadBits(a), quads));
      out->blocks[r][b] = {static_cast<int32_t>(-products), blocks[b].scale};
    }
  }
}

// Widens blocks [first, first + count) of a panel.
template <class Source>
inline void WidenPanelBlocks(const PackedWeight::BlockPanel& panel, int32_t first, int32_t count,
                             WidePanelBlocks* out) {
  LoadScales<Vec>(TraitsOf(panel.format).scales, panel.scales, first, count, &out->scales);
  const std::byte* values = panel.values + int64_t{first} * Source::kBytes;
  std::byte* quads = out->quads;
  for (int32_t b = 0; b < count; ++b, values += Source::kBytes) {
    Blocks::Quads w[kQuadsOfBlock];
    Source::Load(values, w);
    __m256i products[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
#pragma GCC unroll 8
    for (int i = 0; i < kQuadsOfBlock; ++i, quads += kWidePanelQuadBytes) {
      products[0] = WidenColumns(w[i].lo, quads, products[0]);
      products[1] = WidenColumns(w[i].hi, quads + 64, products[1]);
    }
    StoreBits(products[0], out->starts[b]);
    StoreBits(products[1], out->starts[b] + 8);
  }
}

// Adds `count` blocks of rows [r, r + R) to c [R, 16], which has row stride ldc.
template <int R>
inline void WinogradBlockTile(const WideRowBlocks& rows, int32_t r, const WidePanelBlocks& panel,
                              int32_t count, float* c, int64_t ldc) {
  const std::byte* row_quads = rows.quads + r * kWideRowStride;
  const std::byte* panel_quads = panel.quads;
  for (int32_t b = 0; b < count; ++b) {
    __m256i sums[R][2];
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) {
      const __m256i start = _mm256_set1_epi32(rows.blocks[r + i][b].start);
      sums[i][0] = _mm256_add_epi32(start, Vec::LoadBits(panel.starts[b]));
      sums[i][1] = _mm256_add_epi32(start, Vec::LoadBits(panel.starts[b] + 8));
    }
    AddWinogradQuads<R>(row_quads, panel_quads, kQuadsOfBlock, sums);
    const Vec scale = Vec::Load(panel.scales.scales[b][0]);
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) {
      const Vec sum = {_mm256_cvtepi32_ps(sums[i][0]), _mm256_cvtepi32_ps(sums[i][1])};
      float* at = c + i * ldc;
      Fma(sum, Vec::Set(rows.blocks[r + i][b].scale) * scale, Vec::Load(at)).Store(at);
    }
    row_quads += kQuadsOfBlock * kWideQuadBytes;
    panel_quads += kQuadsOfBlock * kWidePanelQuadBytes;
  }
}

// Whether the kernels have the values of the format as signed bytes.
inline bool HasSignedValues(BlockFormat format) {
  bool is_signed = false;
  ForKind<Blocks>(format, [&](auto kind) { is_signed = decltype(kind)::Source::kBits == 8; });
  return is_signed;
}

// The values of a part of a panel; none behind the last panel.
inline MemoryAhead ValuesOf(const PackedWeight& w, const PanelPart& part) {
  if (part.panel * kPanelCols >= w.n()) return {nullptr, 0};
  const PackedWeight::BlockPanel panel = w.block_panel(part.panel);
  int64_t block_bytes = 0;
  ForKind<Blocks>(panel.format, [&](auto kind) { block_bytes = decltype(kind)::Source::kBytes; });
  return {panel.values + part.begin / kBlockTerms * block_bytes,
          part.terms / kBlockTerms * block_bytes};
}

// Computes the sums of rows [row, row + rows) over the panels, whose formats have signed values, to
// c [rows, 16 panels.count].
inline void WinogradBlockSums(const GemmCall& call, const PanelGroup& panels, int32_t row,
                              int32_t rows, float* c) {
  WideRowBlocks wide_rows;
  WidePanelBlocks wide_panel;
  const int64_t ldc = kPanelCols * panels.count;
  for (int64_t i = 0; i < rows * ldc; i += 8) StoreBits(_mm256_setzero_si256(), c + i);
  const int32_t num_blocks = call.w->k() / kBlockTerms;
  for (int32_t first = 0; first < num_blocks; first += kBlocksPerChunk) {
    const int32_t left = num_blocks - first;
    const int32_t count = left < kBlocksPerChunk ? left : kBlocksPerChunk;
    WidenRowBlocks(call, row, rows, first, count, &wide_rows);
    for (int32_t p = 0; p < panels.count; ++p) {
      const PackedWeight::BlockPanel panel = call.w->block_panel(panels.index[p]);
      ForKind<Blocks>(panel.format, [&](auto kind) {
        using Source = typename decltype(kind)::Source;
        if constexpr (Source::kBits == 8) {
          WidenPanelBlocks<Source>(panel, first, count, &wide_panel);
        }
      });
      const PanelPart next = NextPart(panels, p, first * kBlockTerms, call.w->k());
      ForWinogradTiles(rows, ValuesOf(*call.w, next), [&](auto tile_rows, int32_t r) {
        WinogradBlockTile<tile_rows>(wide_rows, r, wide_panel, count, c + r * ldc + kPanelCols * p,
                                     ldc);
      });
    }
  }
}

// Whether all panels of the call have signed values.
inline bool HasSignedValues(const GemmCall& call) {
  for (int32_t column = call.n_begin; column < call.n_end; column += kPanelCols) {
    const int32_t panel = column / kPanelCols, up = call.up_begin / kPanelCols;
    if (!HasSignedValues(call.w->block_panel(panel).format)) return false;
    if (up > 0 && !HasSignedValues(call.w->block_panel(panel + up).format)) return false;
  }
  return true;
}

inline void GemmBlocksWinograd(const GemmCall& call) {
  const auto sums = [&](const PanelGroup& panels, int32_t row, int32_t rows, float* c) {
    WinogradBlockSums(call, panels, row, rows, c);
  };
  ForPanelGroups<Vec, kWinogradRows>(call, sums);
}

}  // namespace skein::avx2
