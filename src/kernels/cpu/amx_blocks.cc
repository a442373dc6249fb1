// Products of matrices of blocks on the matrix unit, for many rows. The unit gives the exact sums
// of each block of 32 terms; AVX-512 code scales them and adds them up. avx512.cc explains the
// order of includes.

// g++ 12 warns of deliberately undefined inputs inside its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include "kernels/cpu/amx_tile.h"
#include "kernels/cpu/ops.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")

#include "kernels/cpu/quads_avx512.h"
#include "kernels/cpu/vec_avx512.h"
// This body must come after the vector type that it uses.
#include "kernels/cpu/gemm_blocks_body.h"

namespace skein {
namespace {

using avx512::Vec;

// Unpacks to signed values: both operands of the unit are signed.
struct Blocks : avx512::Quads512 {
  static constexpr int32_t kSignedZero = 0;
  static Quads FromOffset(Quads quads) { return _mm512_xor_si512(quads, _mm512_set1_epi8(-128)); }
};

constexpr int32_t kTileRows = 16;
constexpr int32_t kTileSums = 16 * kTileRows;
constexpr int32_t kUnpackedBytes = kQuadsOfBlock * kQuadBytes;  // of a block
constexpr int32_t kMaxPanels = 2;  // panels of which a chunk of blocks is unpacked at a time
constexpr int32_t kMaxRows = 256;  // rows whose sums are in memory at a time
// The most blocks of 16 rows that are multiplied by all panels before the next rows: 0.8 MB, which
// stay in the second-level cache.
constexpr int32_t kMaxRowTiles = kMaxAmxBlockTerms / kBlockTerms;

// A unit is one product of tiles: 16 rows times a part of a block of one panel. Units are computed
// in groups, so that each has registers of its own for its sums.
constexpr int32_t kGroup = 4;
constexpr int32_t kGroupSums = kGroup * kTileSums;

// The scales of one block of 16 rows, and the scaled sums.
struct RowScales {
  alignas(64) float scales[kTileRows];
  alignas(64) float scaled_sums[kTileRows];
};

using RowTile = int8_t[kTileRows][kBlockTerms];

struct Scratch {
  // [tiles, blocks of k], padded with zeros to whole groups of blocks for each tile.
  alignas(64) RowTile rows[kMaxRowTiles];
  RowScales row_scales[kMaxRowTiles];
  alignas(64) float c[kMaxPanels * kMaxRows * 16];
  alignas(64) float sums[2][kGroupSums];  // int32 [units, 16 rows, 16 columns]
  alignas(64) std::byte unpacked[kMaxPanels][kBlocksPerChunk * kUnpackedBytes];
  TileScales scales[kMaxPanels];
};

void Configure(int32_t part_bytes) {
  amx::TileConfig config;
  for (int t = 0; t < 8; ++t) {
    const bool rows = t == 4 || t == 5, weights = t >= 6;
    config.rows[t] = static_cast<uint8_t>(weights ? part_bytes / 4 : kTileRows);
    config.row_bytes[t] = static_cast<uint16_t>(rows ? part_bytes : 64);
  }
  amx::LoadTileConfig(config);
}

// The operands of a group of units: blocks of rows, and of a panel, unpacked.
struct Operands {
  const RowTile* rows;
  const std::byte* blocks;
};

// Multiplies unit kUnit of a group. The sums are in tile kUnit.
template <int kParts, int kUnit>
inline __attribute__((always_inline)) void Multiply(const Operands& group) {
  constexpr int kRows = 4 + kUnit % 2, kWeights = 6 + kUnit % 2;
  constexpr int kPartTerms = kBlockTerms / kParts;
  amx::LoadTile<kRows>(group.rows[kUnit / kParts][0] + kUnit % kParts * kPartTerms, kBlockTerms);
  amx::LoadTile<kWeights>(group.blocks + kUnit * (kUnpackedBytes / kParts), kQuadBytes);
  amx::ZeroTile<kUnit>();
  amx::DotInt8Tiles<kUnit, kRows, kWeights>();
}

template <int kUnit>
inline __attribute__((always_inline)) void StoreSums(float* sums) {
  amx::StoreTile<kUnit>(sums + kUnit * kTileSums, 64);
}

// Multiplies a group, but leaves the sums of the last two units in their tiles.
template <int kParts>
void MultiplyGroup(const Operands& group, float* sums) {
  Multiply<kParts, 0>(group);
  Multiply<kParts, 1>(group);
  Multiply<kParts, 2>(group);
  StoreSums<0>(sums);
  Multiply<kParts, 3>(group);
  StoreSums<1>(sums);
}

// The sums of 16 rows and 16 columns.
struct Sums {
  Vec row[kTileRows];
};

// Adds one block, whose integer sums are at `sums`.
template <class Kind>
inline __attribute__((always_inline)) void Add(const RowScales& rows, const TileScales& scales,
                                               int32_t block, const float* sums, Sums& acc) {
  const PanelBlock<Vec> of_panel = BlockOf<Vec, Kind>(scales, block);
  const float* high = sums + (Kind::kParts - 1) * kTileSums;
#pragma GCC unroll 16
  for (int r = 0; r < kTileRows; ++r) {
    const RowBlock row = {.scale = rows.scales[r], .scaled_sum = rows.scaled_sums[r]};
    acc.row[r] = AddBlock<Vec, Kind>(row, of_panel, Vec::LoadInts(sums + 16 * r),
                                     Vec::LoadInts(high + 16 * r), acc.row[r]);
  }
}

// Adds the sums of a group to `acc`: of `count` blocks, whose last two units are still in tiles.
// Meanwhile, if kMultiply is set, it multiplies the next group.
template <class Kind, bool kMultiply>
inline __attribute__((always_inline)) void AddGroup(const RowScales* rows, const TileScales& scales,
                                                    int32_t block, int32_t count, float* sums,
                                                    const Operands& next, float* next_sums,
                                                    Sums& acc) {
  constexpr int kParts = Kind::kParts;
  const auto add = [&](int unit) __attribute__((always_inline)) {
    const int b = unit / kParts;
    if (unit % kParts != kParts - 1 || b >= count) return;
    Add<Kind>(rows[b], scales, block + b, sums + b * kParts * kTileSums, acc);
  };
  if constexpr (kMultiply) Multiply<kParts, 0>(next);
  StoreSums<2>(sums);
  add(0);
  if constexpr (kMultiply) Multiply<kParts, 1>(next);
  StoreSums<3>(sums);
  add(1);
  if constexpr (kMultiply) {
    Multiply<kParts, 2>(next);
    StoreSums<0>(next_sums);
  }
  add(2);
  if constexpr (kMultiply) {
    Multiply<kParts, 3>(next);
    StoreSums<1>(next_sums);
  }
  add(3);
}

// Unpacks blocks [first, first + count) of a panel to signed values, without their zero point, and
// pads them with zeros to a whole group. Prefetches the panel that comes next.
template <class Kind>
void Unpack(const PackedWeight::BlockPanel& panel, const BlockAhead& next, int32_t first,
            int32_t count, std::byte* unpacked) {
  using Source = typename Kind::Source;
  const __m512i zero = _mm512_set1_epi8(int8_t(kZeroPoint<Blocks, Kind>));
  for (int32_t b = first; b < first + count; ++b, unpacked += kUnpackedBytes) {
    typename Blocks::Quads w[kQuadsOfBlock];
    next.Prefetch(b);
    Source::Load(panel.values + int64_t{b} * Source::kBytes, w);
#pragma GCC unroll 8
    for (int i = 0; i < kQuadsOfBlock; ++i) {
      Blocks::Store(_mm512_sub_epi8(w[i], zero), unpacked + i * kQuadBytes);
    }
  }
  for (; count % kGroup != 0; ++count, unpacked += kUnpackedBytes) {
    for (int i = 0; i < kQuadsOfBlock; ++i) {
      Blocks::Store(_mm512_setzero_si512(), unpacked + i * kQuadBytes);
    }
  }
}

// The first row of a tile of rows. The last tile ends with the last row, so it may have rows of the
// tile before it, too.
int64_t RowOf(const GemmCall& call, int32_t row) {
  return row + kTileRows <= call.m ? row : call.m - kTileRows;
}

// Blocks of k, padded to whole groups.
int32_t PaddedBlocks(int32_t k) { return (k / kBlockTerms + kGroup - 1) / kGroup * kGroup; }

// Copies rows [row, row + 16 tiles) to out and scales [tiles, padded blocks].
void PackRows(const GemmCall& call, int32_t row, int32_t tiles, RowTile* out, RowScales* scales) {
  const int32_t num_blocks = call.w->k() / kBlockTerms, padded = PaddedBlocks(call.w->k());
  const int64_t stride = call.lda / kBlockTerms;
  for (int32_t t = 0; t < tiles; ++t, row += kTileRows) {
    const int64_t first = RowOf(call, row);
    const RowBlock* blocks = call.a_blocks + first * stride;
    const int8_t* q = static_cast<const int8_t*>(call.a) + first * call.lda;
    for (int32_t b = 0; b < num_blocks; ++b, ++out, ++scales, ++blocks, q += kBlockTerms) {
#pragma GCC unroll 16
      for (int r = 0; r < kTileRows; ++r) {
        const auto* from = reinterpret_cast<const __m256i*>(q + r * call.lda);
        _mm256_store_si256(reinterpret_cast<__m256i*>((*out)[r]), _mm256_loadu_si256(from));
        scales->scales[r] = blocks[r * stride].scale;
        scales->scaled_sums[r] = blocks[r * stride].scaled_sum;
      }
    }
    for (int32_t b = num_blocks; b < padded; ++b, ++out, ++scales) {
      __builtin_memset(*out, 0, sizeof(*out));
      *scales = {};
    }
  }
}

// A tile of rows times the blocks of a panel that are unpacked.
template <class Kind>
class ChunkSums {
 public:
  static constexpr int kParts = Kind::kParts;
  static constexpr int kGroupBlocks = kGroup / kParts;

  ChunkSums(Scratch& scratch, int32_t padded, int32_t first, int32_t count, int32_t num_panels)
      : scratch_(scratch),
        padded_(padded),
        first_(first),
        count_(count),
        num_panels_(num_panels),
        groups_((count + kGroupBlocks - 1) / kGroupBlocks) {}

  void Run(int32_t tiles, float* c) {
    MultiplyGroup<kParts>(OperandsOf(0, 0, 0), scratch_.sums[0]);
    for (int32_t t = 0; t < tiles; ++t) {
      for (int32_t p = 0; p < num_panels_; ++p) {
        const bool last_panel = p + 1 == num_panels_;
        const int32_t next_t = last_panel ? t + 1 : t, next_p = last_panel ? 0 : p + 1;
        RunTile(t, p, next_t < tiles ? OperandsOf(next_t, next_p, 0) : Operands{},
                c + p * kMaxRows * 16 + t * kTileSums);
      }
    }
  }

 private:
  const RowTile* RowsOf(int32_t tile) const { return scratch_.rows + tile * padded_ + first_; }
  Operands OperandsOf(int32_t tile, int32_t panel, int32_t group) const {
    const int32_t block = group * kGroupBlocks;
    return {RowsOf(tile) + block, scratch_.unpacked[panel] + block * kUnpackedBytes};
  }

  // Adds the sums of one tile of rows and one panel to c [16, 16]. Its first group has been
  // multiplied; the first group of what comes next, if anything does, is multiplied here.
  void RunTile(int32_t tile, int32_t panel, const Operands& next, float* c) {
    const RowScales* rows = scratch_.row_scales + tile * padded_ + first_;
    Sums acc;
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) acc.row[r] = Vec::Load(c + 16 * r);
    for (int32_t g = 0; g < groups_; ++g, rows += kGroupBlocks) {
      const int32_t block = g * kGroupBlocks;
      const TileScales& scales = scratch_.scales[panel];
      float* sums = scratch_.sums[parity_];
      float* next_sums = scratch_.sums[parity_ ^ 1];
      parity_ ^= 1;
      const Operands operands = g + 1 < groups_ ? OperandsOf(tile, panel, g + 1) : next;
      const int32_t left = count_ - block;
      if (operands.rows == nullptr) {
        AddGroup<Kind, false>(rows, scales, block, left, sums, operands, next_sums, acc);
      } else if (left < kGroupBlocks) {
        AddGroup<Kind, true>(rows, scales, block, left, sums, operands, next_sums, acc);
      } else {
        AddGroup<Kind, true>(rows, scales, block, kGroupBlocks, sums, operands, next_sums, acc);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) acc.row[r].Store(c + 16 * r);
  }

  Scratch& scratch_;
  const int32_t padded_, first_, count_, num_panels_, groups_;
  int32_t parity_ = 0;
};

// Computes the sums of the rows in scratch and of panels of one format, to c [panels, kMaxRows,
// 16].
template <class Kind>
void PanelSums(int32_t k, const PackedWeight::BlockPanel* panels, int32_t num_panels, int32_t rows,
               Scratch& scratch, float* c) {
  const int32_t num_blocks = k / kBlockTerms;
  const int32_t tiles = (rows + kTileRows - 1) / kTileRows;
  for (int32_t p = 0; p < num_panels; ++p) {
    for (int32_t i = 0; i < tiles * kTileRows; ++i) {
      Vec::Set(0).Store(c + (p * kMaxRows + i) * 16);
    }
  }
  Configure(kBlockTerms / Kind::kParts);
  for (int32_t first = 0; first < num_blocks; first += kBlocksPerChunk) {
    const int32_t left = num_blocks - first;
    const int32_t count = left < kBlocksPerChunk ? left : kBlocksPerChunk;
    for (int32_t p = 0; p < num_panels; ++p) {
      LoadScales<Vec>(TraitsOf(panels[p].format).scales, panels[p].scales, first, count,
                      &scratch.scales[p]);
      Unpack<Kind>(panels[p], AheadOf(panels[p], k, num_panels), first, count, scratch.unpacked[p]);
    }
    ChunkSums<Kind>(scratch, PaddedBlocks(k), first, count, num_panels).Run(tiles, c);
  }
}

// Computes the sums of panels (see PanelSums), of neighbours with the same format together.
void SumsOfPanels(int32_t k, const PackedWeight::BlockPanel* panels, int32_t num_panels,
                  int32_t rows, Scratch& scratch) {
  int32_t end = 0;
  for (int32_t p = 0; p < num_panels; p = end) {
    end = p + 1;
    while (end < num_panels && panels[end].format == panels[p].format) ++end;
    ForKind<Blocks>(panels[p].format, [&](auto kind) {
      PanelSums<decltype(kind)>(k, panels + p, end - p, rows, scratch,
                                scratch.c + p * kMaxRows * 16);
    });
  }
}

// Writes the results of a panel's `rows` rows from `row` on.
void Finish(const GemmCall& call, const float* c, const float* up, int32_t row, int32_t rows,
            int32_t column) {
  const int32_t rest = rows % kTileRows, full = rows - rest;
  if (full > 0) FinishPanel<Vec>(call, c, up, 16, row, full, column);
  if (rest == 0) return;
  const int64_t skipped = 16 * (full + kTileRows - rest);
  FinishPanel<Vec>(call, c + skipped, up == nullptr ? nullptr : up + skipped, 16, row + full, rest,
                   column);
}

}  // namespace

void AmxGemmBlocks(const GemmCall& call) {
  Scratch scratch;
  const bool gated = call.up_begin > 0;
  const int32_t end = (call.n_end + 15) / 16;
  const int32_t fitting = kMaxRowTiles / PaddedBlocks(call.w->k()) * kTileRows;
  const int32_t most = fitting < kMaxRows ? fitting : kMaxRows;
  for (int32_t row = 0; row < call.m; row += most) {
    const int32_t rows = call.m - row < most ? call.m - row : most;
    PackRows(call, row, (rows + kTileRows - 1) / kTileRows, scratch.rows, scratch.row_scales);
    int32_t count = 0;
    for (int32_t panel = call.n_begin / 16; panel < end; panel += count) {
      const int32_t most_panels = gated ? kMaxPanels / 2 : kMaxPanels;
      count = end - panel < most_panels ? end - panel : most_panels;
      PackedWeight::BlockPanel panels[kMaxPanels];
      for (int32_t p = 0; p < count; ++p) {
        panels[p] = call.w->block_panel(panel + p);
        if (gated) panels[count + p] = call.w->block_panel(panel + p + call.up_begin / 16);
      }
      SumsOfPanels(call.w->k(), panels, gated ? 2 * count : count, rows, scratch);
      for (int32_t p = 0; p < count; ++p) {
        const float* c = scratch.c + p * kMaxRows * 16;
        Finish(call, c, gated ? c + count * kMaxRows * 16 : nullptr, row, rows, 16 * (panel + p));
      }
    }
  }
  amx::ReleaseTiles();
}

}  // namespace skein
