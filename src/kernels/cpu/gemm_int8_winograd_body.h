#pragma once

// Products of int8 for many rows without an instruction for dot products of bytes, by Winograd's
// inner product (S. Winograd, "A New Algorithm for Inner Product", IEEE Transactions on Computers,
// 1968):
//
//   sum of a w = sum of (a_even + w_odd) (a_odd + w_even)
//                - sum of a_even a_odd - sum of w_even w_odd
//
// a_even and a_odd are the elements of a row with even and odd indices. Each sum goes over the
// pairs of an even index and the odd one behind it. It takes half of the multiplications and more
// additions, for which a processor has more units. The sums are exact: those of int32 may wrap
// around, but the result fits. math_body.h says how this file is used; it is for avx2::Vec.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/gemm_body.h"

namespace skein::avx2 {

inline constexpr int32_t kWinogradRows = 96;  // rows whose sums are kept on the stack
// The rows of a register tile: 8 sums, 4 registers of a panel, 2 of a row and 2 temporary ones.
inline constexpr int32_t kWinogradTileRows = 4;
inline constexpr int32_t kWinogradTerms = 256;  // of k, for all rows and panels at a time
inline constexpr int32_t kWinogradQuads = kWinogradTerms / 4;
// A quad of a row, widened: two even and two odd elements of 16 bits.
inline constexpr int64_t kWideQuadBytes = 8;
// The distance in bytes of rows in a block. It is an odd number of cache lines, which spreads the
// rows over the sets of the first-level cache.
inline constexpr int64_t kWideRowStride = kWinogradQuads * kWideQuadBytes + 64;
// A quad of a panel, widened: odd and even elements of the first 8 columns, then of the others.
inline constexpr int64_t kWidePanelQuadBytes = 128;

// The elements of quads with even and with odd indices, in 16 bits.
struct WideQuads {
  __m256i even, odd;
};
inline WideQuads Widen(__m256i quads) {
  return {_mm256_srai_epi16(_mm256_slli_epi16(quads, 8), 8), _mm256_srai_epi16(quads, 8)};
}

inline void StoreBits(__m256i bits, void* p) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), bits);
}

// The sum of eight lanes, modulo 2^32.
inline uint32_t SumOfLanes(__m256i lanes) {
  alignas(32) uint32_t lane[8];
  StoreBits(lanes, lane);
  uint32_t sum = 0;
  for (uint32_t e : lane) sum += e;
  return sum;
}

// Widens 32 elements of a row to out [8 quads, kWideQuadBytes]. Returns the products of their
// pairs, in two sums for each quad.
inline __m256i WidenRowTerms(__m256i quads, std::byte* out) {
  const WideQuads wide = Widen(quads);
  // The unpack instructions work within 128-bit halves.
  const __m256i lower = _mm256_unpacklo_epi32(wide.even, wide.odd);
  const __m256i upper = _mm256_unpackhi_epi32(wide.even, wide.odd);
  StoreBits(_mm256_permute2x128_si256(lower, upper, 0x20), out);
  StoreBits(_mm256_permute2x128_si256(lower, upper, 0x31), out + 32);
  return _mm256_madd_epi16(wide.even, wide.odd);
}

// Widens a [terms] to out [terms / 4 quads, kWideQuadBytes], with zeros behind the terms up to a
// multiple of 32. Returns the sum of the products of its pairs.
inline uint32_t WidenRow(const int8_t* a, int32_t terms, std::byte* out) {
  __m256i sums = _mm256_setzero_si256();
  for (int32_t i = 0; i < terms; i += 32, out += 64) {
    alignas(32) int8_t last[32] = {};
    if (terms - i < 32) __builtin_memcpy(last, a + i, terms - i);
    const __m256i quads = Vec::LoadBits(terms - i < 32 ? last : a + i);
    sums = _mm256_add_epi32(sums, WidenRowTerms(quads, out));
  }
  return SumOfLanes(sums);
}

// Widens one quad of 8 columns to out [kWidePanelQuadBytes / 2]. Returns `products` less the
// products of each column's pairs.
inline __m256i WidenColumns(__m256i quads, std::byte* out, __m256i products) {
  const WideQuads wide = Widen(quads);
  StoreBits(wide.odd, out);
  StoreBits(wide.even, out + 32);
  return _mm256_sub_epi32(products, _mm256_madd_epi16(wide.even, wide.odd));
}

// Widens a part of a panel [num_quads, 16 columns, 4] to out [num_quads, kWidePanelQuadBytes].
// Subtracts the products of each column's pairs from `products`, which has 8 columns a register.
inline void WidenPanel(const std::byte* panel, int32_t num_quads, std::byte* out,
                       __m256i (&products)[2]) {
  for (int32_t i = 0; i < num_quads; ++i, panel += 64, out += kWidePanelQuadBytes) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      products[half] =
          WidenColumns(Vec::LoadBits(panel + 32 * half), out + 64 * half, products[half]);
    }
  }
}

// Adds (row_even + odd) (row_odd + even) to the sums. Assembly keeps the sum in its register, as
// that of Fma does.
inline __m256i AddWideQuads(__m256i sums, __m256i row_even, __m256i row_odd, __m256i odd,
                            __m256i even) {
  __m256i a, b;
  asm("vpaddw %3, %5, %1\n\tvpaddw %4, %6, %2\n\tvpmaddwd %1, %2, %1\n\tvpaddd %1, %0, %0"
      : "+x"(sums), "=&x"(a), "=&x"(b)
      : "x"(row_even), "x"(row_odd), "x"(odd), "x"(even));
  return sums;
}

inline __m256i BroadcastPair(const std::byte* p) {
  int32_t pair;
  __builtin_memcpy(&pair, p, sizeof(pair));
  return _mm256_set1_epi32(pair);
}

// Adds the products of R widened rows, kWideRowStride bytes apart, and of a widened panel
// [num_quads, kWidePanelQuadBytes] to the sums of 16 columns.
template <int R>
inline void AddWinogradQuads(const std::byte* rows, const std::byte* panel, int32_t num_quads,
                             __m256i (&sums)[R][2]) {
  for (int32_t i = 0; i < num_quads; ++i, rows += kWideQuadBytes, panel += kWidePanelQuadBytes) {
    const __m256i odd[2] = {Vec::LoadBits(panel), Vec::LoadBits(panel + 64)};
    const __m256i even[2] = {Vec::LoadBits(panel + 32), Vec::LoadBits(panel + 96)};
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const __m256i row_even = BroadcastPair(rows + r * kWideRowStride);
      const __m256i row_odd = BroadcastPair(rows + r * kWideRowStride + 4);
      sums[r][0] = AddWideQuads(sums[r][0], row_even, row_odd, odd[0], even[0]);
      sums[r][1] = AddWideQuads(sums[r][1], row_even, row_odd, odd[1], even[1]);
    }
  }
}

// AddWinogradQuads for sums at c [R, 16], which has row stride ldc.
template <int R>
inline void WinogradTile(const std::byte* rows, const std::byte* panel, int32_t num_quads, float* c,
                         int64_t ldc) {
  __m256i sums[R][2];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    sums[r][0] = Vec::LoadBits(c + r * ldc);
    sums[r][1] = Vec::LoadBits(c + r * ldc + 8);
  }
  AddWinogradQuads<R>(rows, panel, num_quads, sums);
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    StoreBits(sums[r][0], c + r * ldc);
    StoreBits(sums[r][1], c + r * ldc + 8);
  }
}

// Terms [begin, begin + terms) of a panel.
struct PanelPart {
  int32_t panel, begin, terms;
};

// The part that is read behind the part of panel panels.index[p] that begins at `begin`. Its panel
// may be behind the last.
inline PanelPart NextPart(const PanelGroup& panels, int32_t p, int32_t begin, int32_t k) {
  PanelPart part = {panels.next, 0, kWinogradTerms};
  if (p + 1 < panels.count) {
    part = {panels.index[p + 1], begin, kWinogradTerms};
  } else if (begin + kWinogradTerms < k) {
    part = {panels.index[0], begin + kWinogradTerms, kWinogradTerms};
  }
  if (k - part.begin < part.terms) part.terms = k - part.begin;
  return part;
}

// Memory that is read next.
struct MemoryAhead {
  const std::byte* p;
  int64_t bytes;
};

// Calls tile(std::integral_constant<int, R>(), r) for tiles of rows [r, r + R), of
// kWinogradTileRows rows each and fewer at the end. Before each tile an equal share of `ahead` is
// prefetched.
template <class Tile>
inline void ForWinogradTiles(int32_t rows, MemoryAhead ahead, const Tile& tile) {
  static_assert(kWinogradTileRows == 4);
  const int32_t num_tiles = (rows + 3) / 4;
  const int64_t share = (ahead.bytes + num_tiles - 1) / num_tiles;
  const auto prefetch = [&] {
    for (const std::byte* const stop = ahead.p + share; ahead.p < stop; ahead.p += 64) {
      __builtin_prefetch(ahead.p);
    }
  };
  int32_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    prefetch();
    tile(std::integral_constant<int, 4>(), r);
  }
  if (r == rows) return;
  prefetch();
  switch (rows - r) {
    case 3:
      return tile(std::integral_constant<int, 3>(), r);
    case 2:
      return tile(std::integral_constant<int, 2>(), r);
    case 1:
      return tile(std::integral_constant<int, 1>(), r);
  }
}

// Computes the scaled sums of rows [row, row + rows) over the panels, to c [rows, 16 panels.count].
inline void WinogradSums(const GemmCall& call, const PanelGroup& panels, int32_t row, int32_t rows,
                         float* c) {
  alignas(64) std::byte block[kWinogradRows * kWideRowStride];
  alignas(64) std::byte wide[kWinogradQuads * kWidePanelQuadBytes];
  uint32_t row_products[kWinogradRows] = {};  // the sums of the products of each row's pairs
  __m256i products[kPanelsPerGroup][2];       // the same of columns, negated
  for (auto& halves : products) halves[0] = halves[1] = _mm256_setzero_si256();
  const int32_t k = call.w->k();
  const int64_t ldc = kPanelCols * panels.count;
  for (int64_t i = 0; i < rows * ldc; i += 8) StoreBits(_mm256_setzero_si256(), c + i);
  const int8_t* a = static_cast<const int8_t*>(call.a) + row * call.lda;
  for (int32_t begin = 0; begin < k; begin += kWinogradTerms) {
    const int32_t terms = k - begin < kWinogradTerms ? k - begin : kWinogradTerms;
    const int32_t num_quads = (terms + 3) / 4;
    for (int32_t r = 0; r < rows; ++r) {
      row_products[r] += WidenRow(a + r * call.lda + begin, terms, block + r * kWideRowStride);
    }
    const auto part = [&](int32_t panel, int32_t at) {
      return call.w->panel(panel) + int64_t{at} * kPanelCols;
    };
    for (int32_t p = 0; p < panels.count; ++p) {
      WidenPanel(part(panels.index[p], begin), num_quads, wide, products[p]);
      const PanelPart next = NextPart(panels, p, begin, k);
      const MemoryAhead ahead = {part(next.panel, next.begin), int64_t{next.terms} * kPanelCols};
      ForWinogradTiles(rows, ahead, [&](auto tile_rows, int32_t r) {
        WinogradTile<tile_rows>(block + r * kWideRowStride, wide, num_quads,
                                c + r * ldc + kPanelCols * p, ldc);
      });
    }
  }
  for (int32_t p = 0; p < panels.count; ++p) {
    float* sums = c + kPanelCols * p;
    for (int32_t r = 0; r < rows; ++r) {
      const __m256i of_row = _mm256_set1_epi32(static_cast<int32_t>(row_products[r]));
      for (int half = 0; half < 2; ++half) {
        float* at = sums + r * ldc + 8 * half;
        StoreBits(_mm256_add_epi32(Vec::LoadBits(at), _mm256_sub_epi32(products[p][half], of_row)),
                  at);
      }
    }
    ScaleSums<Vec>(call, sums, ldc, row, rows, kPanelCols * panels.index[p]);
  }
}

inline void GemmInt8Winograd(const GemmCall& call) {
  const auto sums = [&](const PanelGroup& panels, int32_t row, int32_t rows, float* c) {
    WinogradSums(call, panels, row, rows, c);
  };
  ForPanelGroups<Vec, kWinogradRows>(call, sums);
}

}  // namespace skein::avx2
