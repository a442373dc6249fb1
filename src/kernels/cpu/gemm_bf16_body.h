#pragma once

// Register tiles of the BF16 class. math_body.h says how this file is used. Needs AVX512-BF16.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace skein {

inline constexpr int64_t kPairBytes = 64;  // of a bf16 panel: one pair of terms for 16 columns
inline constexpr int kMostTileRows = 14;
inline constexpr int kMostTilePanels = 4;

// The most panels of a tile of `rows` rows: the sums, one pair of terms of each panel and one of a
// row must fit the 32 registers.
constexpr int MostPanels(int rows) { return rows <= 6 ? kMostTilePanels : rows <= 8 ? 3 : 2; }

// Sums of R rows and P panels.
template <int R, int P>
using DotSums = __m512[R][P];

// Adds the pairs i = 0, 1, ..., num_pairs - 1 of row r and of column j of panel p to sums[r][p][j]:
// first the product of both odd terms, then that of both even terms. The rows of `a` are kStride
// bytes apart. If `ahead` is not null, the cache lines at the panels' offsets in `ahead` are
// prefetched.
template <int64_t kStride, int R, int P>
inline __attribute__((always_inline)) void AddPairs(const std::byte* a,
                                                    const std::byte* const* panels,
                                                    const std::byte* const* ahead,
                                                    int32_t num_pairs, DotSums<R, P>& sums) {
  const std::byte* from[P];
  const std::byte* next[P];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    from[p] = panels[p];
    next[p] = ahead != nullptr ? ahead[p] : nullptr;
  }
  for (int64_t i = 0; i < num_pairs; ++i, a += 4) {
    __m512bh w[P];
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      w[p] = (__m512bh)_mm512_loadu_si512(from[p] + kPairBytes * i);
      if (ahead != nullptr) __builtin_prefetch(next[p] + kPairBytes * i, 0, 2);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      int32_t pair;
      __builtin_memcpy(&pair, a + r * kStride, 4);
      const auto x = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) sums[r][p] = _mm512_dpbf16_ps(sums[r][p], x, w[p]);
    }
  }
}

// Loads the sums at c, whose rows are ldc apart; zeros if `fresh` is set.
template <int R, int P>
inline __attribute__((always_inline)) void LoadSums(const float* c, int64_t ldc, bool fresh,
                                                    DotSums<R, P>& sums) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      sums[r][p] = fresh ? _mm512_setzero_ps() : _mm512_loadu_ps(c + r * ldc + 16 * p);
    }
  }
}

template <int R, int P>
inline __attribute__((always_inline)) void StoreSums(const DotSums<R, P>& sums, float* c,
                                                     int64_t ldc) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) _mm512_storeu_ps(c + r * ldc + 16 * p, sums[r][p]);
  }
}

// Calls fn(std::integral_constant<int, n>) for an n in [1, kMost] that is known only at run time.
template <int kMost, class Fn>
inline void WithConstant(int n, const Fn& fn) {
  if (n == kMost) return fn(std::integral_constant<int, kMost>{});
  if constexpr (kMost > 1) WithConstant<kMost - 1>(n, fn);
}

// The number of rows of each tile, so that there are as few tiles as possible, all of about the
// same height.
inline int RowsPerDotTile(int rows) {
  const int tiles = (rows + kMostTileRows - 1) / kMostTileRows;
  return (rows + tiles - 1) / tiles;
}

}  // namespace skein
