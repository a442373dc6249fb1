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
constexpr int32_t kUnitRows = 2 * kTileRows;  // rows that go through the tiles together
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

// The walk of one call. About 190 KB, on the stack of the thread that runs it.
class AmxAttentionWalk {
 public:
  explicit AmxAttentionWalk(const AttentionArgs& args)
      : args_(args),
        num_panels_((args.head_dim + 15) / 16),
        stride_((num_panels_ + 1) * 16),
        prefetch_(args.num_rows <= kTileRows) {
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

  // Walks the rows [first, last) from `step` on, before which they have walked together: together
  // as long as they read the same blocks, then each run of rows that does on its own.
  void Walk(int32_t first, int32_t last, int32_t step) {
    int32_t max_keys = 0;
    for (int32_t r = first; r < last; ++r)
      max_keys = num_keys(r) > max_keys ? num_keys(r) : max_keys;
    for (; step < max_keys; step += kKeysPerStep) {
      int32_t run_end = first + 1;
      while (run_end < last && ShareStep(run_end - 1, run_end, step)) ++run_end;
      if (run_end < last) {
        for (int32_t run = first; run < last; run = run_end) {
          run_end = run + 1;
          while (run_end < last && ShareStep(run_end - 1, run_end, step)) ++run_end;
          Walk(run, run_end, step);
        }
        return;
      }
      Step(first, last, step, max_keys);
    }
  }

  // The first segment is the total from the start; each further one is merged into it.
  State& StateAt(int32_t step) { return step < kKeysPerSegment ? total_ : part_; }

  void Step(int32_t first, int32_t last, int32_t step, int32_t max_keys) {
    State& state = StateAt(step);
    const int32_t left = max_keys - step;
    num_blocks_ = left > kKvBlockTokens ? 2 : 1;
    const int32_t* table = args_.rows[first].block_table + step / kKvBlockTokens;
    for (int32_t i = 0; i < kBlocksPerStep; ++i) {
      // Where blocks run out the last one stands in; no row sees its keys a second time.
      blocks_[i] = args_.kv + table[i < num_blocks_ ? i : 0] * int64_t(args_.block_bytes);
      const int32_t ahead = left > kKeysPerStep + i * kKvBlockTokens ? i + kBlocksPerStep : 0;
      next_blocks_[i] = args_.kv + table[ahead] * int64_t(args_.block_bytes);
    }
    for (int32_t r = first; r < last; r += kUnitRows) {
      const int32_t rows = last - r < kUnitRows ? last - r : kUnitRows;
      Configure(rows);
      rows > kTileRows ? ScoresOfTwo(r) : ScoresOfOne(r);
      if (step % kKeysPerSegment == 0) {
        for (int32_t i = 0; i < rows; ++i) state.max[r + i] = -__builtin_inff();
      }
      for (int32_t half = 0; half < rows; half += kTileRows) {
        Softmax(r + half, rows - half < kTileRows ? rows - half : kTileRows, step, half, state);
      }
      float* acc = state.acc + r * stride_;
      const bool fresh = step % kKeysPerSegment == 0;
      rows > kTileRows ? AddValuesOfTwo(acc, fresh) : AddValuesOfOne(acc, fresh);
    }
    const int32_t segment = step / kKeysPerSegment * kKeysPerSegment;
    if (segment > 0 && (left <= kKeysPerStep || (step + kKeysPerStep) % kKeysPerSegment == 0)) {
      for (int32_t r = first; r < last; ++r) {
        if (num_keys(r) > segment) Merge(r);
      }
    }
  }

  // Tiles 0 to 3 are sums, 4 and 5 rows of q or of weights, 6 and 7 keys or values.
  void Configure(int32_t rows) {
    if (rows == configured_rows_) return;
    configured_rows_ = rows;
    const bool two = rows > kTileRows;
    const int32_t upper = two ? kTileRows : rows, lower = two ? rows - kTileRows : rows;
    const int32_t tile_rows[8] = {upper, upper, lower, lower, upper, lower, kTileRows, kTileRows};
    amx::TileConfig config;
    for (int t = 0; t < 8; ++t) {
      config.rows[t] = static_cast<uint8_t>(tile_rows[t]);
      config.row_bytes[t] = kTileRowBytes;
    }
    amx::LoadTileConfig(config);
  }

  const std::byte* Keys(int32_t group, int32_t k) const {
    return blocks_[group / 2] + group % 2 * (args_.k_bytes / 2) + k / kTileK * kTileBytes;
  }
  const std::byte* Values(int32_t block, int32_t panel) const {
    return blocks_[block] + args_.k_bytes + panel * kTileBytes;
  }
  // The 16 lines of a tile, so many steps of the walk ahead.
  static void Prefetch(const std::byte* tile) {
    for (int32_t i = 0; i < kTileBytes; i += 64) Vec::Prefetch(tile + i);
  }

  // scores_[r][j] = q . k of the unit's rows from `row` on, not yet scaled.
  void ScoresOfTwo(int32_t row) {
    const int64_t q_bytes = args_.head_dim_padded * 2;
    for (int32_t g = 0; g < 2 * num_blocks_; g += 2) {
      amx::ZeroTile<0>();
      amx::ZeroTile<1>();
      amx::ZeroTile<2>();
      amx::ZeroTile<3>();
      for (int32_t k = 0; k < args_.head_dim_padded; k += kTileK) {
        const uint16_t* q = q_ + row * args_.head_dim_padded + k;
        amx::LoadTile<4>(q, q_bytes);
        amx::LoadTile<6>(Keys(g, k), kTileRowBytes);
        amx::DotTiles<0, 4, 6>();
        amx::LoadTile<7>(Keys(g + 1, k), kTileRowBytes);
        amx::DotTiles<1, 4, 7>();
        amx::LoadTile<5>(q + kTileRows * args_.head_dim_padded, q_bytes);
        amx::DotTiles<2, 5, 6>();
        amx::DotTiles<3, 5, 7>();
      }
      float* s = scores_ + g * 16;
      constexpr int64_t kBytes = kKeysPerStep * 4;
      amx::StoreTile<0>(s, kBytes);
      amx::StoreTile<1>(s + 16, kBytes);
      amx::StoreTile<2>(s + kTileRows * kKeysPerStep, kBytes);
      amx::StoreTile<3>(s + kTileRows * kKeysPerStep + 16, kBytes);
    }
  }

  // The same for up to 16 rows: four chains in flight, where few rows stream the keys.
  void ScoresOfOne(int32_t row) {
    amx::ZeroTile<0>();
    amx::ZeroTile<1>();
    amx::ZeroTile<2>();
    amx::ZeroTile<3>();
    for (int32_t k = 0; k < args_.head_dim_padded; k += kTileK) {
      amx::LoadTile<4>(q_ + row * args_.head_dim_padded + k, args_.head_dim_padded * 2);
      amx::LoadTile<6>(Keys(0, k), kTileRowBytes);
      amx::LoadTile<7>(Keys(1, k), kTileRowBytes);
      amx::DotTiles<0, 4, 6>();
      amx::DotTiles<1, 4, 7>();
      amx::LoadTile<6>(Keys(2, k), kTileRowBytes);
      amx::LoadTile<7>(Keys(3, k), kTileRowBytes);
      amx::DotTiles<2, 4, 6>();
      amx::DotTiles<3, 4, 7>();
      if (prefetch_) {
        for (int32_t g = 0; g < kGroupsPerStep; ++g) {
          Prefetch(next_blocks_[g / 2] + g % 2 * (args_.k_bytes / 2) + k / kTileK * kTileBytes);
        }
      }
    }
    constexpr int64_t kBytes = kKeysPerStep * 4;
    amx::StoreTile<0>(scores_, kBytes);
    amx::StoreTile<1>(scores_ + 16, kBytes);
    amx::StoreTile<2>(scores_ + 32, kBytes);
    amx::StoreTile<3>(scores_ + 48, kBytes);
  }

  // How many keys of the step the row sees.
  int32_t Visible(int32_t row, int32_t step) const {
    const int32_t left = num_keys(row) - step;
    return left < 0 ? 0 : left > kKeysPerStep ? kKeysPerStep : left;
  }
  // Those of the 16 keys from `group` on, if it sees so many of the step.
  static __mmask16 MaskOf(int32_t visible, int32_t group) {
    const int32_t left = visible - 16 * group;
    return left >= 16 ? 0xffff : Vec::First(left < 0 ? 0 : left);
  }

  // Moves the maxima of up to 16 rows, at `half` of the unit, past this step's scores, turns the
  // scores into weights against them, and what is there already to the new maxima.
  void Softmax(int32_t row, int32_t rows, int32_t step, int32_t half, State& state) {
    const Vec scale = Vec::Set(args_.scale);
    const Vec lowest = Vec::Set(-__builtin_inff());
    const float* scores = scores_ + half * kKeysPerStep;
    uint16_t* weights = weights_ + half * kKeysPerStep;
    Vec largest[16];
    __mmask16 sees = 0;  // rows that see a key of the step
    for (int32_t r = 0; r < kTileRows; ++r) {
      Vec max = lowest;
      const int32_t visible = r < rows ? Visible(row + r, step) : 0;
      for (int32_t g = 0; g < kGroupsPerStep && visible > 0; ++g) {
        const Vec s = Vec::Load(scores + r * kKeysPerStep + 16 * g) * scale;
        const __m512 seen = _mm512_mask_mov_ps(lowest.v, MaskOf(visible, g), s.v);
        max = {_mm512_max_ps(seen, max.v)};  // max where seen is NaN
      }
      largest[r] = max;
      sees = static_cast<__mmask16>(sees | (visible > 0) << r);
    }
    const Vec old_max = Vec::Load(state.max + row);
    const Vec new_max = {_mm512_max_ps(LargestOfEach(largest).v, old_max.v)};
    alignas(64) float shift[16], factor[16];
    new_max.Store(shift);
    const __m512 change = _mm512_mask_mov_ps(_mm512_set1_ps(1.0f), sees, Exp(old_max - new_max).v);
    _mm512_store_ps(factor, change);
    new_max.StoreFirst(state.max + row, rows);
    for (int32_t r = 0; r < rows; ++r) {
      Weigh(scores + r * kKeysPerStep, Visible(row + r, step), shift[r],
            weights + r * kKeysPerStep);
    }
    if (step % kKeysPerSegment == 0) return;  // nothing there yet
    unsigned changed = _mm512_cmp_ps_mask(change, _mm512_set1_ps(1.0f), _CMP_NEQ_UQ);
    for (changed &= (1u << rows) - 1; changed != 0; changed &= changed - 1) {
      const int r = __builtin_ctz(changed);
      float* acc = state.acc + (row + r) * stride_;
      const Vec by = Vec::Set(factor[r]);
      for (int32_t d = 0; d < stride_; d += 16) (Vec::Load(acc + d) * by).Store(acc + d);
    }
  }

  // weights[j] = exp(scores[j] * scale - shift) in bf16 for the first `visible` keys, 0 beyond.
  void Weigh(const float* scores, int32_t visible, float shift, uint16_t* weights) {
    const Vec scale = Vec::Set(args_.scale);
    const Vec by = Vec::Set(shift);
    for (int32_t g = 0; g < kGroupsPerStep; g += 2) {
      const Vec low = Exp(Vec::Load(scores + 16 * g) * scale - by);
      const Vec high = Exp(Vec::Load(scores + 16 * g + 16) * scale - by);
      const auto mask = static_cast<__mmask32>(MaskOf(visible, g) | MaskOf(visible, g + 1) << 16);
      const __m512bh both = _mm512_maskz_cvtne2ps_pbh(mask, high.v, low.v);
      _mm512_storeu_si512(weights + 16 * g, (__m512i)both);
    }
  }

  // acc [32 rows, stride_] = acc + weights * V, the sum of weights as one more panel.
  void AddValuesOfTwo(float* acc, bool fresh) {
    const int64_t bytes = stride_ * 4;
    float* lower = acc + kTileRows * stride_;
    for (int32_t panel = 0; panel <= num_panels_; panel += 2) {
      const bool pair = panel + 1 <= num_panels_;
      float* c = acc + panel * 16;
      float* c_lower = lower + panel * 16;
      if (fresh) {
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
      for (int32_t block = 0; block < num_blocks_; ++block) {
        LoadWeights<4>(0, block);
        amx::LoadTile<6>(panel < num_panels_ ? Values(block, panel) : Ones(), kTileRowBytes);
        amx::DotTiles<0, 4, 6>();
        LoadWeights<5>(1, block);
        amx::DotTiles<2, 5, 6>();
        if (!pair) continue;
        amx::LoadTile<7>(panel + 1 < num_panels_ ? Values(block, panel + 1) : Ones(),
                         kTileRowBytes);
        amx::DotTiles<1, 4, 7>();
        amx::DotTiles<3, 5, 7>();
      }
      amx::StoreTile<0>(c, bytes);
      amx::StoreTile<2>(c_lower, bytes);
      if (pair) amx::StoreTile<1>(c + 16, bytes);
      if (pair) amx::StoreTile<3>(c_lower + 16, bytes);
    }
  }

  // The same for up to 16 rows.
  void AddValuesOfOne(float* acc, bool fresh) {
    const int64_t bytes = stride_ * 4;
    LoadWeights<4>(0, 0);
    if (num_blocks_ == 2) LoadWeights<5>(0, 1);
    for (int32_t panel = 0; panel <= num_panels_; panel += 2) {
      const bool pair = panel + 1 <= num_panels_;
      float* c = acc + panel * 16;
      if (fresh) {
        amx::ZeroTile<0>();
        amx::ZeroTile<1>();
      } else {
        amx::LoadTile<0>(c, bytes);
        if (pair) amx::LoadTile<1>(c + 16, bytes);
      }
      const int32_t second = panel + 1;
      amx::LoadTile<6>(panel < num_panels_ ? Values(0, panel) : Ones(), kTileRowBytes);
      amx::DotTiles<0, 4, 6>();
      if (pair) {
        amx::LoadTile<7>(second < num_panels_ ? Values(0, second) : Ones(), kTileRowBytes);
        amx::DotTiles<1, 4, 7>();
      }
      if (num_blocks_ == 2) {
        amx::LoadTile<6>(panel < num_panels_ ? Values(1, panel) : Ones(), kTileRowBytes);
        amx::DotTiles<0, 5, 6>();
        if (pair) {
          amx::LoadTile<7>(second < num_panels_ ? Values(1, second) : Ones(), kTileRowBytes);
          amx::DotTiles<1, 5, 7>();
        }
      }
      amx::StoreTile<0>(c, bytes);
      if (pair) amx::StoreTile<1>(c + 16, bytes);
      if (!prefetch_ || panel == num_panels_) continue;
      for (int32_t block = 0; block < kBlocksPerStep; ++block) {
        const std::byte* next = next_blocks_[block] + args_.k_bytes + panel * kTileBytes;
        Prefetch(next);
        if (second < num_panels_) Prefetch(next + kTileBytes);
      }
    }
  }

  // Of 16 rows at `half` (0, 1) of the unit, the keys of one block.
  template <int kTile>
  void LoadWeights(int32_t half, int32_t block) const {
    amx::LoadTile<kTile>(weights_ + half * kTileRows * kKeysPerStep + block * kKvBlockTokens,
                         kKeysPerStep * 2);
  }
  const std::byte* Ones() const { return reinterpret_cast<const std::byte*>(ones_.bf16); }

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
  const bool prefetch_;  // few rows: waiting for memory, not for the unit
  const OnesTile ones_;
  int32_t configured_rows_ = 0;
  // Of the step.
  int32_t num_blocks_ = 0;
  const std::byte* blocks_[kBlocksPerStep];
  const std::byte* next_blocks_[kBlocksPerStep];  // of the next step, or any
  alignas(64) float scores_[kUnitRows * kKeysPerStep];
  alignas(64) uint16_t weights_[kUnitRows * kKeysPerStep];
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
