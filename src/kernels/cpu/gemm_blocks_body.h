#pragma once

// Products of matrices of blocks with rows in int8. math_body.h says how this file is used. `B` has
// the operations on quads, which are 4 elements of each of 16 columns (vec_*.h; scalar::Blocks
// describes them). The integer sums of a block are exact, so their order does not matter. The f32
// sum of a column adds the column's blocks in order.

#include <type_traits>

#include "kernels/block_panel.h"
#include "kernels/cpu/gemm_body.h"

namespace skein {

inline constexpr int32_t kQuadsOfBlock = 8;
inline constexpr int32_t kQuadBytes = 64;
// Blocks of a panel that are unpacked at a time at least: a superblock, which shares scales.
inline constexpr int32_t kBlocksPerChunk = kBlocksOfSuper;
// Blocks of a panel that a tile of several rows adds before its sums go back to memory. The way
// there and back costs almost as much as one more block. Unpacked values u take 8 KiB, scales 3
// KiB. A single row takes a superblock: while more scales are loaded, memory would wait.
inline constexpr int32_t kBlocksPerTile = 2 * kBlocksPerChunk;

// Each struct below unpacks the values u of a block for the products of the instruction set; a zero
// point is subtracted later. Load reads the block at `p` [kBytes]. kBits is the number of bits of a
// value; 8 means signed values.
template <class B>
struct FourBits {
  static constexpr int kBits = 4, kBytes = 256;
  static void Load(const std::byte* p, typename B::Quads (&w)[kQuadsOfBlock]) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const typename B::Quads both = B::Load(p + i * kQuadBytes);
      w[2 * i] = B::LowHalves(both);
      w[2 * i + 1] = B::HighHalves(both);
    }
  }
};

// Values of a codebook, plus kOffset. Those of MXFP4 lie in [-16, 16) and become unsigned values of
// 5 bits: on AVX2 their products are cheaper than those of signed ones.
template <class B, Codebook kCodebook, int kBitsOfValue, int kOffset>
struct LookedUp {
  static constexpr int kBits = kBitsOfValue, kBytes = 256;
  static void Load(const std::byte* p, typename B::Quads (&w)[kQuadsOfBlock]) {
    FourBits<B>::Load(p, w);
#pragma GCC unroll 8
    for (auto& quads : w) quads = B::template LookUp<kCodebook, kOffset>(quads);
  }
};

template <class B>
struct FiveBits {
  static constexpr int kBits = 5, kBytes = 320;
  static void Load(const std::byte* p, typename B::Quads (&w)[kQuadsOfBlock]) {
    FourBits<B>::Load(p, w);
    const typename B::Quads high = B::Load(p + 256);
    w[0] = B::Or(w[0], B::template UpperBits<4, 0x10>(high));
    w[1] = B::Or(w[1], B::template UpperBits<3, 0x10>(high));
    w[2] = B::Or(w[2], B::template UpperBits<2, 0x10>(high));
    w[3] = B::Or(w[3], B::template UpperBits<1, 0x10>(high));
    w[4] = B::Or(w[4], B::template UpperBits<0, 0x10>(high));
    w[5] = B::Or(w[5], B::template UpperBits<-1, 0x10>(high));
    w[6] = B::Or(w[6], B::template UpperBits<-2, 0x10>(high));
    w[7] = B::Or(w[7], B::template UpperBits<-3, 0x10>(high));
  }
};

template <class B>
struct SixBits {
  static constexpr int kBits = 6, kBytes = 384;
  static void Load(const std::byte* p, typename B::Quads (&w)[kQuadsOfBlock]) {
    FourBits<B>::Load(p, w);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const typename B::Quads high = B::Load(p + 256 + i * kQuadBytes);
      w[4 * i] = B::Or(w[4 * i], B::template UpperBits<4, 0x30>(high));
      w[4 * i + 1] = B::Or(w[4 * i + 1], B::template UpperBits<2, 0x30>(high));
      w[4 * i + 2] = B::Or(w[4 * i + 2], B::template UpperBits<0, 0x30>(high));
      w[4 * i + 3] = B::Or(w[4 * i + 3], B::template UpperBits<-2, 0x30>(high));
    }
  }
};

template <class B>
struct EightBits {
  static constexpr int kBits = 8, kBytes = 512;
  static void Load(const std::byte* p, typename B::Quads (&w)[kQuadsOfBlock]) {
#pragma GCC unroll 8
    for (int i = 0; i < kQuadsOfBlock; ++i) w[i] = B::FromOffset(B::Load(p + i * kQuadBytes));
  }
};

// Quads that were unpacked to memory by one of the structs above.
template <class B, int kBitsOfSource>
struct Unpacked {
  static constexpr int kBits = kBitsOfSource, kBytes = kQuadsOfBlock * kQuadBytes;
  static void Load(const std::byte* p, typename B::Quads (&w)[kQuadsOfBlock]) {
#pragma GCC unroll 8
    for (int i = 0; i < kQuadsOfBlock; ++i) w[i] = B::Load(p + i * kQuadBytes);
  }
};

// The facts of a format that a kernel is compiled for. S is one of the structs above. Halves: each
// 16 elements have a scale of their own.
template <class S, bool kHasHalves, bool kHasMinimum>
struct BlockKind {
  using Source = S;
  static constexpr bool kHalves = kHasHalves, kMinimum = kHasMinimum;
  static constexpr int kParts = kHalves ? 2 : 1;  // of a block, each with a scale
  static constexpr int kQuads = kQuadsOfBlock / kParts;
};

// The number that the products subtract from each u. Signed values have that of the instruction
// set, formats with minimums have none. In the others it is the middle of u's range.
template <class B, class Kind>
inline constexpr int32_t kZeroPoint = Kind::Source::kBits == 8 ? B::kSignedZero
                                      : Kind::kMinimum         ? 0
                                                               : 1 << (Kind::Source::kBits - 1);

// The scales and minimums of the blocks of a tile, for 16 columns each.
struct TileScales {
  // [1]: of a block's second half, if halves have scales of their own.
  alignas(64) float scales[kBlocksPerTile][2][16];
  alignas(64) float minimums[kBlocksPerTile][16];
};

// Loads the scales of a superblock, or of its first `count` blocks, to entry `to` and the following
// ones. The superblock is at `p`.
template <class V>
inline void LoadSuperScales(BlockScales kind, const std::byte* p, int32_t count, int32_t to,
                            TileScales* out) {
  const V d = V::LoadHalves(p), zero = V::Set(0.0f);
  if (kind == BlockScales::kSuperMinimum) {
    const V dmin = zero - V::LoadHalves(p + 32);
    p += 64;
    for (int32_t b = to; b < to + count; ++b, p += 32) {
      (d * V::LoadBytes(p)).Store(out->scales[b][0]);
      (dmin * V::LoadBytes(p + 16)).Store(out->minimums[b]);
    }
    return;
  }
  p += 32;
  const bool halves = kind == BlockScales::kSuperHalves;
  for (int32_t b = to; b < to + count; ++b, p += halves ? 32 : 16) {
    (d * V::LoadSignedBytes(p)).Store(out->scales[b][0]);
    if (halves) (d * V::LoadSignedBytes(p + 16)).Store(out->scales[b][1]);
  }
}

// Loads the scales of blocks [first, first + count) of a panel; `first` is the first block of a
// superblock.
template <class V>
inline void LoadScales(BlockScales kind, const std::byte* panel, int32_t first, int32_t count,
                       TileScales* out) {
  if (kind == BlockScales::kHalf || kind == BlockScales::kHalfMinimum) {
    const bool minimum = kind == BlockScales::kHalfMinimum;
    const int64_t step = minimum ? 64 : 32;
    for (int32_t b = 0; b < count; ++b) {
      const std::byte* p = panel + (first + b) * step;
      V::LoadHalves(p).Store(out->scales[b][0]);
      if (minimum) V::LoadHalves(p + 32).Store(out->minimums[b]);
    }
    return;
  }
  if (kind == BlockScales::kHalfZero) {
    for (int32_t b = 0; b < count; ++b) {
      const std::byte* p = panel + (first + b) * int64_t{48};
      const V d = V::LoadHalves(p);
      d.Store(out->scales[b][0]);
      ((V::Set(0.0f) - d) * V::LoadBytes(p + 32)).Store(out->minimums[b]);
    }
    return;
  }
  if (kind == BlockScales::kExponent) {
    // 0 and 1 would give denormals: the smallest exponent gives 0.
    const V magic = V::Set(0x1.8p23f), least = V::Set(-127.0f);
    for (int32_t b = 0; b < count; ++b) {
      const V n = V::LoadBytes(panel + (first + b) * int64_t{16}) - V::Set(128.0f);
      AddExponent(V::Set(1.0f), Max(n, least) + magic).Store(out->scales[b][0]);
    }
    return;
  }
  const int64_t super_bytes = ScaleUnitBytes(kind);
  const std::byte* p = panel + first / kBlocksOfSuper * super_bytes;
  for (int32_t b = 0; b < count; b += kBlocksOfSuper, p += super_bytes) {
    LoadSuperScales<V>(kind, p, count - b < kBlocksOfSuper ? count - b : kBlocksOfSuper, b, out);
  }
}

// Memory that is read next: `step` bytes of it for every block.
struct BlockAhead {
  const std::byte* p;
  int64_t step;

  // Prefetches the bytes of block b to the second-level cache. The first level has too few requests
  // under way to read memory at full speed.
  void Prefetch(int32_t b) const {
    for (int64_t i = 0; i < step; i += 64) __builtin_prefetch(p + b * step + i, 0, 2);
  }
};

// The memory behind `count` panels of k terms, values and scales, of which `panel` is the first: as
// much as they have themselves.
inline BlockAhead AheadOf(const PackedWeight::BlockPanel& panel, int32_t k, int count) {
  const int64_t bytes = panel.scales - panel.values + PanelScaleBytes(panel.format, k);
  const int64_t num_blocks = k / kBlockTerms;
  return {panel.values + count * bytes, count * ((bytes + num_blocks - 1) / num_blocks)};
}

// The distance of the rows of a panel's sums.
using PanelStride = std::integral_constant<int64_t, 16>;

// The rows of a tile, from its first block on.
struct BlockRows {
  const int8_t* q;
  int64_t stride;  // of q, in elements
  const RowBlock* blocks;
  int64_t block_stride;
};

// The scales and the minimum of one block of a panel; [1] is of the block's second half.
template <class V>
struct PanelBlock {
  V scales[2], minimum;
};

template <class V, class Kind>
inline PanelBlock<V> BlockOf(const TileScales& scales, int32_t b) {
  PanelBlock<V> block = {{V::Load(scales.scales[b][0])}, {}};
  if constexpr (Kind::kHalves) block.scales[1] = V::Load(scales.scales[b][1]);
  if constexpr (Kind::kMinimum) block.minimum = V::Load(scales.minimums[b]);
  return block;
}

// The sum of the elements q of a part of a row's block.
template <class Kind>
inline int32_t RowSum(const RowBlock& row, int part) {
  if constexpr (Kind::kHalves) return part == 0 ? row.low_sum : row.sum - row.low_sum;
  return row.sum;
}

// Continues a row's sums by one block, whose integer sums are `low` and, of the second half,
// `high`.
template <class V, class Kind>
inline V AddBlock(const RowBlock& row, const PanelBlock<V>& block, V low, V high, V acc) {
  const V row_scale = V::Set(row.scale);
  acc = Fma(low, row_scale * block.scales[0], acc);
  if constexpr (Kind::kHalves) acc = Fma(high, row_scale * block.scales[1], acc);
  if constexpr (Kind::kMinimum) acc = Fma(V::Set(row.scaled_sum), block.minimum, acc);
  return acc;
}

// Continues a row's sums by one block with the values w.
template <class V, class B, class Kind>
inline V AddQuads(const typename B::Quads (&w)[kQuadsOfBlock], const int8_t* q, const RowBlock& row,
                  const PanelBlock<V>& block, V acc) {
  constexpr int kBits = Kind::Source::kBits, kQuads = Kind::kQuads;
  constexpr int32_t kZero = kZeroPoint<B, Kind>;
  const V low = B::template Dot<kBits, kQuads>(w, q, -kZero * RowSum<Kind>(row, 0));
  V high = low;
  if constexpr (Kind::kHalves) {
    high = B::template Dot<kBits, kQuads>(w + 4, q + 16, -kZero * RowSum<Kind>(row, 1));
  }
  return AddBlock<V, Kind>(row, block, low, high, acc);
}

// Adds `count` blocks of column j to c[r][j]. The rows of c are ldc apart: an int64_t, or a
// constant of that type. BlockOf gives the scales.
template <class V, class B, class Kind, int R, class Scales, class Stride>
inline void BlockTile(const BlockRows& rows, const std::byte* values, const Scales& scales,
                      int32_t count, const BlockAhead& ahead, float* c, Stride ldc) {
  using Source = typename Kind::Source;
  constexpr int kBits = Source::kBits, kParts = Kind::kParts, kQuads = Kind::kQuads;
  constexpr bool kInMemory = std::is_same_v<Source, Unpacked<B, kBits>>;
  V acc[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) acc[r] = V::Load(c + ldc * r);
  for (int32_t b = 0; b < count; ++b, values += Source::kBytes) {
    const int8_t* q = rows.q + b * kBlockTerms;
    const auto row_block = [&](int r) -> const RowBlock& {
      return rows.blocks[b + r * rows.block_stride];
    };
    ahead.Prefetch(b);
    const PanelBlock<V> block = BlockOf<V, Kind>(scales, b);
    if constexpr (kInMemory && B::kSharesQuads) {
      V sums[kParts][R];
#pragma GCC unroll 2
      for (int part = 0; part < kParts; ++part) {
        int32_t row_sums[R];
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) row_sums[r] = RowSum<Kind>(row_block(r), part);
        B::template Dots<kBits, kZeroPoint<B, Kind>, kQuads, R>(values + part * kQuads * kQuadBytes,
                                                                q + part * 4 * kQuads, rows.stride,
                                                                row_sums, sums[part]);
      }
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        acc[r] = AddBlock<V, Kind>(row_block(r), block, sums[0][r], sums[kParts - 1][r], acc[r]);
      }
    } else {
      typename B::Quads w[kQuadsOfBlock];
      Source::Load(values, w);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        acc[r] = AddQuads<V, B, Kind>(w, q + r * rows.stride, row_block(r), block, acc[r]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) acc[r].Store(c + ldc * r);
}

// BlockTile for a number of rows in [1, R] that is known only at run time.
template <class V, class B, class Kind, int R, class Scales, class Stride>
inline void BlockTileOfRows(int32_t num_rows, const BlockRows& rows, const std::byte* values,
                            const Scales& scales, int32_t count, const BlockAhead& ahead, float* c,
                            Stride ldc) {
  if (num_rows == R) {
    return BlockTile<V, B, Kind, R>(rows, values, scales, count, ahead, c, ldc);
  }
  if constexpr (R > 1) {
    BlockTileOfRows<V, B, Kind, R - 1>(num_rows, rows, values, scales, count, ahead, c, ldc);
  }
}

// Computes the sums of rows [row_begin, row_begin + num_rows) of one panel, to c [num_rows, 16].
// The blocks of a tile are unpacked to memory once for all rows. For few rows, and for formats that
// need no unpacking, the panel itself is read each time. Meanwhile the panel that comes next is
// prefetched, values and scales.
template <class V, class B, class Kind>
inline void BlockPanelSumsOf(const GemmCall& call, const PackedWeight::BlockPanel& panel,
                             int32_t row_begin, int32_t num_rows, float* c) {
  using Source = typename Kind::Source;
  using Copy = Unpacked<B, Source::kBits>;
  using CopyKind = BlockKind<Copy, Kind::kHalves, Kind::kMinimum>;
  const BlockTraits& traits = TraitsOf(panel.format);
  const int32_t num_blocks = call.w->k() / kBlockTerms;
  constexpr bool kBytes = std::is_same_v<Source, EightBits<B>>;
  constexpr int kDirect = kBytes ? V::kDirectByteRows : V::kDirectRows;
  constexpr int kMostDirect = kDirect < V::kBlockRows ? kDirect : V::kBlockRows;
  const bool direct = num_rows <= kDirect;
  const int32_t most = RowsPerTile(num_rows, V::kBlockRows);
  const int32_t num_tiles = (num_rows + most - 1) / most;
  const BlockAhead next = AheadOf(panel, call.w->k(), 1);
  alignas(64) std::byte unpacked[kBlocksPerTile * Copy::kBytes];
  TileScales scales;
  for (int32_t i = 0; i < num_rows; ++i) V::Set(0.0f).Store(c + 16 * i);
  const int32_t most_blocks = num_rows == 1 ? kBlocksPerChunk : kBlocksPerTile;
  for (int32_t first = 0; first < num_blocks; first += most_blocks) {
    const int32_t left = num_blocks - first;
    const int32_t count = left < most_blocks ? left : most_blocks;
    const std::byte* values = panel.values + int64_t{first} * Source::kBytes;
    LoadScales<V>(traits.scales, panel.scales, first, count, &scales);
    const int64_t block_stride = call.lda / kBlockTerms;
    BlockRows rows = {
        static_cast<const int8_t*>(call.a) + row_begin * call.lda + int64_t{first} * kBlockTerms,
        call.lda, call.a_blocks + row_begin * block_stride + first, block_stride};
    for (int32_t b = 0; !direct && b < count; ++b) {
      typename B::Quads w[kQuadsOfBlock];
      Source::Load(values + int64_t{b} * Source::kBytes, w);
#pragma GCC unroll 8
      for (int i = 0; i < kQuadsOfBlock; ++i) {
        B::Store(w[i], unpacked + b * Copy::kBytes + i * kQuadBytes);
      }
    }
    // Each tile of rows prefetches an equal part, so that the load on memory is even.
    BlockAhead ahead = {next.p + first * next.step, (next.step + num_tiles - 1) / num_tiles};
    for (int32_t r = 0; r < num_rows; r += most, ahead.p += count * ahead.step) {
      const int32_t tile_rows = num_rows - r < most ? num_rows - r : most;
      if (direct) {
        BlockTileOfRows<V, B, Kind, kMostDirect>(tile_rows, rows, values, scales, count, ahead,
                                                 c + 16 * r, PanelStride());
      } else {
        BlockTileOfRows<V, B, CopyKind, V::kBlockRows>(tile_rows, rows, unpacked, scales, count,
                                                       ahead, c + 16 * r, PanelStride());
      }
      rows.q += most * rows.stride;
      rows.blocks += most * rows.block_stride;
    }
  }
}

// Calls f(BlockKind) for the format.
template <class B, class F>
inline void ForKind(BlockFormat format, const F& f) {
  switch (format) {
    case BlockFormat::kQ4_0:
      return f(BlockKind<FourBits<B>, false, false>());
    case BlockFormat::kQ4_1:
    case BlockFormat::kQ4K:
    case BlockFormat::kInt4:
      return f(BlockKind<FourBits<B>, false, true>());
    case BlockFormat::kQ5_0:
      return f(BlockKind<FiveBits<B>, false, false>());
    case BlockFormat::kQ5_1:
    case BlockFormat::kQ5K:
      return f(BlockKind<FiveBits<B>, false, true>());
    case BlockFormat::kQ6K:
      return f(BlockKind<SixBits<B>, true, false>());
    case BlockFormat::kQ8_0:
      return f(BlockKind<EightBits<B>, false, false>());
    case BlockFormat::kIq4Nl:
    case BlockFormat::kIq4Xs:
      return f(BlockKind<LookedUp<B, kIq4Codebook, 8, B::kSignedZero>, false, false>());
    case BlockFormat::kMxfp4:
      return f(BlockKind<LookedUp<B, kMxfp4Codebook, 5, 16>, false, false>());
  }
}

template <class V, class B>
inline void BlockPanelSums(const GemmCall& call, int32_t index, int32_t row_begin, int32_t num_rows,
                           float* c) {
  const PackedWeight::BlockPanel panel = call.w->block_panel(index);
  ForKind<B>(panel.format, [&](auto kind) {
    BlockPanelSumsOf<V, B, decltype(kind)>(call, panel, row_begin, num_rows, c);
  });
}

// Computes the sums of a single row over P panels of Q8_0 from `index` on, to c [P, 16]. The panels
// are read at the same time, since several streams get more of the bandwidth than one. Meanwhile
// the P panels that come next are prefetched, values and scales. Formats of fewer bits lose by it:
// a processor computes longer on each of their bytes.
template <class V, class B, int P>
inline void BlockStreamSums(const GemmCall& call, int32_t index, float* c) {
  using Kind = BlockKind<EightBits<B>, false, false>;
  constexpr int64_t kBytes = Kind::Source::kBytes;
  const int32_t num_blocks = call.w->k() / kBlockTerms;
  const int8_t* q = static_cast<const int8_t*>(call.a);
  PackedWeight::BlockPanel panels[P];
  TileScales scales[P];
  V acc[P];
  for (int p = 0; p < P; ++p) {
    panels[p] = call.w->block_panel(index + p);
    acc[p] = V::Set(0.0f);
  }
  const BlockAhead ahead = AheadOf(panels[0], call.w->k(), P);
  for (int32_t first = 0; first < num_blocks; first += kBlocksPerChunk) {
    const int32_t left = num_blocks - first;
    const int32_t count = left < kBlocksPerChunk ? left : kBlocksPerChunk;
    for (int p = 0; p < P; ++p) {
      LoadScales<V>(BlockScales::kHalf, panels[p].scales, first, count, &scales[p]);
    }
    for (int32_t b = 0; b < count; ++b, q += kBlockTerms) {
      ahead.Prefetch(first + b);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        typename B::Quads w[kQuadsOfBlock];
        Kind::Source::Load(panels[p].values, w);
        const PanelBlock<V> block = BlockOf<V, Kind>(scales[p], b);
        acc[p] = AddQuads<V, B, Kind>(w, q, call.a_blocks[first + b], block, acc[p]);
        panels[p].values += kBytes;
      }
    }
  }
  for (int p = 0; p < P; ++p) acc[p].Store(c + 16 * p);
}

// Computes the sums of a single row over P panels from `index` on, to c [P, 16].
template <class V, class B, int P>
inline void BlockRowSums(const GemmCall& call, int32_t index, float* c) {
  bool streams = true;
  for (int p = 0; p < P; ++p) {
    streams = streams && call.w->block_panel(index + p).format == BlockFormat::kQ8_0;
  }
  if (streams) return BlockStreamSums<V, B, P>(call, index, c);
  for (int p = 0; p < P; ++p) BlockPanelSums<V, B>(call, index + p, 0, 1, c + 16 * p);
}

template <class V, class B>
void GemmBlocks(const GemmCall& call) {
  // Rows whose sums are kept on the stack. All of them share an unpacked panel.
  constexpr int32_t kMaxRows = 160;
  alignas(64) float c[kMaxRows * 16];
  alignas(64) float up[kMaxRows * 16];
  const bool swiglu = call.up_begin > 0;
  const int32_t end = (call.n_end + 15) / 16;
  int32_t panel = call.n_begin / 16;
  if constexpr (V::kBlockStreams > 1) {
    constexpr int P = V::kBlockStreams;
    for (; call.m == 1 && panel + P <= end; panel += P) {
      BlockRowSums<V, B, P>(call, panel, c);
      if (swiglu) BlockRowSums<V, B, P>(call, panel + call.up_begin / 16, up);
      for (int p = 0; p < P; ++p) {
        FinishPanel<V>(call, c + 16 * p, swiglu ? up + 16 * p : nullptr, 16, 0, 1,
                       16 * (panel + p));
      }
    }
  }
  for (; panel < end; ++panel) {
    for (int32_t row = 0; row < call.m; row += kMaxRows) {
      const int32_t rows = call.m - row < kMaxRows ? call.m - row : kMaxRows;
      BlockPanelSums<V, B>(call, panel, row, rows, c);
      if (swiglu) BlockPanelSums<V, B>(call, panel + call.up_begin / 16, row, rows, up);
      FinishPanel<V>(call, c, swiglu ? up : nullptr, 16, row, rows, 16 * panel);
    }
  }
}

}  // namespace skein
