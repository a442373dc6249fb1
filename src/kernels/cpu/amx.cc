// Products of bf16 on the matrix unit: the AMX class of docs/numerics.md. What surrounds them is
// AVX-512 code. See avx512.cc for the order of includes.

// g++ 12 takes the deliberately undefined inputs inside its own intrinsics for mistakes of ours.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include "kernels/cpu/amx_tile.h"
#include "kernels/cpu/ops.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")

#include "kernels/cpu/vec_avx512.h"
// After the vector.
#include "kernels/cpu/gemm_body.h"

namespace skein {
namespace {

using avx512::Vec;

constexpr int32_t kTileRows = 16;
constexpr int32_t kTileK = 32;         // bf16 of k in one tile row
constexpr int32_t kTileRowBytes = 64;  // of every tile: 32 bf16, 16 pairs or 16 f32
constexpr int32_t kTileBytes = kTileRows * kTileRowBytes;

// Up to 32 rows of a, and what of them does not fill a tile row, padded with zeros.
struct RowGroup {
  const uint16_t* a;  // [rows, k], row stride lda elements
  int64_t lda;
  int32_t first;  // row of the call
  int32_t rows;
  alignas(64) uint16_t tail[2 * kTileRows * kTileK];

  // Tile row block `block` (0, 1) of a at k, and the distance of its rows.
  const void* Tile(int block, int32_t k, int32_t k_end) const {
    return k + kTileK <= k_end ? a + block * kTileRows * lda + k
                               : tail + block * kTileRows * kTileK;
  }
  int64_t StrideBytes(int32_t k, int32_t k_end) const {
    return k + kTileK <= k_end ? lda * 2 : kTileRowBytes;
  }
};

void StartGroup(const GemmCall& call, int32_t first, int32_t rows, RowGroup& group) {
  group.first = first;
  group.rows = rows;
  group.lda = call.lda;
  group.a = static_cast<const uint16_t*>(call.a) + first * call.lda;
  const int32_t k = call.w->k();
  const int32_t tail_begin = k / kTileK * kTileK;
  if (tail_begin == k) return;
  for (int32_t r = 0; r < rows; ++r) {
    for (int32_t i = 0; i < kTileK; ++i) {
      const bool inside = tail_begin + i < k;
      group.tail[r * kTileK + i] = inside ? group.a[r * call.lda + tail_begin + i] : uint16_t{0};
    }
  }
}

// Tiles 0 to 3 are sums, 4 and 5 rows of a, 6 and 7 weights.
void Configure(int32_t rows, bool wide) {
  amx::TileConfig config;
  const int32_t upper = rows < kTileRows ? rows : kTileRows;
  const int32_t lower = wide ? upper : rows - kTileRows;
  const int32_t tile_rows[8] = {upper, upper, lower, lower, upper, lower, kTileRows, kTileRows};
  for (int t = 0; t < 8; ++t) {
    config.rows[t] = static_cast<uint8_t>(tile_rows[t]);
    config.row_bytes[t] = kTileRowBytes;
  }
  amx::LoadTileConfig(config);
}

// Sums of 17 to 32 rows and two panels, to c [2 panels][32 rows][16].
void TwoByTwo(const RowGroup& group, int32_t k, const std::byte* const* panels, float* c) {
  amx::ZeroTile<0>();
  amx::ZeroTile<1>();
  amx::ZeroTile<2>();
  amx::ZeroTile<3>();
  for (int32_t i = 0; i < k; i += kTileK) {
    const int64_t stride = group.StrideBytes(i, k);
    const int64_t offset = int64_t{i} / kTileK * kTileBytes;
    amx::LoadTile<4>(group.Tile(0, i, k), stride);
    amx::LoadTile<6>(panels[0] + offset, kTileRowBytes);
    amx::DotTiles<0, 4, 6>();
    amx::LoadTile<7>(panels[1] + offset, kTileRowBytes);
    amx::DotTiles<1, 4, 7>();
    amx::LoadTile<5>(group.Tile(1, i, k), stride);
    amx::DotTiles<2, 5, 6>();
    amx::DotTiles<3, 5, 7>();
  }
  amx::StoreTile<0>(c, kTileRowBytes);
  amx::StoreTile<2>(c + 256, kTileRowBytes);
  amx::StoreTile<1>(c + 512, kTileRowBytes);
  amx::StoreTile<3>(c + 768, kTileRowBytes);
}

// Sums of up to 16 rows and four panels, to c [4 panels][16 rows][16]: four chains in flight where
// few rows stream the weights.
void OneByFour(const RowGroup& group, int32_t k, const std::byte* const* panels, float* c) {
  amx::ZeroTile<0>();
  amx::ZeroTile<1>();
  amx::ZeroTile<2>();
  amx::ZeroTile<3>();
  for (int32_t i = 0; i < k; i += kTileK) {
    const int64_t offset = int64_t{i} / kTileK * kTileBytes;
    amx::LoadTile<4>(group.Tile(0, i, k), group.StrideBytes(i, k));
    amx::LoadTile<6>(panels[0] + offset, kTileRowBytes);
    amx::LoadTile<7>(panels[1] + offset, kTileRowBytes);
    amx::DotTiles<0, 4, 6>();
    amx::DotTiles<1, 4, 7>();
    amx::LoadTile<6>(panels[2] + offset, kTileRowBytes);
    amx::LoadTile<7>(panels[3] + offset, kTileRowBytes);
    amx::DotTiles<2, 4, 6>();
    amx::DotTiles<3, 4, 7>();
  }
  amx::StoreTile<0>(c, kTileRowBytes);
  amx::StoreTile<1>(c + 256, kTileRowBytes);
  amx::StoreTile<2>(c + 512, kTileRowBytes);
  amx::StoreTile<3>(c + 768, kTileRowBytes);
}

// All columns of the call for one group of rows. Where panels run out, the last one stands in for
// the missing, and their sums are dropped.
void GroupTimesPanels(const GemmCall& call, const RowGroup& group) {
  const bool wide = group.rows <= kTileRows;
  const int32_t count = wide ? 4 : 2;
  const int32_t c_rows = wide ? kTileRows : 2 * kTileRows;
  const int32_t end = (call.n_end + kPanelCols - 1) / kPanelCols;
  alignas(64) float c[4 * kTileRows * kPanelCols];
  Configure(group.rows, wide);
  for (int32_t panel = call.n_begin / kPanelCols; panel < end; panel += count) {
    const std::byte* panels[4];
    for (int32_t p = 0; p < count; ++p) {
      panels[p] = call.w->panel(panel + p < end ? panel + p : end - 1);
    }
    wide ? OneByFour(group, call.w->k(), panels, c) : TwoByTwo(group, call.w->k(), panels, c);
    for (int32_t p = 0; p < count && panel + p < end; ++p) {
      FinishPanel<Vec>(call, c + p * c_rows * kPanelCols, kPanelCols, group.first, group.rows,
                       (panel + p) * kPanelCols);
    }
  }
}

void GemmBf16(const GemmCall& call) {
  // Weights of so many panels stay in the second-level cache while all rows pass over them.
  constexpr int32_t kPanelsPerBlock = 16;
  RowGroup group;
  GemmCall block = call;
  for (int32_t n = call.n_begin; n < call.n_end; n += kPanelsPerBlock * kPanelCols) {
    block.n_begin = n;
    block.n_end = call.n_end - n < kPanelsPerBlock * kPanelCols ? call.n_end
                                                                : n + kPanelsPerBlock * kPanelCols;
    for (int32_t row = 0; row < call.m; row += 2 * kTileRows) {
      const int32_t left = call.m - row;
      StartGroup(call, row, left < 2 * kTileRows ? left : 2 * kTileRows, group);
      GroupTimesPanels(block, group);
    }
  }
  amx::ReleaseTiles();
}

}  // namespace

CpuOps AmxOps() {
  CpuOps ops = Avx512Ops();
  ops.gemm_bf16 = GemmBf16;
  ops.attention_bf16 = AmxAttention;
  return ops;
}

}  // namespace skein
