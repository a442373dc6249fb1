// The attention walk of the AMX class (docs/numerics.md) on the matrix unit. See avx512.cc for the
// order of includes.

// g++ 12 takes the deliberately undefined inputs inside its own intrinsics for mistakes of ours.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include "kernels/cpu/amx_tile.h"
#include "kernels/cpu/ops.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")

#include "kernels/cpu/vec_avx512.h"
// After the vector.
#include "kernels/cpu/math_body.h"

namespace skein {
namespace {

using avx512::Vec;

constexpr int32_t kTileRows = 16;
constexpr int32_t kTileK = 32;         // bf16 in one tile row
constexpr int32_t kTileRowBytes = 64;  // of every tile: 32 bf16, 16 pairs or 16 f32
constexpr int32_t kTileBytes = kTileRows * kTileRowBytes;
constexpr int32_t kUnitRows = 2 * kTileRows;  // rows that go through the tiles together, at most
constexpr int32_t kGroupsPerStep = kKeysPerStep / 16;
constexpr int32_t kBlocksPerStep = kKeysPerStep / kKvBlockTokens;
// A row's accumulators: head_dim in panels of 16, and 16 copies of its sum of weights.
constexpr int32_t kMaxStride = kMaxHeadDim + 16;

// A tile of V whose every element is 1.
struct alignas(64) OnesTile {
  uint16_t bf16[kTileRows * kTileK];
  OnesTile() {
    for (uint16_t& x : bf16) x = 0x3f80;
  }
};

// Lane i of the result is the largest element of v[i]; none is NaN. Changes v.
Vec LargestOfEach(Vec v[16]) {
  // Each round halves the vectors: of two, the halves of every 32, 16, 8 and 4 bytes are folded
  // together and laid side by side.
  for (int i = 0; i < 8; ++i) {
    const __m512 a = v[i].v, b = v[i + 8].v;
    v[i].v = _mm512_max_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
  }
  for (int i = 0; i < 4; ++i) {
    const __m512 a = v[i].v, b = v[i + 4].v;
    v[i].v = _mm512_max_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  }
  for (int i = 0; i < 2; ++i) {
    const __m512 a = v[i].v, b = v[i + 2].v;
    v[i].v = _mm512_max_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
  }
  const __m512 a = v[0].v, b = v[1].v;
  const __m512 folded = _mm512_max_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
  // Bits 0 and 1 of an element's place, and bits 2 and 3, are those of its vector's number swapped
  // with each other and in their halves.
  const __m512i order = _mm512_setr_epi32(0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15);
  return {_mm512_permutexvar_ps(order, folded)};
}

// Exp for x of at most about 0: a bit for bit the same, in fewer instructions. Results below the
// smallest normal number are flushed, so no test for them is needed.
Vec ExpOfWeight(Vec x) {
  const Vec magic = Vec::Set(0x1.8p23f);
  const Vec clamped = {_mm512_max_ps(_mm512_set1_ps(-88.0f), x.v)};  // a NaN stays
  const Vec n = Fma(clamped, Vec::Set(0x1.715476p+0f), magic) - magic;
  Vec r = Fma(n, Vec::Set(-0x1.62e4p-1f), clamped);
  r = Fma(n, Vec::Set(-0x1.7f7d1cp-20f), r);
  return {_mm512_scalef_ps(ExpPolynomial(r).v, n.v)};
}

// Up to kUnitRows rows in one step.
struct Item {
  int32_t row;  // of the call
  int32_t rows;
  int32_t step;
  int32_t num_blocks;  // with keys that a row sees
  const std::byte* blocks[kBlocksPerStep];
  float* scores;      // [kUnitRows, kKeysPerStep]
  uint16_t* weights;  // [kUnitRows, kKeysPerStep]

  bool fresh() const { return step % kKeysPerSegment == 0; }
  // Rows of the first of two tiles; the second has the rest.
  int32_t upper() const { return (rows + 1) / 2; }
};

// The walk of one call. About 200 KB, on the stack of the thread that runs it.
class AmxAttentionWalk {
 public:
  explicit AmxAttentionWalk(const AttentionArgs& args)
      : args_(args), num_panels_((args.head_dim + 15) / 16), stride_((num_panels_ + 1) * 16) {
    for (int32_t r = 0; r < args.num_rows; ++r) {
      const auto* from = static_cast<const uint16_t*>(args.rows[r].q);
      uint16_t* to = q_ + r * args.head_dim_padded;
      for (int32_t d = 0; d < args.head_dim; d += 32) {
        const int32_t n = args.head_dim - d < 32 ? args.head_dim - d : 32;
        const auto mask = static_cast<__mmask32>(~0u >> (32 - n));
        _mm512_storeu_si512(to + d, _mm512_maskz_loadu_epi16(mask, from + d));
      }
    }
  }

  void Run() {
    Walk(0, args_.num_rows, 0);
    amx::ReleaseTiles();
    for (int32_t r = 0; r < args_.num_rows; ++r) Finish(r);
  }

 private:
  struct State {
    float max[kMaxQueryRows + 16];
    alignas(64) float acc[kMaxQueryRows * kMaxStride];  // [rows, stride_]
  };

  int32_t num_keys(int32_t row) const { return args_.rows[row].num_keys; }

  // Whether both rows read the same blocks in the step. Rows of different sequences do only where
  // both see all of it, so that neither meets keys that are not its own.
  bool ShareStep(int32_t a, int32_t b, int32_t step) const {
    const int32_t* table_a = args_.rows[a].block_table;
    const int32_t* table_b = args_.rows[b].block_table;
    if (table_a == table_b) return true;
    const int32_t end = step + kKeysPerStep, block = step / kKvBlockTokens;
    return num_keys(a) >= end && num_keys(b) >= end && table_a[block] == table_b[block] &&
           table_a[block + 1] == table_b[block + 1];
  }
  // The end of the rows from `first` on that do, among those before `last`.
  int32_t RunEnd(int32_t first, int32_t last, int32_t step) const {
    int32_t end = first + 1;
    while (end < last && ShareStep(end - 1, end, step)) ++end;
    return end;
  }

  // Walks the rows [first, last) from `step` on, before which they have walked together: together
  // as long as they read the same blocks, then each run of rows that does on its own.
  void Walk(int32_t first, int32_t last, int32_t step) {
    int32_t max_keys = 0;
    for (int32_t r = first; r < last; ++r)
      max_keys = num_keys(r) > max_keys ? num_keys(r) : max_keys;
    while (step < max_keys) {
      const int32_t segment = step / kKeysPerSegment * kKeysPerSegment;
      int32_t end = step;
      while (end < max_keys && end < segment + kKeysPerSegment &&
             RunEnd(first, last, end) == last) {
        end += kKeysPerStep;
      }
      if (end == step) {
        for (int32_t run = first, run_end; run < last; run = run_end) {
          run_end = RunEnd(run, last, step);
          Walk(run, run_end, step);
        }
        return;
      }
      last - first > kTileRows ? ManyRows(first, last, step, end, max_keys)
                               : FewRows(first, last, step, end, max_keys);
      step = end;
      // The first segment is the total from the start; each further one is merged into it.
      if (segment == 0 || (end < max_keys && end < segment + kKeysPerSegment)) continue;
      for (int32_t r = first; r < last; ++r) {
        if (num_keys(r) > segment) Merge(r);
      }
    }
  }
  State& StateAt(int32_t step) { return step < kKeysPerSegment ? total_ : part_; }

  Item ItemAt(int32_t row, int32_t rows, int32_t step, int32_t max_keys, int32_t buffer) {
    Item item = {.row = row, .rows = rows, .step = step};
    item.num_blocks = max_keys - step > kKvBlockTokens ? 2 : 1;
    const int32_t* table = args_.rows[row].block_table + step / kKvBlockTokens;
    for (int32_t i = 0; i < kBlocksPerStep; ++i) {
      // Where blocks run out the last one stands in; no row sees its keys a second time.
      item.blocks[i] = args_.kv + table[i < item.num_blocks ? i : 0] * int64_t(args_.block_bytes);
    }
    item.scores = scores_[buffer];
    item.weights = weights_[buffer];
    return item;
  }

  // Steps [begin, end) of more than 16 rows, in units of up to 32: items in a pipeline of three
  // stages (scores, weights, values), whose parts take turns, so that the matrix unit and the
  // vector units work at the same time and neither waits for what the other has just stored.
  void ManyRows(int32_t first, int32_t last, int32_t begin, int32_t end, int32_t max_keys) {
    const int32_t num_units = (last - first + kUnitRows - 1) / kUnitRows;
    const int32_t unit_rows = (last - first + num_units - 1) / num_units;
    const int32_t num_items = (end - begin) / kKeysPerStep * num_units;
    const int32_t num_pairs = num_panels_ / 2 + 1;
    const auto item_at = [&](int32_t i) {
      const int32_t row = first + i % num_units * unit_rows;
      return ItemAt(row, last - row < unit_rows ? last - row : unit_rows,
                    begin + i / num_units * kKeysPerStep, max_keys, i % 2);
    };
    Item former, item, next = item_at(0);
    for (int32_t pair = 0; pair < next.num_blocks; ++pair) ScoresOfTwo(next, pair);
    for (int32_t i = 0; i < num_items; ++i) {
      former = item;
      item = next;
      const bool more = i + 1 < num_items;
      if (more) next = item_at(i + 1);
      alignas(64) float shift[kUnitRows], factor[kUnitRows];
      for (int32_t half = 0; half < item.rows; half += kTileRows) {
        MoveMaxima(item, half, shift, factor);
      }
      constexpr int32_t kTurns = 8;
      for (int32_t turn = 0; turn < kTurns; ++turn) {
        constexpr int32_t kRows = kUnitRows / kTurns;
        for (int32_t r = turn * kRows; r < (turn + 1) * kRows && r < item.rows; ++r) {
          Weigh(item, r, shift[r]);
        }
        if (turn < kBlocksPerStep) {
          if (more && turn < next.num_blocks) ScoresOfTwo(next, turn);
        } else if (i > 0) {
          constexpr int32_t kLeft = kTurns - kBlocksPerStep;
          const int32_t done = turn - kBlocksPerStep;
          for (int32_t p = num_pairs * done / kLeft; p < num_pairs * (done + 1) / kLeft; ++p) {
            AddValuesOfTwo(former, 2 * p);
          }
        }
      }
      Rescale(item, factor);
    }
    for (int32_t p = 0; p < num_pairs; ++p) AddValuesOfTwo(item, 2 * p);
  }

  // Up to 16 rows wait for memory, not for the units: one step after the other.
  void FewRows(int32_t first, int32_t last, int32_t begin, int32_t end, int32_t max_keys) {
    for (int32_t step = begin; step < end; step += kKeysPerStep) {
      const Item item = ItemAt(first, last - first, step, max_keys, 0);
      ScoresOfOne(item);
      alignas(64) float shift[kTileRows], factor[kTileRows];
      MoveMaxima(item, 0, shift, factor);
      for (int32_t r = 0; r < item.rows; ++r) Weigh(item, r, shift[r]);
      Rescale(item, factor);
      AddValuesOfOne(item);
    }
  }

  // Tiles 0 to 3 are sums, 4 and 5 rows of q or of weights, 6 and 7 keys or values. The upper and
  // the lower rows are those of 0, 1 and 4 and of 2, 3 and 5.
  void Configure(int32_t upper, int32_t lower) {
    if (upper == upper_ && lower == lower_) return;
    upper_ = upper;
    lower_ = lower;
    const int32_t tile_rows[8] = {upper, upper, lower, lower, upper, lower, kTileRows, kTileRows};
    amx::TileConfig config;
    for (int t = 0; t < 8; ++t) {
      config.rows[t] = static_cast<uint8_t>(tile_rows[t]);
      config.row_bytes[t] = kTileRowBytes;
    }
    amx::LoadTileConfig(config);
  }

  // scores[r][j] = q . k, not yet scaled, over the keys of one block.
  void ScoresOfTwo(const Item& item, int32_t block) {
    const int32_t upper = item.upper(), padded = args_.head_dim_padded;
    const int64_t q_bytes = padded * 2;
    const uint16_t* q = q_ + item.row * padded;
    const uint16_t* q_lower = q + upper * padded;
    const std::byte* k = item.blocks[block];
    const std::byte* k_second = k + args_.k_bytes / 2;
    Configure(upper, item.rows - upper);
    amx::ZeroTile<0>();
    amx::ZeroTile<1>();
    amx::ZeroTile<2>();
    amx::ZeroTile<3>();
    for (int32_t d = 0; d < padded; d += kTileK, k += kTileBytes, k_second += kTileBytes) {
      amx::LoadTile<4>(q + d, q_bytes);
      amx::LoadTile<6>(k, kTileRowBytes);
      amx::DotTiles<0, 4, 6>();
      amx::LoadTile<7>(k_second, kTileRowBytes);
      amx::DotTiles<1, 4, 7>();
      amx::LoadTile<5>(q_lower + d, q_bytes);
      amx::DotTiles<2, 5, 6>();
      amx::DotTiles<3, 5, 7>();
    }
    float* s = item.scores + block * kKvBlockTokens;
    float* s_lower = s + upper * kKeysPerStep;
    constexpr int64_t kBytes = kKeysPerStep * 4;
    amx::StoreTile<0>(s, kBytes);
    amx::StoreTile<1>(s + 16, kBytes);
    amx::StoreTile<2>(s_lower, kBytes);
    amx::StoreTile<3>(s_lower + 16, kBytes);
  }

  // The same over the whole step for up to 16 rows: four chains in flight.
  void ScoresOfOne(const Item& item) {
    Configure(item.rows, item.rows);
    amx::ZeroTile<0>();
    amx::ZeroTile<1>();
    amx::ZeroTile<2>();
    amx::ZeroTile<3>();
    const uint16_t* q = q_ + item.row * args_.head_dim_padded;
    const size_t second = args_.k_bytes / 2;
    for (int32_t d = 0; d < args_.head_dim_padded; d += kTileK) {
      const int32_t offset = d / kTileK * kTileBytes;
      amx::LoadTile<4>(q + d, args_.head_dim_padded * 2);
      amx::LoadTile<6>(item.blocks[0] + offset, kTileRowBytes);
      amx::LoadTile<7>(item.blocks[0] + second + offset, kTileRowBytes);
      amx::DotTiles<0, 4, 6>();
      amx::DotTiles<1, 4, 7>();
      amx::LoadTile<6>(item.blocks[1] + offset, kTileRowBytes);
      amx::LoadTile<7>(item.blocks[1] + second + offset, kTileRowBytes);
      amx::DotTiles<2, 4, 6>();
      amx::DotTiles<3, 4, 7>();
    }
    constexpr int64_t kBytes = kKeysPerStep * 4;
    amx::StoreTile<0>(item.scores, kBytes);
    amx::StoreTile<1>(item.scores + 16, kBytes);
    amx::StoreTile<2>(item.scores + 32, kBytes);
    amx::StoreTile<3>(item.scores + 48, kBytes);
  }

  // How many keys of the step the row sees.
  int32_t Visible(int32_t row, int32_t step) const {
    const int32_t left = num_keys(row) - step;
    return left < 0 ? 0 : left > kKeysPerStep ? kKeysPerStep : left;
  }
  // Those of the 16 keys from 16 * group on, if it sees so many of the step.
  static __mmask16 MaskOf(int32_t visible, int32_t group) {
    const int32_t left = visible - 16 * group;
    return left >= 16 ? 0xffff : Vec::First(left < 0 ? 0 : left);
  }

  // The largest visible score of the row, not yet scaled, or -inf.
  static Vec LargestScore(const float* scores, int32_t visible) {
    Vec max = Vec::Set(-__builtin_inff());
    if (visible == kKeysPerStep) {
      for (int32_t g = 0; g < kGroupsPerStep; ++g) {
        max = {_mm512_max_ps(_mm512_load_ps(scores + 16 * g), max.v)};  // max where it is NaN
      }
      return max;
    }
    for (int32_t g = 0; 16 * g < visible; ++g) {
      const __m512 s = _mm512_load_ps(scores + 16 * g);
      max = {_mm512_mask_max_ps(max.v, MaskOf(visible, g), s, max.v)};
    }
    return max;
  }

  // Moves the maxima of the 16 rows from `half` on past this step's scores; shift is the new
  // maxima, factor what is there already must be multiplied by.
  void MoveMaxima(const Item& item, int32_t half, float* shift, float* factor) {
    const int32_t rows = item.rows - half < kTileRows ? item.rows - half : kTileRows;
    Vec largest[kTileRows];
    __mmask16 sees = 0;  // rows that see a key of the step
    for (int32_t r = 0; r < kTileRows; ++r) {
      const int32_t visible = r < rows ? Visible(item.row + half + r, item.step) : 0;
      largest[r] = LargestScore(item.scores + (half + r) * kKeysPerStep, visible);
      sees = static_cast<__mmask16>(sees | (visible > 0) << r);
    }
    float* max = StateAt(item.step).max + item.row + half;
    const Vec old_max = item.fresh() ? Vec::Set(-__builtin_inff()) : Vec::Load(max);
    const Vec step_max = LargestOfEach(largest) * Vec::Set(args_.scale);
    const Vec new_max = {_mm512_max_ps(step_max.v, old_max.v)};
    new_max.StoreFirst(max, rows);
    new_max.Store(shift + half);
    const __m512 change = Exp(old_max - new_max).v;
    _mm512_storeu_ps(factor + half, _mm512_mask_mov_ps(_mm512_set1_ps(1.0f), sees, change));
  }

  // weights[j] = exp(scores[j] * scale - shift) in bf16 for the keys that the row sees, 0 beyond.
  void Weigh(const Item& item, int32_t r, float shift) const {
    const float* scores = item.scores + r * kKeysPerStep;
    uint16_t* weights = item.weights + r * kKeysPerStep;
    const int32_t visible = Visible(item.row + r, item.step);
    const Vec scale = Vec::Set(args_.scale);
    const Vec by = Vec::Set(0.0f - shift);
    for (int32_t g = 0; g < kGroupsPerStep; g += 2) {
      const Vec low = ExpOfWeight(Fma(Vec::Load(scores + 16 * g), scale, by));
      const Vec high = ExpOfWeight(Fma(Vec::Load(scores + 16 * g + 16), scale, by));
      const auto mask = static_cast<__mmask32>(MaskOf(visible, g) | MaskOf(visible, g + 1) << 16);
      const __m512bh both = _mm512_maskz_cvtne2ps_pbh(mask, high.v, low.v);
      _mm512_store_si512(weights + 16 * g, (__m512i)both);
    }
  }

  // Multiplies what is there by the rows' factors.
  void Rescale(const Item& item, const float* factor) {
    if (item.fresh()) return;  // nothing
    float* acc = StateAt(item.step).acc + item.row * stride_;
    for (int32_t r = 0; r < item.rows; ++r, acc += stride_) {
      if (factor[r] == 1.0f) continue;
      const Vec by = Vec::Set(factor[r]);
      for (int32_t d = 0; d < stride_; d += 16) (Vec::Load(acc + d) * by).Store(acc + d);
    }
  }

  // Values of one block in a panel; the panel behind the last is the rows' sums of weights.
  const std::byte* Values(const Item& item, int32_t block, int32_t panel) const {
    return panel < num_panels_ ? item.blocks[block] + args_.k_bytes + panel * kTileBytes
                               : reinterpret_cast<const std::byte*>(ones_.bf16);
  }

  // acc += weights * V over two panels, of which the second may be missing.
  void AddValuesOfTwo(const Item& item, int32_t panel) {
    constexpr int64_t kWeightBytes = kKeysPerStep * 2;
    const int32_t upper = item.upper();
    const int64_t bytes = stride_ * 4;
    const bool pair = panel < num_panels_;
    float* c = StateAt(item.step).acc + item.row * stride_ + panel * 16;
    float* c_lower = c + upper * stride_;
    Configure(upper, item.rows - upper);
    if (item.fresh()) {
      amx::ZeroTile<0>();
      amx::ZeroTile<1>();
      amx::ZeroTile<2>();
      amx::ZeroTile<3>();
    } else {
      amx::LoadTile<0>(c, bytes);
      amx::LoadTile<2>(c_lower, bytes);
      if (pair) amx::LoadTile<1>(c + 16, bytes);
      if (pair) amx::LoadTile<3>(c_lower + 16, bytes);
    }
    for (int32_t block = 0; block < item.num_blocks; ++block) {
      const uint16_t* weights = item.weights + block * kKvBlockTokens;
      amx::LoadTile<4>(weights, kWeightBytes);
      amx::LoadTile<6>(Values(item, block, panel), kTileRowBytes);
      amx::DotTiles<0, 4, 6>();
      amx::LoadTile<5>(weights + upper * kKeysPerStep, kWeightBytes);
      amx::DotTiles<2, 5, 6>();
      if (!pair) continue;
      amx::LoadTile<7>(Values(item, block, panel + 1), kTileRowBytes);
      amx::DotTiles<1, 4, 7>();
      amx::DotTiles<3, 5, 7>();
    }
    amx::StoreTile<0>(c, bytes);
    amx::StoreTile<2>(c_lower, bytes);
    if (pair) amx::StoreTile<1>(c + 16, bytes);
    if (pair) amx::StoreTile<3>(c_lower + 16, bytes);
  }

  // The same for up to 16 rows, over all panels: two of a block at a time.
  void AddValuesOfOne(const Item& item) {
    constexpr int64_t kWeightBytes = kKeysPerStep * 2;
    const int64_t bytes = stride_ * 4;
    float* c = StateAt(item.step).acc + item.row * stride_;
    amx::LoadTile<4>(item.weights, kWeightBytes);
    amx::LoadTile<5>(item.weights + kKvBlockTokens, kWeightBytes);
    for (int32_t panel = 0; panel <= num_panels_; ++panel, c += 16) {
      if (item.fresh()) {
        amx::ZeroTile<0>();
      } else {
        amx::LoadTile<0>(c, bytes);
      }
      amx::LoadTile<6>(Values(item, 0, panel), kTileRowBytes);
      amx::DotTiles<0, 4, 6>();
      if (item.num_blocks == 2) {
        amx::LoadTile<7>(Values(item, 1, panel), kTileRowBytes);
        amx::DotTiles<0, 5, 7>();
      }
      amx::StoreTile<0>(c, bytes);
    }
  }

  // The row's total continues by the segment that is done.
  void Merge(int32_t row) {
    const float old_max = total_.max[row], part_max = part_.max[row];
    const float max = part_max > old_max ? part_max : old_max;
    const Vec old_factor = Exp(Vec::Set(old_max) - Vec::Set(max));
    const Vec part_factor = Exp(Vec::Set(part_max) - Vec::Set(max));
    float* acc = total_.acc + row * stride_;
    const float* part = part_.acc + row * stride_;
    for (int32_t d = 0; d < stride_; d += 16) {
      Fma(Vec::Load(acc + d), old_factor, Vec::Load(part + d) * part_factor).Store(acc + d);
    }
    total_.max[row] = max;
  }

  void Finish(int32_t row) const {
    const float* acc = total_.acc + row * stride_;
    const Vec inverse = Vec::Set(1.0f / acc[num_panels_ * 16]);
    for (int32_t d = 0; d < args_.head_dim; d += 16) {
      const int n = args_.head_dim - d < 16 ? args_.head_dim - d : 16;
      const Vec out = (Vec::Load(acc + d) + Vec::Set(0.0f)) * inverse;
      out.StoreBf16First(static_cast<uint16_t*>(args_.rows[row].out) + d, n);
    }
  }

  const AttentionArgs& args_;
  const int32_t num_panels_;  // of V
  const int32_t stride_;
  const OnesTile ones_;
  int32_t upper_ = 0, lower_ = 0;  // rows that the tiles are configured for
  // Of an item and the next.
  alignas(64) float scores_[2][kUnitRows * kKeysPerStep];
  alignas(64) uint16_t weights_[2][kUnitRows * kKeysPerStep];
  alignas(64) uint16_t q_[kMaxQueryRows * kMaxHeadDim];  // [rows, head_dim_padded]
  State part_;                                           // of the segment
  State total_;                                          // of the segments before it
};

}  // namespace

void AmxAttention(const AttentionArgs& args) {
  AmxAttentionWalk walk(args);
  walk.Run();
}

}  // namespace skein
