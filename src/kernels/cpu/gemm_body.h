#pragma once

// Products of the FMA class. math_body.h says how this file is used.

#include "kernels/cpu/math_body.h"
#include "kernels/cpu/ops.h"

namespace skein {

// The size in bytes of each of a panel's k terms.
template <bool kBf16>
inline constexpr int64_t kTermBytes = 16 * (kBf16 ? 2 : 4);

// One register tile: continues c[r][16 p + j] by fma(a[r][i], panel p's column j at i, c) for i =
// 0, 1, ..., k - 1. a: [R, k] f32 with row stride lda; c: [R, 16 P] with row stride ldc. kBf16: the
// panels hold pairs of bf16, otherwise f32 (in PackedWeight's order). With several rows, `ahead` is
// the memory that is read next: `ahead_step` bytes of it are prefetched for every 64 bytes of a
// panel. With up to V::kStreamRows rows, the tile prefetches from its own panels. With kFar, it
// also prefetches as many bytes of far[p] as it reads of panel p, to the second-level cache.
template <class V, bool kBf16, int R, int P, bool kFar>
inline void Tile(const float* a, int64_t lda, const std::byte* const* panels, int32_t k, float* c,
                 int64_t ldc, const std::byte* ahead, int64_t ahead_step,
                 const std::byte* const* far) {
  V acc[R][P];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) acc[r][p] = V::Load(c + r * ldc + 16 * p);
  }
  constexpr bool kStreams = R <= V::kStreamRows;
  constexpr int64_t kStepBytes = 64;  // 16 columns of one f32, or of one pair of bf16
  int32_t i = 0;
  int64_t offset = 0;
  if constexpr (kBf16) {
    for (; i + 2 <= k; i += 2, offset += kStepBytes, ahead += ahead_step) {
      V w[P];
      if constexpr (!kStreams) V::Prefetch(ahead);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        if constexpr (kStreams) V::Prefetch(panels[p] + offset + V::kStreamAhead);
        if constexpr (kFar) __builtin_prefetch(far[p] + offset, 0, 2);
        w[p] = V::LoadEven(panels[p] + offset);
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const V x = V::Set(a[r * lda + i]);
#pragma GCC unroll 8
        for (int p = 0; p < P; ++p) acc[r][p] = Fma(x, w[p], acc[r][p]);
      }
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) w[p] = V::LoadOdd(panels[p] + offset);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const V x = V::Set(a[r * lda + i + 1]);
#pragma GCC unroll 8
        for (int p = 0; p < P; ++p) acc[r][p] = Fma(x, w[p], acc[r][p]);
      }
    }
  }
  // With bf16: the even half of a last pair.
  for (; i < k; ++i, offset += kStepBytes, ahead += ahead_step) {
    V w[P];
    if constexpr (!kStreams) V::Prefetch(ahead);
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      if constexpr (kStreams) V::Prefetch(panels[p] + offset + V::kStreamAhead);
      if constexpr (kFar) __builtin_prefetch(far[p] + offset, 0, 2);
      if constexpr (kBf16) {
        w[p] = V::LoadEven(panels[p] + offset);
      } else {
        w[p] = V::Load(reinterpret_cast<const float*>(panels[p] + offset));
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const V x = V::Set(a[r * lda + i]);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) acc[r][p] = Fma(x, w[p], acc[r][p]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) acc[r][p].Store(c + r * ldc + 16 * p);
  }
}

// Tile for a number of rows in [1, kMaxRows] that is known only at run time.
template <class V, bool kBf16, int kMaxRows, int P, bool kFar>
inline void TileOfRows(int rows, const float* a, int64_t lda, const std::byte* const* panels,
                       int32_t k, float* c, int64_t ldc, const std::byte* ahead, int64_t ahead_step,
                       const std::byte* const* far) {
  if (rows == kMaxRows) {
    return Tile<V, kBf16, kMaxRows, P, kFar>(a, lda, panels, k, c, ldc, ahead, ahead_step, far);
  }
  if constexpr (kMaxRows > 1) {
    TileOfRows<V, kBf16, kMaxRows - 1, P, kFar>(rows, a, lda, panels, k, c, ldc, ahead, ahead_step,
                                                far);
  }
}

// The number of rows of each register tile, so that there are as few tiles of at most `most` rows
// as possible, all of about the same height. A tile of few rows would wait for the latency of its
// sums.
inline int RowsPerTile(int rows, int most) {
  const int tiles = (rows + most - 1) / most;
  return (rows + tiles - 1) / tiles;
}

// Computes the P panels at `panels` for any number of rows (see Tile). The memory at `next` is read
// after the panels. Every tile prefetches an equal part of that memory, so that the load on memory
// is even.
template <class V, bool kBf16, int P, bool kFar>
inline void TilesOfRows(int rows, const float* a, int64_t lda, const std::byte* const* panels,
                        int32_t k, float* c, int64_t ldc, const std::byte* next,
                        const std::byte* const* far) {
  const int most = RowsPerTile(rows, V::kTileRows);
  const int64_t step = 64 * most / rows;
  const int64_t steps = kBf16 ? (k + 1) / 2 : k;
  for (int r = 0; r < rows; r += most, next += step * steps) {
    TileOfRows<V, kBf16, V::kTileRows, P, kFar>(rows - r < most ? rows - r : most, a + r * lda, lda,
                                                panels, k, c + r * ldc, ldc, next, step, far);
  }
}

// Computes any number of panels for any number of rows (see Tile). far: null without kFar.
template <class V, bool kBf16, bool kFar = false>
inline void TilesOfPanels(int rows, const float* a, int64_t lda, const std::byte* const* panels,
                          int num_panels, int32_t k, float* c, int64_t ldc,
                          const std::byte* const* far = nullptr) {
  const auto far_of = [&](int panel) { return kFar ? far + panel : nullptr; };
  int p = 0;
  if (rows <= V::kStreamRows) {
    for (; p + V::kStreamPanels <= num_panels; p += V::kStreamPanels) {
      TileOfRows<V, kBf16, V::kStreamRows, V::kStreamPanels, kFar>(
          rows, a, lda, panels + p, k, c + 16 * p, ldc, panels[p], 0, far_of(p));
    }
  }
  // After the last panel, the next memory is the first panel's next block of k, if there is one.
  const auto next = [&](int panel) {
    return panel < num_panels ? panels[panel] : panels[0] + k * kTermBytes<kBf16>;
  };
  for (; p + V::kTilePanels <= num_panels; p += V::kTilePanels) {
    TilesOfRows<V, kBf16, V::kTilePanels, kFar>(rows, a, lda, panels + p, k, c + 16 * p, ldc,
                                                next(p + V::kTilePanels), far_of(p));
  }
  for (; p < num_panels; ++p) {
    TilesOfRows<V, kBf16, 1, kFar>(rows, a, lda, panels + p, k, c + 16 * p, ldc, next(p + 1),
                                   far_of(p));
  }
}

// dst[r][0, k) = a[r][0, k) widened to f32; dst has row stride k.
template <class V>
inline void WidenRows(const uint16_t* a, int64_t lda, int rows, int32_t k, float* dst) {
  for (int r = 0; r < rows; ++r) {
    for (int32_t i = 0; i < k; i += 16) {
      const int n = k - i < 16 ? k - i : 16;
      V::LoadBf16First(a + r * lda + i, n).StoreFirst(dst + int64_t{r} * k + i, n);
    }
  }
}

// 16 sums of int8 products of a row, from `column` on, times the scales of row and columns.
template <class V>
inline V Scaled(const GemmCall& call, V sums, int32_t row, int32_t column) {
  return sums * V::Set(call.a_scales[row]) * V::Load(call.w->scales() + column);
}

// Turns sums of int8 products c [rows, 16] of one panel into f32, in place.
template <class V>
inline void ScaleSums(const GemmCall& call, float* c, int64_t ldc, int32_t row_begin, int32_t rows,
                      int32_t column) {
  for (int32_t r = 0; r < rows; ++r, c += ldc) {
    Scaled(call, V::LoadInts(c), row_begin + r, column).Store(c);
  }
}

// Writes the call's results from the finished sums c [rows, 16] of one panel. If the call is gated,
// `up` [rows, 16] holds the sums of the panel's up part. Both have row stride ldc.
template <class V>
inline void FinishPanel(const GemmCall& call, const float* c, const float* up, int64_t ldc,
                        int32_t row_begin, int32_t rows, int32_t column) {
  const int n = call.n_end - column < 16 ? call.n_end - column : 16;
  const int32_t out_column = column - call.out_begin;
  const V zero = V::Set(0.0f);
  const bool biased = call.bias != nullptr;
  const bool activated = up == nullptr && call.activation != Activation::kNone;
  if (n == 16 && !biased && up == nullptr && !activated && call.out_dtype == DType::kF32) {
    float* out = static_cast<float*>(call.out) + row_begin * call.ldo + out_column;
    for (int32_t r = 0; r < rows; ++r, out += call.ldo, c += ldc) {
      const V v = V::Load(c);
      (call.add_to_out ? V::Load(out) + v : v).Store(out);
    }
    return;
  }
  const V bias = biased ? V::LoadFirst(call.bias + column, n) : zero;
  const V up_bias = biased && up != nullptr ? V::Load(call.bias + call.up_begin + column) : zero;
  for (int32_t r = 0; r < rows; ++r) {
    const int64_t index = call.out_tiles ? RowTileIndex(row_begin + r, out_column, call.ldo)
                                         : (row_begin + r) * call.ldo + out_column;
    V v = V::Load(c + r * ldc);
    if (biased) v = v + bias;
    if (up != nullptr) {
      const V u = V::Load(up + r * ldc);
      v = Gated(call.activation, v, biased ? u + up_bias : u);
    }
    if (activated) v = Activated(call.activation, v);
    if (call.add_to_out) v = V::LoadFirst(static_cast<const float*>(call.out) + index, n) + v;
    StoreAs(v, call.out, call.out_dtype, index, n);
  }
}

inline constexpr int32_t kRowsPerChunk = 24;  // rows whose sums are kept on the stack
inline constexpr int32_t kPanelsPerGroup = 8;
inline constexpr int32_t kMostPanelsPerGroup = 16;

// Panels of one matrix that are computed at the same time; if the product is gated, first those of
// the gate, then those of up.
struct PanelGroup {
  int32_t count = 0;
  int32_t index[kMostPanelsPerGroup];
  int32_t next = 0;  // the panel from which the computation goes on; may be behind the last
};

// Computes a product. sums(panels, row, rows, c) computes the sums of rows [row, row + rows), at
// most kRows rows, over the panels, at most kPanels, to c [rows, 16 panels.count].
template <class V, int32_t kRows, int32_t kPanels = kPanelsPerGroup, class Sums>
inline void ForPanelGroups(const GemmCall& call, const Sums& sums) {
  static_assert(kPanels <= kMostPanelsPerGroup);
  alignas(64) float c[kRows * kPanelCols * kPanels];
  const bool gated = call.up_begin > 0;
  const int32_t end = (call.n_end + kPanelCols - 1) / kPanelCols;
  const int32_t most = gated ? kPanels / 2 : kPanels;
  for (int32_t first = call.n_begin / kPanelCols; first < end; first += most) {
    const int32_t count = end - first < most ? end - first : most;
    PanelGroup panels = {.count = gated ? 2 * count : count, .next = first + count};
    for (int32_t p = 0; p < count; ++p) {
      panels.index[p] = first + p;
      if (gated) panels.index[count + p] = first + call.up_begin / kPanelCols + p;
    }
    for (int32_t row = 0; row < call.m; row += kRows) {
      const int32_t rows = call.m - row < kRows ? call.m - row : kRows;
      sums(panels, row, rows, c);
      for (int32_t p = 0; p < count; ++p) {
        FinishPanel<V>(call, c + kPanelCols * p, gated ? c + kPanelCols * (count + p) : nullptr,
                       kPanelCols * panels.count, row, rows, kPanelCols * (first + p));
      }
    }
  }
}

// The number of elements of `a` that are widened to f32 at a time, so that they stay in the
// first-level cache.
inline constexpr int32_t kBlockElements = 4096;

// Computes the sums of rows [row_begin, row_begin + rows), at most kRowsPerChunk rows, over at most
// kPanelsPerGroup panels, to c [rows, 16 num_panels]. The loop over blocks of k is outside the
// loops over panels and rows. So rows are widened once for all panels, and a panel's part of a
// block stays in the first-level cache. Between blocks, c is stored in memory, which is exact.
template <class V, bool kBf16>
inline void PanelSums(const GemmCall& call, const std::byte* const* panels, int num_panels,
                      int32_t row_begin, int32_t rows, float* c) {
  alignas(64) float a_block[kBf16 ? kBlockElements : 1];
  const int32_t k = call.w->k();
  const int64_t ldc = 16 * num_panels;
  const int32_t k_block = kBlockElements / rows / 32 * 32;
  for (int64_t i = 0; i < rows * ldc; i += 16) V::Set(0.0f).Store(c + i);
  for (int32_t k_begin = 0; k_begin < k; k_begin += k_block) {
    const int32_t k_count = k - k_begin < k_block ? k - k_begin : k_block;
    const int64_t a_offset = row_begin * call.lda + k_begin;
    const std::byte* parts[kPanelsPerGroup];
    for (int p = 0; p < num_panels; ++p) parts[p] = panels[p] + k_begin * kTermBytes<kBf16>;
    if constexpr (kBf16) {
      WidenRows<V>(static_cast<const uint16_t*>(call.a) + a_offset, call.lda, rows, k_count,
                   a_block);
      TilesOfPanels<V, true>(rows, a_block, k_count, parts, num_panels, k_count, c, ldc);
    } else {
      TilesOfPanels<V, false>(rows, static_cast<const float*>(call.a) + a_offset, call.lda, parts,
                              num_panels, k_count, c, ldc);
    }
  }
}

template <class V, bool kBf16>
void Gemm(const GemmCall& call) {
  const auto sums = [&](const PanelGroup& group, int32_t row, int32_t rows, float* c) {
    const std::byte* panels[kPanelsPerGroup];
    for (int32_t p = 0; p < group.count; ++p) panels[p] = call.w->panel(group.index[p]);
    PanelSums<V, kBf16>(call, panels, group.count, row, rows, c);
  };
  ForPanelGroups<V, kRowsPerChunk>(call, sums);
}

}  // namespace skein
