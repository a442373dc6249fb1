// Products of bf16 on the matrix unit: the AMX class of docs/numerics.md. What surrounds them is
// AVX-512 code. See avx512.cc for the order of includes.

// g++ 12 takes the deliberately undefined inputs inside its own intrinsics for mistakes of ours.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include "kernels/cpu/amx_tile.h"
#include "kernels/cpu/ops.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prfchw")

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

constexpr int32_t kFewRows = 2 * kTileRows;  // up to so many stream the weights past them
constexpr int32_t kMaxRows = 256;            // of a that are in tile order at a time
constexpr int32_t kMaxPairs = 16;            // of panels whose sums wait for the next strip
constexpr int32_t kPairRows = 2 * kTileRows;
constexpr int32_t kPairSums = 4 * kTileRows * kPanelCols;  // of 32 rows and two panels

// Rows of a in tile order, [rows / 16][k / 32][16 rows][32 of k], padded with zeros: a part of k
// that stays in the second-level cache while all panels pass over it. Where rows are few, a tile
// has only so many.
constexpr int32_t kStripBytes = 512 << 10;
// Of k whose two panels (16 KB) stay in the first-level cache while all rows pass over them.
constexpr int32_t kBlockTiles = 8;

struct Scratch {
  alignas(64) std::byte strip[kStripBytes];
  alignas(64) float sums[kMaxPairs * (kMaxRows / kPairRows) * kPairSums];
};

void Prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

// Rows [row, row + rows) of a at k in [k_begin, k_begin + 32 tiles) to the strip, each tile with
// tile_rows rows. The stores go in order; what is read lies in as many places as a tile has rows.
void PackStrip(const GemmCall& call, int32_t row, int32_t rows, int32_t k_begin, int32_t tiles,
               int32_t tile_rows, std::byte* strip) {
  constexpr int32_t kAheadTiles = 4;
  const int32_t k = call.w->k();
  for (int32_t first = 0; first < rows; first += tile_rows) {
    const uint16_t* a = static_cast<const uint16_t*>(call.a) + (row + first) * call.lda + k_begin;
    const int32_t count = rows - first < tile_rows ? rows - first : tile_rows;
    for (int32_t t = 0; t < tiles; ++t, a += kTileK) {
      const int32_t left = k - k_begin - t * kTileK;
      const __mmask32 inside = left >= kTileK ? ~__mmask32{0} : (__mmask32{1} << left) - 1;
      int32_t r = 0;
      for (; r < count; ++r, strip += kTileRowBytes) {
        Prefetch(a + r * call.lda + kAheadTiles * kTileK);
        _mm512_store_si512(strip, _mm512_maskz_loadu_epi16(inside, a + r * call.lda));
      }
      for (; r < tile_rows; ++r, strip += kTileRowBytes) {
        _mm512_store_si512(strip, _mm512_setzero_si512());
      }
    }
  }
}

// Tiles 0 to 3 are sums, 4 and 5 rows of a, 6 and 7 weights.
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

// Two panels that are computed together: neighbours, or gate and up. Where there is no second
// neighbour the first stands in for it, and its sums are dropped.
struct PanelPair {
  int32_t column;  // of the first
  const std::byte* panels[2];
  bool second;  // is there one
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

// The sums of up to 32 rows and one pair, as BlockSums leaves them, and where they belong.
struct Finished {
  PanelPair pair;
  int32_t row;   // of the call
  int32_t rows;  // 0: nothing waits
  const float* c;
};

// The call's results for rows [begin, end) of `done`.
void FinishRows(const GemmCall& call, const Finished& done, int32_t begin, int32_t end) {
  const int32_t column = done.pair.column;
  for (int32_t r = begin; r < end;) {
    const int32_t in_tile = r % kTileRows;
    const int32_t count = end - r < kTileRows - in_tile ? end - r : kTileRows - in_tile;
    const float* left = done.c + (r / kTileRows * 2 * kTileRows + in_tile) * kPanelCols;
    const float* right = left + kTileRows * kPanelCols;
    const bool swiglu = call.up_begin > 0;
    FinishPanel<Vec>(call, left, swiglu ? right : nullptr, kPanelCols, done.row + r, count, column);
    if (!swiglu && done.pair.second) {
      FinishPanel<Vec>(call, right, nullptr, kPanelCols, done.row + r, count, column + kPanelCols);
    }
    r += count;
  }
}

// What goes on beside the matrix unit while it works on a block: results of the block before are
// finished, what the next ones need is fetched.
struct Meanwhile {
  const GemmCall* call;
  Finished done;
  const std::byte* panels[2];  // weights
  int32_t bytes;               // of each
  // Results to be written next: rows with out_stride bytes from one to the next, of out_bytes.
  const std::byte* out;
  int64_t out_stride;
  int32_t out_rows;
  int32_t out_bytes;

  // How much of each is done in one of `steps` steps, rounded up.
  struct Pace {
    int32_t lines, rows, out_rows;
  };
  Pace PaceOf(int32_t steps) const {
    const auto share = [steps](int32_t count) { return (count + steps - 1) / steps; };
    return {share(bytes / kTileRowBytes), share(done.rows), share(out_rows)};
  }

  void DoStep(int32_t step, Pace pace) const {
    const int32_t num_lines = bytes / kTileRowBytes;
    const int32_t line = step * pace.lines;
    const int32_t line_end = line + pace.lines < num_lines ? line + pace.lines : num_lines;
    for (int32_t i = line; i < line_end; ++i) {
      Prefetch(panels[0] + i * kTileRowBytes);
      Prefetch(panels[1] + i * kTileRowBytes);
    }
    const int32_t out_row = step * pace.out_rows;
    const int32_t out_end = out_row + pace.out_rows < out_rows ? out_row + pace.out_rows : out_rows;
    for (int32_t r = out_row; r < out_end; ++r) {
      __builtin_prefetch(out + r * out_stride, 1);
      __builtin_prefetch(out + r * out_stride + out_bytes - 1, 1);
    }
    const int32_t row = step * pace.rows;
    FinishRows(*call, done, row, row + pace.rows < done.rows ? row + pace.rows : done.rows);
  }
};

// Sums of 32 rows (16 unless kLower) and two panels over `tiles` tiles of k, continued from c
// [4][16][16] unless `first`: rows 0-15 by panels 0, 1, then rows 16-31. a: the first tile of the
// upper rows, the lower ones lower_bytes behind.
template <bool kLower>
void BlockSums(const std::byte* a, int64_t lower_bytes, const std::byte* w0, const std::byte* w1,
               int32_t tiles, bool first, const Meanwhile& meanwhile, float* c) {
  if (first) {
    amx::ZeroTile<0>();
    amx::ZeroTile<1>();
    if constexpr (kLower) amx::ZeroTile<2>();
    if constexpr (kLower) amx::ZeroTile<3>();
  } else {
    amx::LoadTile<0>(c, kTileRowBytes);
    amx::LoadTile<1>(c + 256, kTileRowBytes);
    if constexpr (kLower) amx::LoadTile<2>(c + 512, kTileRowBytes);
    if constexpr (kLower) amx::LoadTile<3>(c + 768, kTileRowBytes);
  }
  const Meanwhile::Pace pace = meanwhile.PaceOf(tiles);
  const std::byte* lower = a + lower_bytes;
  amx::LoadTile<4>(a, kTileRowBytes);
  amx::LoadTile<6>(w0, kTileRowBytes);
  amx::LoadTile<7>(w1, kTileRowBytes);
  if constexpr (kLower) amx::LoadTile<5>(lower, kTileRowBytes);
  // A tile is loaded for the next step as soon as this one is done with it.
  for (int32_t t = 1; t < tiles; ++t) {
    const int64_t next = int64_t{t} * kTileBytes;
    amx::DotTiles<0, 4, 6>();
    amx::DotTiles<1, 4, 7>();
    amx::LoadTile<4>(a + next, kTileRowBytes);
    if constexpr (kLower) amx::DotTiles<3, 5, 7>();
    amx::LoadTile<7>(w1 + next, kTileRowBytes);
    if constexpr (kLower) amx::DotTiles<2, 5, 6>();
    amx::LoadTile<6>(w0 + next, kTileRowBytes);
    if constexpr (kLower) amx::LoadTile<5>(lower + next, kTileRowBytes);
    meanwhile.DoStep(t - 1, pace);
  }
  amx::DotTiles<0, 4, 6>();
  amx::DotTiles<1, 4, 7>();
  if constexpr (kLower) amx::DotTiles<3, 5, 7>();
  if constexpr (kLower) amx::DotTiles<2, 5, 6>();
  meanwhile.DoStep(tiles - 1, pace);
  amx::StoreTile<0>(c, kTileRowBytes);
  amx::StoreTile<1>(c + 256, kTileRowBytes);
  if constexpr (kLower) amx::StoreTile<2>(c + 512, kTileRowBytes);
  if constexpr (kLower) amx::StoreTile<3>(c + 768, kTileRowBytes);
}

// One pair by all rows of a strip: tiles [begin, begin + tiles) of k of num_tiles. Blocks of k are
// walked outside the rows; while one is worked on, the next one's weights are fetched. `done` waits
// to be finished, and what is left to finish takes its place.
void PairTimesStrip(const GemmCall& call, const PanelPair& pair, const PanelPair& next, int32_t row,
                    int32_t rows, int32_t begin, int32_t tiles, const std::byte* strip, float* sums,
                    Finished& done) {
  const int32_t num_tiles = call.w->k_padded() / kTileK;
  const int32_t row_pairs = (rows + kPairRows - 1) / kPairRows;
  const int64_t lower_bytes = int64_t{tiles} * kTileBytes;
  const int32_t element_bytes = call.out_dtype == DType::kF32 ? 4 : 2;
  const int32_t pair_cols = call.up_begin > 0 || !pair.second ? kPanelCols : 2 * kPanelCols;
  for (int32_t t = 0; t < tiles; t += kBlockTiles) {
    const int32_t count = tiles - t < kBlockTiles ? tiles - t : kBlockTiles;
    const int64_t offset = int64_t{begin + t} * kTileBytes;
    const bool last_of_strip = t + count == tiles;
    // The next block: of this strip's part of these panels, else of the next ones.
    const PanelPair& from = last_of_strip ? next : pair;
    const int64_t from_offset =
        last_of_strip ? int64_t{begin} * kTileBytes : offset + int64_t{count} * kTileBytes;
    const int32_t left = last_of_strip ? tiles : tiles - t - count;
    const int32_t fetch = (left < kBlockTiles ? left : kBlockTiles) * kTileBytes;
    const int32_t share = (fetch / row_pairs + kTileRowBytes - 1) / kTileRowBytes * kTileRowBytes;
    const bool finished = begin + t + count == num_tiles;
    float* c = sums;
    for (int32_t r = 0; r < row_pairs; ++r, c += kPairSums) {
      const int32_t fetched = r * share;
      const int32_t more = fetch - fetched < share ? fetch - fetched : share;
      const std::byte* a = strip + 2 * r * lower_bytes + int64_t{t} * kTileBytes;
      const int32_t count_rows =
          rows - r * kPairRows < kPairRows ? rows - r * kPairRows : kPairRows;
      const Meanwhile meanwhile = {
          .call = &call,
          .done = done,
          .panels = {from.panels[0] + from_offset + fetched,
                     from.panels[1] + from_offset + fetched},
          .bytes = more > 0 ? more : 0,
          .out = static_cast<const std::byte*>(call.out) +
                 ((row + r * kPairRows) * call.ldo + pair.column) * element_bytes,
          .out_stride = call.ldo * element_bytes,
          .out_rows = finished ? count_rows : 0,
          .out_bytes = pair_cols * element_bytes,
      };
      const auto block = count_rows > kTileRows ? BlockSums<true> : BlockSums<false>;
      block(a, lower_bytes, pair.panels[0] + offset, pair.panels[1] + offset, count, begin + t == 0,
            meanwhile, c);
      done = {pair, row + r * kPairRows, finished ? count_rows : 0, c};
    }
  }
}

// More than kFewRows rows: up to kMaxRows of them and kMaxPairs pairs at a time.
void ManyRows(const GemmCall& call, Scratch& scratch) {
  Configure(kTileRows, kTileRows);
  const int32_t num_tiles = call.w->k_padded() / kTileK;
  const int32_t num_pairs = NumPairs(call);
  Finished done = {};
  for (int32_t row = 0; row < call.m; row += kMaxRows) {
    const int32_t rows = call.m - row < kMaxRows ? call.m - row : kMaxRows;
    const int32_t row_blocks = (rows + kTileRows - 1) / kTileRows;
    const int32_t strip_tiles = kStripBytes / kTileBytes / row_blocks;
    // One strip for all pairs if it holds all of k, else the sums wait in between.
    const bool whole = strip_tiles >= num_tiles;
    const int32_t step = whole ? num_pairs : kMaxPairs;
    for (int32_t first = 0; first < num_pairs; first += step) {
      const int32_t end = first + step < num_pairs ? first + step : num_pairs;
      for (int32_t begin = 0; begin < num_tiles; begin += strip_tiles) {
        const int32_t tiles = num_tiles - begin < strip_tiles ? num_tiles - begin : strip_tiles;
        PackStrip(call, row, rows, begin * kTileK, tiles, kTileRows, scratch.strip);
        for (int32_t i = first; i < end; ++i) {
          const int32_t waiting = whole ? 0 : i - first;
          PairTimesStrip(call, PairAt(call, i), PairAt(call, i + 1 < end ? i + 1 : first), row,
                         rows, begin, tiles, scratch.strip,
                         scratch.sums + int64_t{waiting} * (kMaxRows / kPairRows) * kPairSums,
                         done);
        }
      }
    }
  }
  FinishRows(call, done, 0, done.rows);
}

// Up to 16 rows and four panels, to c [4 panels][16][16]. Four places in the weights that are read
// at a time keep more of memory busy than one.
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

// 17 to 32 rows and two panels, to c [2 panels][32][16].
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
    amx::DotTiles<0, 4, 6>();
    amx::LoadTile<7>(panels[1] + offset, kTileRowBytes);
    amx::DotTiles<1, 4, 7>();
    amx::LoadTile<5>(strip + (tiles + t) * tile_bytes, kTileRowBytes);
    amx::DotTiles<2, 5, 6>();
    amx::DotTiles<3, 5, 7>();
  }
  amx::StoreTile<0>(c, kTileRowBytes);
  amx::StoreTile<2>(c + 256, kTileRowBytes);
  amx::StoreTile<1>(c + 512, kTileRowBytes);
  amx::StoreTile<3>(c + 768, kTileRowBytes);
}

// All of k of so few rows lies in one strip.
bool FitsStrip(const GemmCall& call) {
  const int32_t tile_rows = call.m < kTileRows ? call.m : kTileRows;
  const int32_t row_blocks = (call.m + kTileRows - 1) / kTileRows;
  return int64_t{call.w->k_padded()} * 2 * tile_rows * row_blocks <= kStripBytes;
}

// The weights go by once. Where panels run out the last one stands in for the missing.
void FewRows(const GemmCall& call, Scratch& scratch) {
  const int32_t tiles = call.w->k_padded() / kTileK;
  const bool lower = call.m > kTileRows;
  const int32_t tile_rows = lower ? kTileRows : call.m;
  Configure(tile_rows, lower ? call.m - kTileRows : tile_rows);
  PackStrip(call, 0, call.m, 0, tiles, tile_rows, scratch.strip);
  const auto multiply = lower ? TwoByTwo : OneByFour;
  const int32_t at_a_time = lower ? 2 : 4;
  const int32_t panel_sums = (lower ? kFewRows : kTileRows) * kPanelCols;
  const int32_t end = (call.n_end + kPanelCols - 1) / kPanelCols;
  const int32_t up_panels = call.up_begin / kPanelCols;
  const int32_t count = up_panels > 0 ? at_a_time / 2 : at_a_time;  // columns' panels
  for (int32_t first = call.n_begin / kPanelCols; first < end; first += count) {
    const std::byte* panels[4];
    for (int32_t i = 0; i < count; ++i) {
      const int32_t p = first + i < end ? first + i : end - 1;
      panels[i] = call.w->panel(p);
      if (up_panels > 0) panels[count + i] = call.w->panel(p + up_panels);
    }
    multiply(scratch.strip, tile_rows * kTileRowBytes, tiles, panels, scratch.sums);
    for (int32_t i = 0; i < count && first + i < end; ++i) {
      const float* c = scratch.sums + i * panel_sums;
      FinishPanel<Vec>(call, c, up_panels > 0 ? c + count * panel_sums : nullptr, kPanelCols, 0,
                       call.m, (first + i) * kPanelCols);
    }
  }
}

void GemmBf16(const GemmCall& call) {
  Scratch scratch;
  if (call.m <= kFewRows && FitsStrip(call)) {
    FewRows(call, scratch);
  } else {
    ManyRows(call, scratch);
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
