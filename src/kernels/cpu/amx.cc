// Products of bf16 (the AMX class of docs/numerics.md) and of int8 on the matrix unit, with AVX-512
// code around them. avx512.cc explains the order of includes.

// g++ 12 warns of deliberately undefined inputs inside its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include "kernels/cpu/amx_tile.h"
#include "kernels/cpu/ops.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")

#include "kernels/cpu/vec_avx512.h"
// This body must come after the vector type that it uses.
#include "kernels/cpu/gemm_body.h"

namespace skein {
namespace {

using avx512::Vec;

constexpr int32_t kTileRows = 16;
constexpr int32_t kTileRowBytes = 64;  // of a row of any tile: 32 bf16, 64 int8 or 16 sums
constexpr int32_t kTileBytes = kTileRows * kTileRowBytes;

// Calls with at most this number of rows use FewRows, which reads the weights once.
constexpr int32_t kFewRows = 2 * kTileRows;
constexpr int32_t kMaxRows = 256;  // rows of `a` that are in tile order at a time
constexpr int32_t kMaxPairs = 16;  // pairs of panels whose sums are kept until the next strip
constexpr int32_t kPairRows = 2 * kTileRows;
constexpr int32_t kPairCols = 2 * kPanelCols;
constexpr int32_t kPairSums = kPairRows * kPairCols;

// The size in bytes of a strip: rows of `a` in tile order, [rows / 16][bytes of k / 64][16 rows][64
// bytes], padded with zeros. A strip covers a part of k and stays in the second-level cache while
// all panels are multiplied by it. If the call has fewer than 16 rows, so have the tiles.
constexpr int32_t kStripBytes = 768 << 10;
// Tiles of k that are computed at a time, for all rows. The two panels' tiles (16 KB) stay in the
// first-level cache, of which another thread of the core may use a half. With fewer tiles, the sums
// would be stored more often.
constexpr int32_t kBlockTiles = 8;

struct Scratch {
  alignas(64) std::byte strip[kStripBytes];
  // Sums of int8 products are int32 until they are finished, all others f32.
  alignas(64) float sums[kMaxPairs * (kMaxRows / kPairRows) * kPairSums];
};

void Prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
// Prefetches to the second-level cache.
void PrefetchFar(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1); }

int64_t ElementBytes(const GemmCall& call) { return call.a_scales != nullptr ? 1 : 2; }
int64_t RowBytes(const GemmCall& call) { return call.lda * ElementBytes(call); }
int32_t NumTiles(const GemmCall& call) {
  return static_cast<int32_t>(call.w->k_padded() * ElementBytes(call)) / kTileRowBytes;
}

// Copies rows [row, row + rows) of `a` to the strip: `tiles` tiles of k from tile `begin` on, with
// tile_rows rows each. The stores go in order; the loads come from as many streams as a tile has
// rows.
void PackStrip(const GemmCall& call, int32_t row, int32_t rows, int32_t begin, int32_t tiles,
               int32_t tile_rows, std::byte* strip) {
  constexpr int32_t kAheadTiles = 4;
  const int64_t stride = RowBytes(call);
  const int64_t k_bytes = call.w->k() * ElementBytes(call);
  for (int32_t first = 0; first < rows; first += tile_rows) {
    const std::byte* a = static_cast<const std::byte*>(call.a) + (row + first) * stride +
                         int64_t{begin} * kTileRowBytes;
    const int32_t count = rows - first < tile_rows ? rows - first : tile_rows;
    for (int32_t t = begin; t < begin + tiles; ++t, a += kTileRowBytes) {
      const int64_t left = k_bytes - int64_t{t} * kTileRowBytes;
      const __mmask64 inside = left >= kTileRowBytes ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
      int32_t r = 0;
      for (; r < count; ++r, strip += kTileRowBytes) {
        Prefetch(a + r * stride + kAheadTiles * kTileRowBytes);
        _mm512_store_si512(strip, _mm512_maskz_loadu_epi8(inside, a + r * stride));
      }
      for (; r < tile_rows; ++r, strip += kTileRowBytes) {
        _mm512_store_si512(strip, _mm512_setzero_si512());
      }
    }
  }
}

// Configures the tiles. For few rows, tiles 0 to 3 are sums, tiles 4 and 5 are rows of `a`, and
// tiles 6 and 7 are weights. Otherwise all tiles have 16 rows.
void Configure(int32_t upper_rows, int32_t lower_rows) {
  amx::TileConfig config;
  const int32_t upper = upper_rows, lower = lower_rows;
  const int32_t tile_rows[8] = {upper, upper, lower, lower, upper, lower, kTileRows, kTileRows};
  for (int t = 0; t < 8; ++t) {
    config.rows[t] = static_cast<uint8_t>(tile_rows[t]);
    config.row_bytes[t] = kTileRowBytes;
  }
  amx::LoadTileConfig(config);
}

// Two panels that are computed together: neighbours, or a gate's panel and the up panel. If the
// first panel has no neighbour, it is computed twice and the second result is dropped.
struct PanelPair {
  int32_t column;  // the first column of the first panel
  const std::byte* panels[2];
  bool second;  // whether there is a second panel
};

int32_t NumPairs(const GemmCall& call) {
  const int32_t panels = (call.n_end - call.n_begin + kPanelCols - 1) / kPanelCols;
  return call.up_begin > 0 ? panels : (panels + 1) / 2;
}

PanelPair PairAt(const GemmCall& call, int32_t index) {
  const int32_t begin = call.n_begin / kPanelCols;
  if (call.up_begin > 0) {
    const int32_t gate = begin + index;
    return {gate * kPanelCols,
            {call.w->panel(gate), call.w->panel(gate + call.up_begin / kPanelCols)},
            true};
  }
  const int32_t left = begin + 2 * index;
  const bool second = (left + 1) * kPanelCols < call.n_end;
  return {
      left * kPanelCols, {call.w->panel(left), call.w->panel(second ? left + 1 : left)}, second};
}

// The finished sums of up to 32 rows and one pair of panels, c [32 rows][2 panels][16], and their
// position in the output.
struct Finished {
  PanelPair pair;
  int32_t row;   // index of the first row in the call
  int32_t rows;  // 0: nothing waits to be written
  float* c;
};

// Writes the call's results for rows [begin, end) of `done`.
void FinishRows(const GemmCall& call, const Finished& done, int32_t begin, int32_t end) {
  if (begin >= end) return;
  const int32_t column = done.pair.column;
  float* left = done.c + begin * kPairCols;
  float* right = left + kPanelCols;
  const bool swiglu = call.up_begin > 0;
  const int32_t row = done.row + begin;
  if (call.a_scales != nullptr) {
    ScaleSums<Vec>(call, left, kPairCols, row, end - begin, column);
    if (done.pair.second) {
      const int32_t second = column + (swiglu ? call.up_begin : kPanelCols);
      ScaleSums<Vec>(call, right, kPairCols, row, end - begin, second);
    }
  }
  FinishPanel<Vec>(call, left, swiglu ? right : nullptr, kPairCols, row, end - begin, column);
  if (!swiglu && done.pair.second) {
    FinishPanel<Vec>(call, right, nullptr, kPairCols, row, end - begin, column + kPanelCols);
  }
}

// Work that runs on the vector units while the matrix unit computes a block: it finishes the
// results of the previous block and prefetches the weights of the next blocks.
struct Meanwhile {
  const GemmCall* call;
  Finished done;
  const std::byte* panels[2];  // weights
  int32_t bytes;               // bytes of each panel

  // How much of each kind of work one of `steps` steps does, rounded up.
  struct Pace {
    int32_t steps, lines, rows;
  };
  Pace PaceOf(int32_t steps) const {
    const auto share = [steps](int32_t count) { return (count + steps - 1) / steps; };
    return {steps, share(bytes / kTileRowBytes), share(done.rows)};
  }

  void DoStep(int32_t step, Pace pace) const {
    const int32_t num_lines = bytes / kTileRowBytes;
    const int32_t line = step * pace.lines;
    const int32_t line_end = line + pace.lines < num_lines ? line + pace.lines : num_lines;
    for (int32_t i = line; i < line_end; ++i) {
      PrefetchFar(panels[0] + i * kTileRowBytes);
      PrefetchFar(panels[1] + i * kTileRowBytes);
    }
    // One call finishes the rows of several steps, since a call has a fixed cost.
    constexpr int32_t kFinishSteps = 4;
    if (step % kFinishSteps < kFinishSteps - 1 && step < pace.steps - 1) return;
    const int32_t row = step / kFinishSteps * kFinishSteps * pace.rows;
    const int32_t end = (step + 1) * pace.rows;
    FinishRows(*call, done, row, end < done.rows ? end : done.rows);
  }
};

// The initial sums of a block: 0, or the sums that are stored in memory.
enum class Start { kZero, kLoad };

struct Block {
  const std::byte* a;  // the tiles of the upper 16 rows
  int64_t lower;       // bytes from the upper rows' tiles to the lower rows' tiles
  const std::byte* panels[2];
  int32_t tiles;
  Start start;
  float* c;
};

constexpr int kUpperTile = 4, kLowerTile = 5, kLeftTile = 6, kRightTile = 7;
constexpr int64_t kSumStride = kPairCols * sizeof(float);
// Offsets of the four tiles of sums in c: rows 0-15 of the first panel, of the second panel; then
// rows 16-31.
constexpr int32_t kSumOffsets[4] = {0, kPanelCols, kTileRows* kPairCols,
                                    kTileRows* kPairCols + kPanelCols};

template <int kIndex>
inline void StartSum(const Block& block) {
  if (block.start == Start::kZero) {
    amx::ZeroTile<kIndex>();
  } else {
    amx::LoadTile<kIndex>(block.c + kSumOffsets[kIndex], kSumStride);
  }
}

template <int kIndex>
inline void StoreSum(const Block& block) {
  amx::StoreTile<kIndex>(block.c + kSumOffsets[kIndex], kSumStride);
}

// Computes four products over one tile of k. Rows come from the second-level cache; prefetching
// them to the first level costs more than it gains.
template <bool kInt8>
inline void BlockStep(const Block& block, int32_t t) {
  const std::byte* rows = block.a + int64_t{t} * kTileBytes;
  const std::byte* left = block.panels[0] + int64_t{t} * kTileBytes;
  const std::byte* right = block.panels[1] + int64_t{t} * kTileBytes;
  amx::LoadTileOnce<kUpperTile>(rows, kTileRowBytes);
  amx::LoadTileSpaced<kLeftTile>(left, kTileRowBytes);
  amx::DotSpaced<kInt8, 0, kUpperTile, kLeftTile>();
  amx::LoadTileSpaced<kRightTile>(right, kTileRowBytes);
  amx::DotSpaced<kInt8, 1, kUpperTile, kRightTile>();
  amx::LoadTileOnce<kLowerTile>(rows + block.lower, kTileRowBytes);
  amx::DotSpaced<kInt8, 2, kLowerTile, kLeftTile>();
  amx::DotSpaced<kInt8, 3, kLowerTile, kRightTile>();
}

template <bool kInt8>
void BlockSums(const Block& block, const Meanwhile& meanwhile) {
  StartSum<0>(block);
  StartSum<1>(block);
  StartSum<2>(block);
  StartSum<3>(block);
  const Meanwhile::Pace pace = meanwhile.PaceOf(block.tiles);
  for (int32_t t = 0; t < block.tiles; ++t) {
    BlockStep<kInt8>(block, t);
    meanwhile.DoStep(t, pace);
  }
  StoreSum<0>(block);
  StoreSum<1>(block);
  StoreSum<2>(block);
  StoreSum<3>(block);
}

// Up to kMaxRows rows of `a`, over the part of k in tiles [begin, begin + tiles).
struct Strip {
  int32_t row;  // index of the first row in the call
  int32_t rows;
  int32_t begin;
  int32_t tiles;
  const std::byte* a;    // [rows / 16][tiles] tiles
  int64_t block_stride;  // bytes from the tiles of 16 rows to those of the next 16
};

// Multiplies one pair of panels by all rows of a strip. The loop over blocks of k is outside the
// loop over rows. While a block is computed, the weights of the next block are prefetched.
template <bool kInt8>
void PairTimesStrip(const GemmCall& call, const PanelPair& pair, const PanelPair& next,
                    const Strip& strip, float* sums, Finished& done) {
  const int32_t num_tiles = NumTiles(call);
  const int32_t row_pairs = (strip.rows + kPairRows - 1) / kPairRows;
  for (int32_t t = 0; t < strip.tiles; t += kBlockTiles) {
    const int32_t count = strip.tiles - t < kBlockTiles ? strip.tiles - t : kBlockTiles;
    const int64_t offset = int64_t{strip.begin + t} * kTileBytes;
    const bool last_of_strip = t + count == strip.tiles;
    // The next block belongs to the same panels if the strip has further blocks of k, otherwise to
    // the next panels.
    const PanelPair& from = last_of_strip ? next : pair;
    const int64_t from_offset =
        last_of_strip ? int64_t{strip.begin} * kTileBytes : offset + int64_t{count} * kTileBytes;
    const int32_t left = last_of_strip ? strip.tiles : strip.tiles - t - count;
    const int32_t fetch = (left < kBlockTiles ? left : kBlockTiles) * kTileBytes;
    const int32_t share = (fetch / row_pairs + kTileRowBytes - 1) / kTileRowBytes * kTileRowBytes;
    const bool finished = strip.begin + t + count == num_tiles;
    for (int32_t r = 0; r < row_pairs; ++r) {
      float* c = sums + r * kPairSums;
      const int32_t fetched = r * share;
      const int32_t more = fetch - fetched < share ? fetch - fetched : share;
      const int32_t row = strip.row + r * kPairRows;
      const int32_t rows_left = strip.rows - r * kPairRows;
      const int32_t count_rows = rows_left < kPairRows ? rows_left : kPairRows;
      const Meanwhile meanwhile = {
          .call = &call,
          .done = done,
          .panels = {from.panels[0] + from_offset + fetched,
                     from.panels[1] + from_offset + fetched},
          .bytes = more > 0 ? more : 0,
      };
      const Block block = {
          .a = strip.a + 2 * r * strip.block_stride + int64_t{t} * kTileBytes,
          // If there are no lower rows, the upper rows are computed twice and the second sums are
          // dropped.
          .lower = rows_left > kTileRows ? strip.block_stride : 0,
          .panels = {pair.panels[0] + offset, pair.panels[1] + offset},
          .tiles = count,
          .start = strip.begin + t == 0 ? Start::kZero : Start::kLoad,
          .c = c,
      };
      BlockSums<kInt8>(block, meanwhile);
      done = {pair, row, finished ? count_rows : 0, c};
    }
  }
}

Strip StripAt(const GemmCall& call, int32_t row, int32_t rows, int32_t begin, int32_t tiles,
              std::byte* packed) {
  if (call.a_tiles) {
    const int64_t stride = int64_t{NumTiles(call)} * kTileBytes;
    const std::byte* a = static_cast<const std::byte*>(call.a) + row / kTileRows * stride;
    return {row, rows, begin, tiles, a + int64_t{begin} * kTileBytes, stride};
  }
  PackStrip(call, row, rows, begin, tiles, kTileRows, packed);
  return {row, rows, begin, tiles, packed, int64_t{tiles} * kTileBytes};
}

// Computes calls with more than kFewRows rows: up to kMaxRows rows and kMaxPairs pairs at a time.
template <bool kInt8>
void ManyRows(const GemmCall& call, Scratch& scratch) {
  Configure(kTileRows, kTileRows);
  const int32_t num_tiles = NumTiles(call);
  const int32_t num_pairs = NumPairs(call);
  Finished done = {};
  for (int32_t row = 0; row < call.m; row += kMaxRows) {
    const int32_t rows = call.m - row < kMaxRows ? call.m - row : kMaxRows;
    const int32_t row_pairs = (rows + kPairRows - 1) / kPairRows;
    const int32_t strip_tiles = kStripBytes / kTileBytes / (2 * row_pairs);
    // If a strip holds all of k, it serves all pairs. Otherwise the sums of kMaxPairs pairs are
    // kept until the next strip.
    const bool whole = strip_tiles >= num_tiles;
    const int32_t step = whole ? num_pairs : kMaxPairs;
    for (int32_t first = 0; first < num_pairs; first += step) {
      const int32_t end = first + step < num_pairs ? first + step : num_pairs;
      for (int32_t begin = 0; begin < num_tiles; begin += strip_tiles) {
        const int32_t tiles = num_tiles - begin < strip_tiles ? num_tiles - begin : strip_tiles;
        const Strip strip = StripAt(call, row, rows, begin, tiles, scratch.strip);
        for (int32_t i = first; i < end; ++i) {
          const int32_t waiting = whole ? 0 : i - first;
          PairTimesStrip<kInt8>(
              call, PairAt(call, i), PairAt(call, i + 1 < end ? i + 1 : first), strip,
              scratch.sums + int64_t{waiting} * (kMaxRows / kPairRows) * kPairSums, done);
        }
      }
    }
  }
  FinishRows(call, done, 0, done.rows);
}

// Prefetches one cache line of a later tile. The processor's own prefetching ends at every page,
// and this line restarts it. Other distances (one tile, three tiles) and prefetching all lines are
// not faster.
inline void Announce(const std::byte* tile) { PrefetchFar(tile + 2 * kTileBytes); }

// Multiplies up to 16 rows by four panels, to c [4 panels][16][16]. Four streams of weights use
// more of the memory's bandwidth than one.
template <bool kInt8>
void OneByFour(const std::byte* strip, int64_t tile_bytes, int32_t tiles,
               const std::byte* const* panels, float* c) {
  amx::ZeroTile<0>();
  amx::ZeroTile<1>();
  amx::ZeroTile<2>();
  amx::ZeroTile<3>();
  for (int32_t t = 0; t < tiles; ++t) {
    const int64_t offset = int64_t{t} * kTileBytes;
    amx::LoadTile<4>(strip + t * tile_bytes, kTileRowBytes);
    amx::LoadTile<6>(panels[0] + offset, kTileRowBytes);
    amx::LoadTile<7>(panels[1] + offset, kTileRowBytes);
    amx::Dot<kInt8, 0, 4, 6>();
    amx::Dot<kInt8, 1, 4, 7>();
    amx::LoadTile<6>(panels[2] + offset, kTileRowBytes);
    amx::LoadTile<7>(panels[3] + offset, kTileRowBytes);
    amx::Dot<kInt8, 2, 4, 6>();
    amx::Dot<kInt8, 3, 4, 7>();
    for (int i = 0; i < 4; ++i) Announce(panels[i] + offset);
  }
  amx::StoreTile<0>(c, kTileRowBytes);
  amx::StoreTile<1>(c + 256, kTileRowBytes);
  amx::StoreTile<2>(c + 512, kTileRowBytes);
  amx::StoreTile<3>(c + 768, kTileRowBytes);
}

// Multiplies 17 to 32 rows by two panels, to c [2 panels][32][16].
template <bool kInt8>
void TwoByTwo(const std::byte* strip, int64_t tile_bytes, int32_t tiles,
              const std::byte* const* panels, float* c) {
  amx::ZeroTile<0>();
  amx::ZeroTile<1>();
  amx::ZeroTile<2>();
  amx::ZeroTile<3>();
  for (int32_t t = 0; t < tiles; ++t) {
    const int64_t offset = int64_t{t} * kTileBytes;
    amx::LoadTile<4>(strip + t * tile_bytes, kTileRowBytes);
    amx::LoadTile<6>(panels[0] + offset, kTileRowBytes);
    amx::Dot<kInt8, 0, 4, 6>();
    amx::LoadTile<7>(panels[1] + offset, kTileRowBytes);
    amx::Dot<kInt8, 1, 4, 7>();
    amx::LoadTile<5>(strip + (tiles + t) * tile_bytes, kTileRowBytes);
    amx::Dot<kInt8, 2, 5, 6>();
    amx::Dot<kInt8, 3, 5, 7>();
    for (int i = 0; i < 2; ++i) Announce(panels[i] + offset);
  }
  amx::StoreTile<0>(c, kTileRowBytes);
  amx::StoreTile<2>(c + 256, kTileRowBytes);
  amx::StoreTile<1>(c + 512, kTileRowBytes);
  amx::StoreTile<3>(c + 768, kTileRowBytes);
}

// Whether the call's few rows, over all of k, fit one strip.
bool FitsStrip(const GemmCall& call) {
  const int32_t tile_rows = call.m < kTileRows ? call.m : kTileRows;
  const int32_t row_blocks = (call.m + kTileRows - 1) / kTileRows;
  return int64_t{NumTiles(call)} * kTileRowBytes * tile_rows * row_blocks <= kStripBytes;
}

// Computes calls with few rows; the weights are read once. Past the last panel, the last panel is
// computed again and the result is dropped.
template <bool kInt8>
void FewRows(const GemmCall& call, Scratch& scratch) {
  const int32_t tiles = NumTiles(call);
  const bool lower = call.m > kTileRows;
  const int32_t tile_rows = lower ? kTileRows : call.m;
  Configure(tile_rows, lower ? call.m - kTileRows : tile_rows);
  const std::byte* strip = call.a_tiles ? static_cast<const std::byte*>(call.a) : scratch.strip;
  const int64_t tile_bytes = call.a_tiles ? kTileBytes : tile_rows * kTileRowBytes;
  if (!call.a_tiles) PackStrip(call, 0, call.m, 0, tiles, tile_rows, scratch.strip);
  const auto multiply = lower ? TwoByTwo<kInt8> : OneByFour<kInt8>;
  const int32_t at_a_time = lower ? 2 : 4;
  const int32_t panel_sums = (lower ? kFewRows : kTileRows) * kPanelCols;
  const int32_t end = (call.n_end + kPanelCols - 1) / kPanelCols;
  const int32_t up_panels = call.up_begin / kPanelCols;
  const int32_t count = up_panels > 0 ? at_a_time / 2 : at_a_time;  // panels of columns
  for (int32_t first = call.n_begin / kPanelCols; first < end; first += count) {
    const std::byte* panels[4];
    for (int32_t i = 0; i < count; ++i) {
      const int32_t p = first + i < end ? first + i : end - 1;
      panels[i] = call.w->panel(p);
      if (up_panels > 0) panels[count + i] = call.w->panel(p + up_panels);
    }
    multiply(strip, tile_bytes, tiles, panels, scratch.sums);
    for (int32_t i = 0; i < count && first + i < end; ++i) {
      float* c = scratch.sums + i * panel_sums;
      float* up = up_panels > 0 ? c + count * panel_sums : nullptr;
      const int32_t column = (first + i) * kPanelCols;
      if constexpr (kInt8) {
        ScaleSums<Vec>(call, c, kPanelCols, 0, call.m, column);
        if (up != nullptr) ScaleSums<Vec>(call, up, kPanelCols, 0, call.m, column + call.up_begin);
      }
      FinishPanel<Vec>(call, c, up, kPanelCols, 0, call.m, column);
    }
  }
}

template <bool kInt8>
void AmxGemm(const GemmCall& call) {
  Scratch scratch;
  if (call.m <= kFewRows && (call.a_tiles || FitsStrip(call))) {
    FewRows<kInt8>(call, scratch);
  } else {
    ManyRows<kInt8>(call, scratch);
  }
  amx::ReleaseTiles();
}

}  // namespace

CpuOps AmxOps() {
  CpuOps ops = Avx512Ops();
  ops.gemm_bf16 = AmxGemm<false>;
  ops.gemm_int8 = AmxGemm<true>;
  ops.attention_bf16 = AmxAttention;
  return ops;
}

}  // namespace skein
