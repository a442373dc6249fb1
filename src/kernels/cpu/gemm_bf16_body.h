#pragma once

// Register tiles of the BF16 class; math_body.h says how this file is used.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace skein {

inline constexpr int64_t kPairTermBytes = 32;  // bytes of a bf16 panel for each of its k terms

// The most panels of a tile of `rows` rows: their sums, the panels and one pair of a row fit the 32
// registers, and enough sums are there to cover the latency of one.
constexpr int MostPanels(int rows) { return rows <= 6 ? 4 : rows <= 8 ? 3 : 2; }
inline constexpr int kMostTileRows = 14;

// c[r][16 p + j] continues by the pairs of terms i = 0, 1, ..., pairs - 1 of row r and of column j
// of panel p: first the product of both odd terms, then that of both even terms. a: rows kStride
// bytes apart; c: row stride ldc. Fetches the lines of `ahead`, which lie as those of `panels`.
template <int64_t kStride, int R, int P>
inline void DotTile(const std::byte* a, const std::byte* const* panels, int32_t pairs, float* c,
                    int64_t ldc, const std::byte* const* ahead) {
  __m512 acc[R][P];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) acc[r][p] = _mm512_loadu_ps(c + r * ldc + 16 * p);
  }
  const std::byte* from[P];
  const std::byte* next[P];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    from[p] = panels[p];
    next[p] = ahead[p];
  }
  for (int32_t i = 0; i < pairs; ++i, a += 4) {
    __m512bh w[P];
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      w[p] = (__m512bh)_mm512_loadu_si512(from[p] + 64 * int64_t{i});
      __builtin_prefetch(next[p] + 64 * int64_t{i}, 0, 2);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      int32_t pair;
      __builtin_memcpy(&pair, a + r * kStride, 4);
      const auto x = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) acc[r][p] = _mm512_dpbf16_ps(acc[r][p], x, w[p]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) _mm512_storeu_ps(c + r * ldc + 16 * p, acc[r][p]);
  }
}

// R rows over any number of panels. Without `fetch` the lines ahead are those at hand.
template <int64_t kStride, int R>
inline void DotTilesOfPanels(const std::byte* a, const std::byte* const* panels, int num_panels,
                             int32_t pairs, float* c, int64_t ldc, const std::byte* const* ahead) {
  constexpr int kMost = MostPanels(R);
  if (num_panels >= kMost) return DotTile<kStride, R, kMost>(a, panels, pairs, c, ldc, ahead);
  if constexpr (kMost > 3) {
    if (num_panels == 3) return DotTile<kStride, R, 3>(a, panels, pairs, c, ldc, ahead);
  }
  if constexpr (kMost > 2) {
    if (num_panels == 2) return DotTile<kStride, R, 2>(a, panels, pairs, c, ldc, ahead);
  }
  DotTile<kStride, R, 1>(a, panels, pairs, c, ldc, ahead);
}

// The same for a number of rows that is known only at run time.
template <int64_t kStride, int R = kMostTileRows>
inline void DotTilesOfRows(int rows, const std::byte* a, const std::byte* const* panels,
                           int num_panels, int32_t pairs, float* c, int64_t ldc,
                           const std::byte* const* ahead) {
  if (rows == R) {
    return DotTilesOfPanels<kStride, R>(a, panels, num_panels, pairs, c, ldc, ahead);
  }
  if constexpr (R > 1) {
    DotTilesOfRows<kStride, R - 1>(rows, a, panels, num_panels, pairs, c, ldc, ahead);
  }
}

// c [rows, 16 num_panels] continues over any number of rows and panels. The first rows' tile
// fetches the panels that come next; after the last panel those are the first ones' next block of
// k.
template <int64_t kStride>
inline void DotTiles(const std::byte* a, int rows, const std::byte* const* panels, int num_panels,
                     int32_t pairs, float* c, int64_t ldc) {
  const int tiles = (rows + kMostTileRows - 1) / kMostTileRows;
  const int most_rows = (rows + tiles - 1) / tiles;
  const int most_panels = MostPanels(most_rows);
  for (int p = 0; p < num_panels; p += most_panels) {
    const int count = num_panels - p < most_panels ? num_panels - p : most_panels;
    const std::byte* ahead[4];
    for (int i = 0; i < count; ++i) {
      const int next = p + most_panels + i;
      ahead[i] = next < num_panels ? panels[next] : panels[i] + int64_t{pairs} * 64;
    }
    for (int r = 0; r < rows; r += most_rows) {
      DotTilesOfRows<kStride>(rows - r < most_rows ? rows - r : most_rows, a + r * kStride,
                              panels + p, count, pairs, c + r * ldc + 16 * p, ldc,
                              r == 0 ? ahead : panels + p);
    }
  }
}

}  // namespace skein
