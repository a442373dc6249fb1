// The attention walk of the AMX class (docs/numerics.md) on the matrix unit. avx512.cc explains the
// order of includes.

// g++ 12 warns of deliberately undefined inputs inside its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include "kernels/cpu/amx_tile.h"
#include "kernels/cpu/ops.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")

#include "kernels/cpu/vec_avx512.h"
// The bodies come after the vector.
#include "kernels/cpu/attention_runs.h"
#include "kernels/cpu/math_body.h"

namespace skein {
namespace {

using avx512::Vec;

constexpr int32_t kTileRows = 16;
constexpr int32_t kTileK = 32;         // bf16 in one tile row
constexpr int32_t kTileRowBytes = 64;  // of every tile: 32 bf16, 16 pairs or 16 f32
constexpr int32_t kTileBytes = kTileRows * kTileRowBytes;
constexpr int32_t kUnitRows = 2 * kTileRows;  // the most rows that pass through the tiles together
constexpr int32_t kBlocksPerStep = kKeysPerAmxStep / kKvBlockTokens;
constexpr int32_t kBlockScores = kUnitRows * kKvBlockTokens;  // scores of one block of an item
static_assert(kKvBlockTokens == kTileK, "a tile of weights is a block of keys");

// Lane i of the result is the largest element of v[i]; none is NaN. Changes v.
Vec LargestOfEach(Vec v[16]) {
  // Each round halves the number of vectors. It folds the halves of every 32, 16, 8 and 4 bytes of
  // two vectors and puts the results side by side.
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
  // Folding leaves the maximum of vector i in another lane: the number of that lane is i with bits
  // 0 and 1 swapped, and bits 2 and 3 swapped.
  const __m512i order = _mm512_setr_epi32(0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15);
  return {_mm512_permutexvar_ps(order, folded)};
}

// 2^x for x of at most about 0, with a relative error of 1e-4. Below 2^-126 the result is +0, or a
// denormal that rounding flushes. A NaN stays a NaN: the unit's NaNs have zeros in the low bits
// that the sum of exponents reads.
Vec PowerOfTwo(Vec x) {
  const Vec magic = Vec::Set(0x1.8p23f);  // rounds to an integer in the low bits
  const Vec clamped = {_mm512_max_ps(_mm512_set1_ps(-127.0f), x.v)};
  const Vec shifted = clamped + magic;
  const Vec r = clamped - (shifted - magic);
  Vec y = Fma(Vec::Set(0x1.c2a218p-5f), r, Vec::Set(0x1.f00c4ep-3f));
  y = Fma(y, r, Vec::Set(0x1.62f5fap-1f));
  return AddExponent(Fma(y, r, Vec::Set(1.0f)), shifted);
}

// x * 2^n for integers n <= 0 or -inf; exact unless the result is flushed.
Vec ScaleBy(Vec x, Vec n) { return {_mm512_scalef_ps(x.v, n.v)}; }

// Up to kUnitRows rows in one step.
struct Item {
  int32_t row;  // of the call
  int32_t rows;
  int32_t step;
  int32_t first_block;  // of the step: the first that a row sees a key of
  int32_t num_blocks;   // from first_block to the last that a row sees a key of
  bool whole;           // whether every row sees all keys of the step
  bool fresh;           // whether the state begins with the step
  const std::byte* blocks[kBlocksPerStep];
  uint16_t* weights;  // [kBlocksPerStep, kUnitRows, kKvBlockTokens]

  // Rows of the first of two tiles; the second tile has the rest.
  int32_t upper() const { return (rows + 1) / 2; }
};

// The walk of one call. About 250 KB, on the stack of the thread that runs it.
class AmxAttentionWalk {
 public:
  explicit AmxAttentionWalk(const AttentionArgs& args)
      : args_(args),
        num_panels_((args.head_dim + 15) / 16),
        stride_(num_panels_ * 16),
        scale_(args.scale * 0x1.715476p+0f),
        start_(VisibleKeysOfAll<Vec>(args.rows, args.num_rows).begin / kKeysPerAmxStep *
               kKeysPerAmxStep) {
    for (int32_t r = 0; r < args.num_rows; ++r) {
      const auto* from = static_cast<const uint16_t*>(args.rows[r].q);
      uint16_t* to = q_ + r * args.head_dim_padded;
      for (int32_t d = 0; d < args.head_dim; d += 32) {
        const int32_t n = args.head_dim - d < 32 ? args.head_dim - d : 32;
        const auto mask = static_cast<__mmask32>(~0u >> (32 - n));
        const uint16_t* piece = from + PieceIndex(d, args.piece_stride);
        _mm512_storeu_si512(to + d, _mm512_maskz_loadu_epi16(mask, piece));
      }
    }
  }

  void Run() {
    Walk(0, args_.num_rows, start_);
    amx::ReleaseTiles();
    for (int32_t r = 0; r < args_.num_rows; ++r) Finish(r);
  }

 private:
  struct State {
    float max[kMaxQueryRows + 16];                       // integers
    alignas(64) float sum[kMaxQueryRows * 16];           // [rows, lanes]
    alignas(64) float acc[kMaxQueryRows * kMaxHeadDim];  // [rows, stride_]
  };

  // The end of the run of rows from `first` on that share the step, at most `last`.
  int32_t RunEnd(int32_t first, int32_t last, int32_t step) const {
    return skein::RunEnd<Vec, kKeysPerAmxStep>(args_.rows, first, last, step);
  }

  // Walks the rows [first, last) from `step` on. They walk together while they read the same
  // blocks; then each run of rows that does walks on its own.
  void Walk(int32_t first, int32_t last, int32_t step) {
    const int32_t max_keys = VisibleKeysOfAll<Vec>(args_.rows + first, last - first).end;
    // If the last key of these rows is the last shared one, the other rows went on without them.
    if (step >= max_keys && step % kKeysPerSegment != 0) {
      MergeSegment(first, last, step / kKeysPerSegment * kKeysPerSegment);
    }
    while (step < max_keys) {
      const int32_t segment = step / kKeysPerSegment * kKeysPerSegment;
      int32_t end = step;
      while (end < max_keys && end < segment + kKeysPerSegment &&
             RunEnd(first, last, end) == last) {
        end += kKeysPerAmxStep;
      }
      if (end == step) {
        for (int32_t run = first, run_end; run < last; run = run_end) {
          run_end = RunEnd(run, last, step);
          Walk(run, run_end, step);
        }
        return;
      }
      last - first > kTileRows ? ManyRows(first, last, step, end) : FewRows(first, last, step, end);
      step = end;
      if (end >= max_keys || end == segment + kKeysPerSegment) MergeSegment(first, last, segment);
    }
  }
  // The first segment of the walk becomes the total; each later one is merged into it. For a row
  // that sees no key of the first one, the total is still empty then.
  void MergeSegment(int32_t first, int32_t last, int32_t segment) {
    if (segment <= start_) return;
    for (int32_t r = first; r < last; ++r) {
      if (VisibleKeys<Vec>(args_.rows[r]).end > segment) Merge(r);
    }
  }
  State& StateAt(int32_t step) {
    return step < (start_ / kKeysPerSegment + 1) * kKeysPerSegment ? total_ : part_;
  }

  Item ItemAt(int32_t row, int32_t rows, int32_t step, int32_t buffer) {
    Item item;
    item.row = row;
    item.rows = rows;
    item.step = step;
    item.fresh = step == start_ || step % kKeysPerSegment == 0;
    item.whole = true;
    int32_t begin = kKeysPerAmxStep, end = 0;
    for (int32_t r = row; r < row + rows; ++r) {
      const KeyRange visible = Visible(r, step);
      item.whole = item.whole && visible.begin == 0 && visible.end == kKeysPerAmxStep;
      if (visible.begin >= visible.end) continue;
      begin = visible.begin < begin ? visible.begin : begin;
      end = visible.end > end ? visible.end : end;
    }
    item.first_block = begin / kKvBlockTokens;
    const int32_t end_block = (end + kKvBlockTokens - 1) / kKvBlockTokens;
    item.num_blocks = end_block > item.first_block ? end_block - item.first_block : 0;
    const int32_t* table = args_.rows[row].block_table + step / kKvBlockTokens + item.first_block;
    for (int32_t i = 0; i < item.num_blocks; ++i) {
      const auto bytes = static_cast<int64_t>(args_.block_bytes);
      item.blocks[i] = table[i] < args_.num_blocks
                           ? args_.kv + table[i] * bytes
                           : args_.own_kv + (table[i] - args_.num_blocks) * bytes;
    }
    item.weights = weights_[buffer];
    return item;
  }

  // Computes the weights of an item a few keys at a time, between the products of other items.
  class Weigher {
   public:
    Weigher(AmxAttentionWalk* walk, const Item& item, const float* shift)
        : walk_(*walk), item_(item), shift_(shift) {}
    void Some() {
      if (block_ >= item_.num_blocks) return;
      const int32_t begin = row_, end = begin + 4 < item_.rows ? begin + 4 : item_.rows;
      for (int32_t r = begin; r < end; ++r) walk_.Weigh(item_, block_, r, shift_[r]);
      row_ = end < item_.rows ? end : 0;
      if (row_ == 0) ++block_;
    }
    void ThroughBlock(int32_t block) {
      while (block_ <= block && block_ < item_.num_blocks) Some();
    }

   private:
    AmxAttentionWalk& walk_;
    const Item& item_;
    const float* shift_;
    int32_t block_ = 0, row_ = 0;
  };

  // Steps [begin, end) of more than 16 rows, in units of up to 32 rows. Items pass through a
  // pipeline of three stages (scores, weights, values) whose parts alternate, so the matrix unit
  // and the vector units work at the same time. An item's scores overwrite those of the previous
  // item, whose weights have just been computed.
  void ManyRows(int32_t first, int32_t last, int32_t begin, int32_t end) {
    const int32_t num_units = (last - first + kUnitRows - 1) / kUnitRows;
    const int32_t unit_rows = (last - first + num_units - 1) / num_units;
    const int32_t num_items = (end - begin) / kKeysPerAmxStep * num_units;
    const auto item_at = [&](int32_t i) {
      const int32_t row = first + i % num_units * unit_rows;
      return ItemAt(row, last - row < unit_rows ? last - row : unit_rows,
                    begin + i / num_units * kKeysPerAmxStep, i % 2);
    };
    const auto nothing = [] {};
    Item former, item, next = item_at(0);
    for (int32_t b = 0; b < next.num_blocks; ++b) ScoresOfTwo(next, b, nothing);
    for (int32_t i = 0; i < num_items; ++i) {
      former = item;
      item = next;
      alignas(64) float shift[kUnitRows], factor[kUnitRows];
      int32_t panel = 0, row = 0;
      if (i > 0) {
        AddValuesOfTwo(former, 0, [&] {
          for (int n = 0; n < 4 && row < item.rows; ++n) FindLargest(item, row++);
        });
        panel = 2;
      }
      while (row < item.rows) FindLargest(item, row++);
      for (int32_t half = 0; half < item.rows; half += kTileRows) {
        MoveMaxima(item, half, shift, factor);
      }
      if (i + 1 < num_items) {
        next = item_at(i + 1);
      } else {
        next.num_blocks = 0;
      }
      Weigher weigher(this, item, shift);
      const auto weigh_some = [&] { weigher.Some(); };
      for (int32_t b = 0; b < next.num_blocks || (i > 0 && panel < num_panels_); ++b, panel += 2) {
        if (i > 0 && panel < num_panels_) AddValuesOfTwo(former, panel, weigh_some);
        if (b >= next.num_blocks) continue;
        weigher.ThroughBlock(b);
        ScoresOfTwo(next, b, weigh_some);
      }
      weigher.ThroughBlock(kBlocksPerStep);
      Rescale(item, factor);
    }
    for (int32_t p = 0; p < num_panels_; p += 2) AddValuesOfTwo(item, p, nothing);
  }

  // Up to 16 rows are bound by memory, not by the units: one step after the other.
  void FewRows(int32_t first, int32_t last, int32_t begin, int32_t end) {
    for (int32_t step = begin; step < end; step += kKeysPerAmxStep) {
      const Item item = ItemAt(first, last - first, step, 0);
      ScoresOfOne(item);
      alignas(64) float shift[kTileRows], factor[kTileRows];
      for (int32_t r = 0; r < item.rows; ++r) FindLargest(item, r);
      MoveMaxima(item, 0, shift, factor);
      Weigher(this, item, shift).ThroughBlock(kBlocksPerStep);
      Rescale(item, factor);
      for (int32_t panel = 0; panel < num_panels_; panel += 4) AddValuesOfOne(item, panel);
    }
  }

  // Tiles 0 to 3 are sums, 4 and 5 rows of q or of weights, 6 and 7 keys or values. Tiles 0, 1 and
  // 4 hold the upper rows, tiles 2, 3 and 5 the lower rows.
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

  float* Scores(int32_t block) { return scores_ + block * kBlockScores; }

  // q . k, not yet scaled, for the rows and the keys of one block. Calls `between` after every four
  // products.
  template <class Between>
  void ScoresOfTwo(const Item& item, int32_t block, const Between& between) {
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
      amx::LoadTileSpaced<4>(q + d, q_bytes);
      amx::LoadTileSpaced<6>(k, kTileRowBytes);
      amx::LoadTileSpaced<7>(k_second, kTileRowBytes);
      amx::LoadTileSpaced<5>(q_lower + d, q_bytes);
      amx::DotSpaced<false, 0, 4, 6>();
      amx::DotSpaced<false, 1, 4, 7>();
      amx::DotSpaced<false, 2, 5, 6>();
      amx::DotSpaced<false, 3, 5, 7>();
      between();
    }
    float* s = Scores(block);
    float* s_lower = s + upper * kKvBlockTokens;
    constexpr int64_t kBytes = kKvBlockTokens * 4;
    amx::StoreTile<0>(s, kBytes);
    amx::StoreTile<1>(s + 16, kBytes);
    amx::StoreTile<2>(s_lower, kBytes);
    amx::StoreTile<3>(s_lower + 16, kBytes);
  }

  // The same over the whole step for up to 16 rows, in four independent chains.
  void ScoresOfOne(const Item& item) {
    Configure(item.rows, item.rows);
    const uint16_t* q = q_ + item.row * args_.head_dim_padded;
    const size_t second = args_.k_bytes / 2;
    constexpr int64_t kBytes = kKvBlockTokens * 4;
    for (int32_t block = 0; block < item.num_blocks; block += 2) {
      const bool two = block + 1 < item.num_blocks;
      amx::ZeroTile<0>();
      amx::ZeroTile<1>();
      amx::ZeroTile<2>();
      amx::ZeroTile<3>();
      for (int32_t d = 0; d < args_.head_dim_padded; d += kTileK) {
        const int32_t offset = d / kTileK * kTileBytes;
        amx::LoadTile<4>(q + d, args_.head_dim_padded * 2);
        amx::LoadTile<6>(item.blocks[block] + offset, kTileRowBytes);
        amx::LoadTile<7>(item.blocks[block] + second + offset, kTileRowBytes);
        amx::DotTiles<0, 4, 6>();
        amx::DotTiles<1, 4, 7>();
        if (!two) continue;
        amx::LoadTile<6>(item.blocks[block + 1] + offset, kTileRowBytes);
        amx::LoadTile<7>(item.blocks[block + 1] + second + offset, kTileRowBytes);
        amx::DotTiles<2, 4, 6>();
        amx::DotTiles<3, 4, 7>();
      }
      float* s = Scores(block);
      amx::StoreTile<0>(s, kBytes);
      amx::StoreTile<1>(s + 16, kBytes);
      if (!two) continue;
      amx::StoreTile<2>(s + kBlockScores, kBytes);
      amx::StoreTile<3>(s + kBlockScores + 16, kBytes);
    }
  }

  // The keys of the step that the row sees, relative to the step.
  KeyRange Visible(int32_t row, int32_t step) const {
    return VisibleInStep<Vec, kKeysPerAmxStep>(args_.rows[row], step);
  }
  // The keys of the item's block that the row sees.
  __mmask32 MaskOf(const Item& item, int32_t block, int32_t r) const {
    const KeyRange visible = Visible(item.row + r, item.step);
    const int32_t key = (item.first_block + block) * kKvBlockTokens;
    return FirstKeys(visible.end - key) & ~FirstKeys(visible.begin - key);
  }
  static __mmask32 FirstKeys(int32_t count) {
    return count >= kKvBlockTokens ? ~0u : count <= 0 ? 0 : (1u << count) - 1;
  }

  // largest_[r] = the largest score of item row r among visible keys, not yet scaled, or -inf.
  void FindLargest(const Item& item, int32_t r) {
    const float* s = scores_ + r * kKvBlockTokens;
    __m512 low = _mm512_set1_ps(-__builtin_inff()), high = low;
    for (int32_t b = 0; b < item.num_blocks; ++b, s += kBlockScores) {
      if (item.whole) {  // max(NaN, a) is a
        low = _mm512_max_ps(_mm512_load_ps(s), low);
        high = _mm512_max_ps(_mm512_load_ps(s + 16), high);
      } else {
        const __mmask32 mask = MaskOf(item, b, r);
        low = _mm512_mask_max_ps(low, mask & 0xffff, _mm512_load_ps(s), low);
        high = _mm512_mask_max_ps(high, mask >> 16, _mm512_load_ps(s + 16), high);
      }
    }
    largest_[r] = {_mm512_max_ps(low, high)};
  }

  // Updates the maxima of the 16 rows from `half` on by this step's scores, and rescales their sums
  // of weights. shift: the new maxima. factor: the power of two by which their accumulators must be
  // multiplied.
  void MoveMaxima(const Item& item, int32_t half, float* shift, float* factor) {
    const int32_t rows = item.rows - half < kTileRows ? item.rows - half : kTileRows;
    State& state = StateAt(item.step);
    float* max = state.max + item.row + half;
    const Vec old_max = item.fresh ? Vec::Set(-__builtin_inff()) : Vec::Load(max);
    for (int32_t r = rows; r < kTileRows; ++r) largest_[half + r] = Vec::Set(-__builtin_inff());
    const Vec scaled = LargestOfEach(largest_ + half) * Vec::Set(scale_);
    constexpr int kUp = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;
    const Vec new_max = {_mm512_max_ps(_mm512_roundscale_ps(scaled.v, kUp), old_max.v)};
    new_max.StoreFirst(max, rows);
    new_max.Store(shift + half);
    // The change is 0 where the maximum stays. The difference would be NaN for rows that have seen
    // no key.
    const __mmask16 moves = _mm512_cmp_ps_mask(new_max.v, old_max.v, _CMP_NEQ_OQ);
    const Vec change = {_mm512_maskz_sub_ps(moves, old_max.v, new_max.v)};
    change.Store(factor + half);
    float* sum = state.sum + (item.row + half) * 16;
    for (int32_t r = 0; r < rows; ++r, sum += 16) {
      const Vec old = item.fresh ? Vec::Set(0.0f) : Vec::Load(sum);
      ScaleBy(old, Vec::Set(factor[half + r])).Store(sum);
    }
  }

  // weights[j] = 2^(scores[j] * scale - shift) in bf16 for the keys of the block that the row sees,
  // 0 for the others. Adds them to the row's sum.
  void Weigh(const Item& item, int32_t block, int32_t r, float shift) {
    const float* scores = Scores(block) + r * kKvBlockTokens;
    uint16_t* weights = item.weights + block * kBlockScores + r * kKvBlockTokens;
    const Vec scale = Vec::Set(scale_);
    const Vec by = Vec::Set(shift);
    const auto power = [&](const float* s) {
      return PowerOfTwo({_mm512_fmsub_ps(_mm512_load_ps(s), scale.v, by.v)});
    };
    const Vec low = power(scores), high = power(scores + 16);
    __m512bh both = _mm512_cvtne2ps_pbh(high.v, low.v);
    if (!item.whole) {
      both = (__m512bh)_mm512_maskz_mov_epi16(MaskOf(item, block, r), (__m512i)both);
    }
    _mm512_store_si512(weights, (__m512i)both);
    float* sum = StateAt(item.step).sum + (item.row + r) * 16;
    const auto ones = (__m512bh)_mm512_set1_epi16(0x3f80);
    _mm512_store_ps(sum, _mm512_dpbf16_ps(_mm512_load_ps(sum), both, ones));
  }

  // Multiplies the accumulators by the rows' factors.
  void Rescale(const Item& item, const float* factor) {
    if (item.fresh) return;  // nothing is accumulated yet
    float* acc = StateAt(item.step).acc + item.row * stride_;
    for (int32_t r = 0; r < item.rows; ++r, acc += stride_) {
      if (factor[r] == 0.0f) continue;
      const Vec by = Vec::Set(factor[r]);
      for (int32_t d = 0; d < stride_; d += 16) ScaleBy(Vec::Load(acc + d), by).Store(acc + d);
    }
  }

  const std::byte* Values(const Item& item, int32_t block, int32_t panel) const {
    return item.blocks[block] + args_.k_bytes + panel * kTileBytes;
  }

  // acc += weights * V over two panels; the second may be missing. Calls `between` after every four
  // products.
  template <class Between>
  void AddValuesOfTwo(const Item& item, int32_t panel, const Between& between) {
    const int32_t upper = item.upper();
    const int64_t bytes = stride_ * 4;
    const bool pair = panel + 1 < num_panels_;
    float* c = StateAt(item.step).acc + item.row * stride_ + panel * 16;
    float* c_lower = c + upper * stride_;
    Configure(upper, item.rows - upper);
    if (item.fresh) {
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
      const uint16_t* weights = item.weights + block * kBlockScores;
      amx::LoadTileSpaced<4>(weights, kTileRowBytes);
      amx::LoadTileSpaced<6>(Values(item, block, panel), kTileRowBytes);
      amx::LoadTileSpaced<5>(weights + upper * kKvBlockTokens, kTileRowBytes);
      if (pair) amx::LoadTileSpaced<7>(Values(item, block, panel + 1), kTileRowBytes);
      amx::DotSpaced<false, 0, 4, 6>();
      amx::DotSpaced<false, 2, 5, 6>();
      if (pair) {
        amx::DotSpaced<false, 1, 4, 7>();
        amx::DotSpaced<false, 3, 5, 7>();
      }
      between();
    }
    amx::StoreTile<0>(c, bytes);
    amx::StoreTile<2>(c_lower, bytes);
    if (pair) amx::StoreTile<1>(c + 16, bytes);
    if (pair) amx::StoreTile<3>(c_lower + 16, bytes);
  }

  // The same for up to 16 rows, over up to four panels.
  void AddValuesOfOne(const Item& item, int32_t panel) {
    const int64_t bytes = stride_ * 4;
    const int32_t panels = num_panels_ - panel;
    float* c = StateAt(item.step).acc + item.row * stride_ + panel * 16;
    if (item.fresh) {
      amx::ZeroTile<0>();
      amx::ZeroTile<1>();
      amx::ZeroTile<2>();
      amx::ZeroTile<3>();
    } else {
      amx::LoadTile<0>(c, bytes);
      if (panels > 1) amx::LoadTile<1>(c + 16, bytes);
      if (panels > 2) amx::LoadTile<2>(c + 32, bytes);
      if (panels > 3) amx::LoadTile<3>(c + 48, bytes);
    }
    for (int32_t block = 0; block < item.num_blocks; ++block) {
      const std::byte* v = Values(item, block, panel);
      amx::LoadTile<4>(item.weights + block * kBlockScores, kTileRowBytes);
      amx::LoadTile<6>(v, kTileRowBytes);
      amx::DotTiles<0, 4, 6>();
      if (panels > 1) {
        amx::LoadTile<7>(v + kTileBytes, kTileRowBytes);
        amx::DotTiles<1, 4, 7>();
      }
      if (panels > 2) {
        amx::LoadTile<6>(v + 2 * kTileBytes, kTileRowBytes);
        amx::DotTiles<2, 4, 6>();
      }
      if (panels > 3) {
        amx::LoadTile<7>(v + 3 * kTileBytes, kTileRowBytes);
        amx::DotTiles<3, 4, 7>();
      }
    }
    amx::StoreTile<0>(c, bytes);
    if (panels > 1) amx::StoreTile<1>(c + 16, bytes);
    if (panels > 2) amx::StoreTile<2>(c + 32, bytes);
    if (panels > 3) amx::StoreTile<3>(c + 48, bytes);
  }

  // Merges the finished segment into the row's total.
  void Merge(int32_t row) {
    const float old_max = total_.max[row], part_max = part_.max[row];
    const float max = part_max > old_max ? part_max : old_max;
    const Vec old_change = Vec::Set(old_max == max ? 0.0f : old_max - max);
    const Vec part_change = Vec::Set(part_max == max ? 0.0f : part_max - max);
    const auto merge = [&](float* to, const float* part) {
      (ScaleBy(Vec::Load(to), old_change) + ScaleBy(Vec::Load(part), part_change)).Store(to);
    };
    merge(total_.sum + row * 16, part_.sum + row * 16);
    for (int32_t d = 0; d < stride_; d += 16) {
      merge(total_.acc + row * stride_ + d, part_.acc + row * stride_ + d);
    }
    total_.max[row] = max;
  }

  void Finish(int32_t row) const {
    const float* acc = total_.acc + row * stride_;
    const Vec inverse = Vec::Set(1.0f / Vec::Load(total_.sum + row * 16).Sum());
    for (int32_t d = 0; d < args_.head_dim; d += 16) {
      const int n = args_.head_dim - d < 16 ? args_.head_dim - d : 16;
      const Vec out = (Vec::Load(acc + d) + Vec::Set(0.0f)) * inverse;
      auto* to = static_cast<uint16_t*>(args_.rows[row].out);
      out.StoreBf16First(to + PieceIndex(d, args_.piece_stride), n);
    }
  }

  const AttentionArgs& args_;
  const int32_t num_panels_;  // of V
  const int32_t stride_;
  const float scale_;
  const int32_t start_;            // the first step of the walk
  int32_t upper_ = 0, lower_ = 0;  // rows for which the tiles are configured
  Vec largest_[kUnitRows];
  alignas(64) float scores_[kBlocksPerStep * kBlockScores];  // [blocks, kUnitRows, keys]
  // For an item and the previous one.
  alignas(64) uint16_t weights_[2][kBlocksPerStep * kBlockScores];
  alignas(64) uint16_t q_[kMaxQueryRows * kMaxHeadDim];  // [rows, head_dim_padded]
  State part_;                                           // the segment at hand
  State total_;                                          // the segments before it
};

}  // namespace

void AmxAttention(const AttentionArgs& args) {
  AmxAttentionWalk walk(args);
  walk.Run();
}

}  // namespace skein
