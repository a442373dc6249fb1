#pragma once

// Products by a step `D` of dot_tile_body.h. math_body.h says how this file is used. Here `D` has
// besides:
//
//   D::kChunkRows, D::kPanels          rows and panels whose sums are kept on the stack
//   D::kBlockBytes                     of a row as tiles read it, for all panels at a time
//   D::kTakesRows                      whether tiles read rows as they are
//   D::CopyRow(from, to)               writes 64 bytes of a row as tiles read them
//   D::Start(w, panel)                 what the sums of a panel start from
//   D::Finish(call, row, column, sums)   the 16 results of a row from `column` on, before
//                                      FinishPanel

#include "kernels/cpu/dot_tile_body.h"
#include "kernels/cpu/gemm_body.h"

namespace skein {

// The distance in bytes of rows in a block. It is an odd number of cache lines, which spreads the
// rows over the sets of the first-level cache.
template <class D>
using RowBlockStride = std::integral_constant<int64_t, D::kBlockBytes + 64>;

// Copies `bytes` of each row to rows that are RowBlockStride bytes apart, as tiles read them. Pads
// the last group with zeros. `stride` is the distance of rows in bytes.
template <class D>
inline void CopyRowBlock(const std::byte* a, int64_t stride, int32_t rows, int32_t bytes,
                         std::byte* block) {
  constexpr int32_t kWider = D::kTileTermBytes / D::kTermBytes;
  for (int32_t r = 0; r < rows; ++r, a += stride, block += RowBlockStride<D>()) {
    int32_t i = 0;
    for (; i + 64 <= bytes; i += 64) D::CopyRow(a + i, block + kWider * i);
    if (i == bytes) continue;
    alignas(64) std::byte rest[64];
    const auto mask = static_cast<__mmask64>(~uint64_t{0} >> (64 - (bytes - i)));
    _mm512_store_si512(rest, _mm512_maskz_loadu_epi8(mask, a + i));
    D::CopyRow(rest, block + kWider * i);
  }
}

// Rows and panels that are computed together, and what part of their terms is.
struct DotBlock {
  const GemmCall& call;
  const PanelGroup& panels;
  int32_t row = 0;  // of call.a
  int32_t rows = 0;
  bool first = false, last = false;  // whether the terms are the first, the last ones
};

// Starts the sums of R rows and of P panels from `panel` on. c is where their former sums are.
template <class D, int R, int P>
inline __attribute__((always_inline)) void StartSums(const DotBlock& block, int32_t panel,
                                                     const float* c, int64_t ldc,
                                                     DotSums<D, R, P>& sums) {
  if (!block.first) return LoadSums<D, R, P>(c, ldc, /*fresh=*/false, sums);
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    const typename D::Sums start = D::Start(*block.call.w, block.panels.index[panel + p]);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) sums[r][p] = start;
  }
}

// Stores the sums of R rows from `row` on and of P panels from `panel` on at c; as results, if they
// are complete.
template <class D, int R, int P>
inline __attribute__((always_inline)) void FinishSums(const DotBlock& block, int32_t row,
                                                      int32_t panel, const DotSums<D, R, P>& sums,
                                                      float* c, int64_t ldc) {
  if (!block.last) return StoreSums<D, R, P>(sums, c, ldc);
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    const int32_t column = kPanelCols * block.panels.index[panel + p];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      _mm512_storeu_ps(c + r * ldc + kPanelCols * p,
                       D::Finish(block.call, block.row + row + r, column, sums[r][p]));
    }
  }
}

// Adds num_groups groups of terms of the rows at `a` to c [rows, 16 panels.count], where the sums
// start and are finished, too. The rows are `stride` bytes apart, as AddGroups takes it; `parts`
// are the panels' groups. Meanwhile the panels that come next are prefetched: each tile of rows
// prefetches an equal part, so that the load on memory is even. `next` [kMostTilePanels] are the
// parts of panels that come after the last one.
template <class D, class Stride>
inline void AddRowBlock(const DotBlock& block, const std::byte* a, Stride stride,
                        const std::byte* const* parts, int32_t num_groups,
                        const std::byte* const* next, float* c) {
  const int32_t rows = block.rows, num_panels = block.panels.count;
  const int64_t ldc = kPanelCols * num_panels;
  const int32_t most_rows = RowsPerDotTile<D>(rows);
  const int32_t most_panels = D::MostPanels(most_rows);
  for (int32_t p = 0; p < num_panels; p += most_panels) {
    const int32_t count = num_panels - p < most_panels ? num_panels - p : most_panels;
    const std::byte* ahead[kMostTilePanels];
    for (int32_t i = 0; i < count; ++i) {
      ahead[i] = p + most_panels + i < num_panels ? parts[p + most_panels + i] : next[i];
    }
    const int32_t num_tiles = (rows + most_rows - 1) / most_rows;
    for (int32_t r = 0; r < rows; r += most_rows) {
      float* sums_at = c + r * ldc + kPanelCols * p;
      const auto tile = [&](auto num_rows, auto num_cols) {
        constexpr int R = decltype(num_rows)::value, P = decltype(num_cols)::value;
        DotSums<D, R, P> sums;
        StartSums<D, R, P>(block, p, sums_at, ldc, sums);
        AddGroups<D, R, P>(a + r * stride, stride, parts + p, ahead, kGroupBytes / num_tiles,
                           num_groups, sums);
        FinishSums<D, R, P>(block, r, p, sums, sums_at, ldc);
      };
      WithConstant<D::kMostRows>(rows - r < most_rows ? rows - r : most_rows, [&](auto num_rows) {
        WithConstant<D::MostPanels(decltype(num_rows)::value)>(
            count, [&](auto num_cols) { tile(num_rows, num_cols); });
      });
      for (int32_t i = 0; i < count; ++i) ahead[i] += kGroupBytes / num_tiles * num_groups;
    }
  }
}

// Whether tiles read rows where they are. A copy of few rows costs little, and the next panels'
// lines do not displace it. Rows at a multiple of a page would fall into one set of the first-level
// cache.
template <class D>
constexpr bool ReadsInPlace(int64_t stride, int32_t k, int32_t rows) {
  constexpr int32_t kFewRows = 32;
  constexpr int64_t kPageBytes = 4096;
  return k % D::kGroupTerms == 0 && rows > kFewRows && stride % kPageBytes != 0;
}

// Computes `rows` rows from `row` on times the panels, to c [rows, 16 panels.count].
template <class D>
inline void DotPanelSums(const GemmCall& call, const PanelGroup& panels, int32_t row, int32_t rows,
                         float* c) {
  constexpr int32_t kBlockTermsOfRow = D::kBlockBytes / D::kTileTermBytes;
  constexpr int32_t kGroupTerms = D::kGroupTerms;
  alignas(64) std::byte copies[D::kChunkRows * RowBlockStride<D>()];
  const int32_t k = call.w->k();
  const int64_t stride = call.lda * D::kTermBytes;
  const auto* a = static_cast<const std::byte*>(call.a) + row * stride;
  DotBlock block = {.call = call, .panels = panels, .row = row, .rows = rows};
  for (int32_t begin = 0; begin < k; begin += kBlockTermsOfRow) {
    const int32_t terms = k - begin < kBlockTermsOfRow ? k - begin : kBlockTermsOfRow;
    const int32_t num_groups = (terms + kGroupTerms - 1) / kGroupTerms;
    block.first = begin == 0;
    block.last = begin + terms == k;
    const std::byte* parts[D::kPanels];
    for (int32_t p = 0; p < panels.count; ++p) {
      parts[p] = call.w->panel(panels.index[p]) + begin / kGroupTerms * kGroupBytes;
    }
    const std::byte* next[kMostTilePanels];
    for (int32_t p = 0; p < kMostTilePanels && p < panels.count; ++p) {
      next[p] = block.last ? call.w->panel(panels.next + p) : parts[p] + num_groups * kGroupBytes;
    }
    const std::byte* from = a + begin * D::kTermBytes;
    if constexpr (D::kTakesRows) {
      if (ReadsInPlace<D>(stride, k, rows)) {
        AddRowBlock<D>(block, from, stride, parts, num_groups, next, c);
        continue;
      }
    }
    CopyRowBlock<D>(from, stride, rows, terms * D::kTermBytes, copies);
    AddRowBlock<D>(block, copies, RowBlockStride<D>(), parts, num_groups, next, c);
  }
}

template <class D>
void GemmDots(const GemmCall& call) {
  const auto sums = [&](const PanelGroup& panels, int32_t row, int32_t rows, float* c) {
    DotPanelSums<D>(call, panels, row, rows, c);
  };
  ForPanelGroups<avx512::Vec, D::kChunkRows, D::kPanels>(call, sums);
}

}  // namespace skein
