#pragma once

// Products of int8 on vectors. math_body.h says how this file is used. `S` holds 16 int32 sums
// (vec_*.h). The sums are exact, so their order does not matter.

#include "kernels/cpu/gemm_body.h"

namespace skein {

// Loads the n <= 4 int8 values at p, padded with zeros.
template <class S>
inline int32_t LoadQuad(const int8_t* p, int n) {
  int32_t quad = 0;
  __builtin_memcpy(&quad, p, n);
  return quad;
}

template <class S, int R, int P>
inline void Int8Step(const int8_t* a, int64_t lda, int n, const std::byte* const* panels,
                     int64_t offset, int64_t ahead, S (&sums)[R][P]) {
  typename S::Quads w[P];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    __builtin_prefetch(panels[p] + offset + ahead);
    w[p] = S::LoadQuads(panels[p] + offset);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const typename S::Row x = S::Broadcast(LoadQuad<S>(a + r * lda, n));
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) sums[r][p] = Dot(sums[r][p], x, w[p]);
  }
}

// Adds the sum over i < k of a[r][i] times panel p's column j at i to c[r][16 p + j]. c has row
// stride 16 P. Prefetches the panels `ahead` bytes ahead.
template <class S, int R, int P>
inline void Int8Tile(const int8_t* a, int64_t lda, const std::byte* const* panels, int32_t k,
                     int64_t ahead, int32_t* c) {
  S sums[R][P];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) sums[r][p] = S::Load(c + 16 * (r * P + p));
  }
  int32_t i = 0;
  for (; i + 4 <= k; i += 4) Int8Step<S, R, P>(a + i, lda, 4, panels, int64_t{i} * 16, ahead, sums);
  if (i < k) Int8Step<S, R, P>(a + i, lda, k - i, panels, int64_t{i} * 16, ahead, sums);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) sums[r][p].Store(c + 16 * (r * P + p));
  }
}

// Int8Tile for a number of rows in [1, R] that is known only at run time.
template <class S, int R, int P>
inline void Int8TileOfRows(int rows, const int8_t* a, int64_t lda, const std::byte* const* panels,
                           int32_t k, int64_t ahead, int32_t* c) {
  if (rows == R) return Int8Tile<S, R, P>(a, lda, panels, k, ahead, c);
  if constexpr (R > 1) Int8TileOfRows<S, R - 1, P>(rows, a, lda, panels, k, ahead, c);
}

// Computes scaled sums of rows [row_begin, row_begin + rows) and of the P panels from panel `first`
// on, to c [rows, 16 P]. The sums of some S start from PackedWeight::offsets. The loop over blocks
// of k is outside the loop over rows, so that the panels' part of a block stays in the first-level
// cache.
template <class V, class S, int kMaxRows, int P>
inline void Int8PanelSums(const GemmCall& call, int32_t first, int32_t row_begin, int32_t rows,
                          float* c) {
  constexpr int32_t kBlock = 512;  // elements of k
  // In bytes. Only the first tile of a block reads the panels from memory. The others prefetch what
  // they load at once.
  constexpr int64_t kAhead = kMaxRows == 1 ? V::kStreamAhead : 4096;
  alignas(64) int32_t sums[kRowsPerChunk * 16 * P];
  const int32_t k = call.w->k(), most = RowsPerTile(rows, kMaxRows);
  for (int p = 0; p < P; ++p) {
    constexpr int32_t kZeros[16] = {};
    const int32_t* start = S::kStartsFromOffsets ? call.w->offsets() + 16 * (first + p) : kZeros;
    for (int32_t r = 0; r < rows; ++r) __builtin_memcpy(sums + 16 * (r * P + p), start, 64);
  }
  const int8_t* a = static_cast<const int8_t*>(call.a) + row_begin * call.lda;
  for (int32_t k_begin = 0; k_begin < k; k_begin += kBlock) {
    const int32_t count = k - k_begin < kBlock ? k - k_begin : kBlock;
    const std::byte* panels[P];
    for (int p = 0; p < P; ++p) panels[p] = call.w->panel(first + p) + int64_t{k_begin} * 16;
    for (int32_t r = 0; r < rows; r += most) {
      Int8TileOfRows<S, kMaxRows, P>(rows - r < most ? rows - r : most, a + r * call.lda + k_begin,
                                     call.lda, panels, count, r == 0 ? kAhead : 0,
                                     sums + r * 16 * P);
    }
  }
  __builtin_memcpy(c, sums, sizeof(float) * rows * 16 * P);
  for (int p = 0; p < P; ++p) {
    ScaleSums<V>(call, c + 16 * p, 16 * P, row_begin, rows, 16 * (first + p));
  }
}

// Computes the columns of P panels, from panel `first` on, for all rows.
template <class V, class S, int kMaxRows, int P>
inline void Int8PanelGroup(const GemmCall& call, int32_t first) {
  alignas(64) float c[kRowsPerChunk * 16 * P];
  alignas(64) float up[kRowsPerChunk * 16 * P];
  for (int32_t row = 0; row < call.m; row += kRowsPerChunk) {
    const int32_t rows = call.m - row < kRowsPerChunk ? call.m - row : kRowsPerChunk;
    Int8PanelSums<V, S, kMaxRows, P>(call, first, row, rows, c);
    const bool swiglu = call.up_begin > 0;
    if (swiglu) Int8PanelSums<V, S, kMaxRows, P>(call, first + call.up_begin / 16, row, rows, up);
    for (int p = 0; p < P; ++p) {
      FinishPanel<V>(call, c + 16 * p, swiglu ? up + 16 * p : nullptr, 16 * P, row, rows,
                     16 * (first + p));
    }
  }
}

template <class V, class S>
void GemmInt8(const GemmCall& call) {
  const int32_t end = (call.n_end + 15) / 16;
  int32_t panel = call.n_begin / 16;
  if (call.m == 1) {
    for (; panel + V::kStreamPanels <= end; panel += V::kStreamPanels) {
      Int8PanelGroup<V, S, 1, V::kStreamPanels>(call, panel);
    }
  }
  for (; panel + V::kTilePanels <= end; panel += V::kTilePanels) {
    Int8PanelGroup<V, S, S::kRows, V::kTilePanels>(call, panel);
  }
  for (; panel < end; ++panel) Int8PanelGroup<V, S, S::kRows, 1>(call, panel);
}

}  // namespace skein
