#pragma once

// Register tiles of products whose step adds the products of a group of terms to each of 16 sums:
// vdpbf16ps (pairs of bf16), two FMAs in its place, and vpdpbusd (quads of int8). math_body.h says
// how this file is used. Needs AVX-512. `D` is the step:
//
//   D::Sums                            16 sums in a register
//   D::Zero(), D::Load(p), D::Store(sums, p)
//   D::kTermBytes                      of a term of a row outside of tiles
//   D::kTileTermBytes                  of a term of a row as a tile reads it
//   D::kGroupTerms                     terms of a group; of 16 columns, they are kGroupBytes
//   D::Row, D::LoadRow(p)              a group of a row, for all columns
//   D::Columns, D::LoadColumns(p)      a group of 16 columns
//   D::Add(sums, row, columns)         adds a group of the row times that of each column
//   D::kMostRows                       of a tile
//   D::MostPanels(rows)                of a tile of `rows` rows: sums, columns and a row must fit
//                                      the 32 registers

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace skein {

inline constexpr int64_t kGroupBytes = 64;  // of a panel: one group of terms for 16 columns
inline constexpr int kMostTilePanels = 4;

// The bytes of a group of a row as a tile reads it.
template <class D>
inline constexpr int64_t kRowGroupBytes = int64_t{D::kGroupTerms} * D::kTileTermBytes;

// Sums of R rows and P panels.
template <class D, int R, int P>
using DotSums = typename D::Sums[R][P];

// Adds the groups i = 0, 1, ..., num_groups - 1 of row r and of column j of panel p to
// sums[r][p][j]. The rows of `a` are `stride` bytes apart: an int64_t, or a constant of that type.
// If `ahead` [A] is not null, each step prefetches `ahead_step` more bytes of every pointer in it.
template <class D, int R, int P, int A = P, class Stride>
inline __attribute__((always_inline)) void AddGroups(const std::byte* a, Stride stride,
                                                     const std::byte* const* panels,
                                                     const std::byte* const* ahead,
                                                     int64_t ahead_step, int32_t num_groups,
                                                     DotSums<D, R, P>& sums) {
  const std::byte* from[P];
  const std::byte* next[A];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) from[p] = panels[p];
#pragma GCC unroll 8
  for (int p = 0; p < A; ++p) next[p] = ahead != nullptr ? ahead[p] : nullptr;
  for (int64_t i = 0; i < num_groups; ++i, a += kRowGroupBytes<D>) {
    typename D::Columns w[P];
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) w[p] = D::LoadColumns(from[p] + kGroupBytes * i);
#pragma GCC unroll 8
    for (int p = 0; ahead != nullptr && p < A; ++p) {
      __builtin_prefetch(next[p] + ahead_step * i, 0, 2);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const typename D::Row x = D::LoadRow(a + r * stride);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) sums[r][p] = D::Add(sums[r][p], x, w[p]);
    }
  }
}

// Loads the sums at c, whose rows are ldc apart; zeros if `fresh` is set.
template <class D, int R, int P>
inline __attribute__((always_inline)) void LoadSums(const float* c, int64_t ldc, bool fresh,
                                                    DotSums<D, R, P>& sums) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) sums[r][p] = fresh ? D::Zero() : D::Load(c + r * ldc + 16 * p);
  }
}

template <class D, int R, int P>
inline __attribute__((always_inline)) void StoreSums(const DotSums<D, R, P>& sums, float* c,
                                                     int64_t ldc) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) D::Store(sums[r][p], c + r * ldc + 16 * p);
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
template <class D>
inline int RowsPerDotTile(int rows) {
  const int tiles = (rows + D::kMostRows - 1) / D::kMostRows;
  return (rows + tiles - 1) / tiles;
}

// The common part of the steps of one instruction: a group of a row is 4 bytes, and a tile reads
// rows and columns as they are.
struct DotOperands {
  static constexpr int32_t kChunkRows = 96;
  static constexpr int32_t kPanels = 8;
  static constexpr int32_t kBlockBytes = 1024;
  static constexpr int kMostRows = 14;
  static constexpr int MostPanels(int rows) { return rows <= 6 ? 4 : rows <= 8 ? 3 : 2; }

  using Row = __m512i;
  static Row LoadRow(const std::byte* p) {
    int32_t group;
    __builtin_memcpy(&group, p, 4);
    return _mm512_set1_epi32(group);
  }
  using Columns = __m512i;
  static Columns LoadColumns(const std::byte* p) { return _mm512_loadu_si512(p); }
};

}  // namespace skein
