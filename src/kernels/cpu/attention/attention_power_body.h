#pragma once

// The attention walk with weights that are powers of two (the AMX and BF16 classes of
// docs/numerics.md), without its two products, which the derived class has. math_body.h says how
// this file is used. Needs the vector of AVX-512, and AVX512-BF16.

#include <immintrin.h>

#include "kernels/cpu/attention/attention_runs.h"
#include "kernels/cpu/math_body.h"
#include "kernels/cpu/ops.h"

namespace skein {

// The walk of one call. Takes about 280 KB on the stack of its thread. Derived has a function
// Steps(first, last, begin, end), which adds the keys of the steps [begin, end) to the state of the
// rows [first, last). All these rows have the same blocks in these steps.
template <class Derived>
class PowerWalk {
 public:
  using Vec = avx512::Vec;
  static constexpr int32_t kUnitRows = 32;  // the most rows of an item
  static constexpr int32_t kVecRows = 16;
  static constexpr int32_t kBlocksPerStep = kKeysPerAmxStep / kKvBlockTokens;
  // Scores of one block of an item.
  static constexpr int32_t kBlockScores = kUnitRows * kKvBlockTokens;
  static constexpr int64_t kMaxQStride = kMaxHeadDim + 32;

  // q_stride: the distance of the rows of q_ in elements, at most kMaxQStride.
  PowerWalk(const AttentionArgs& args, int64_t q_stride)
      : args_(args),
        num_panels_((args.head_dim + 15) / 16),
        stride_(num_panels_ * 16),
        q_stride_(q_stride),
        scale_((args.soft_cap > 0.0f ? 1.0f : args.scale) * 0x1.715476p+0f),
        start_(VisibleKeysOfAll<Vec>(args.rows, args.num_rows).begin / kKeysPerAmxStep *
               kKeysPerAmxStep) {
    for (int32_t r = 0; r < args.num_rows; ++r) {
      const auto* from = static_cast<const uint16_t*>(args.rows[r].q);
      uint16_t* to = q_ + r * q_stride;
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
    for (int32_t r = 0; r < args_.num_rows; ++r) Finish(r);
  }

 protected:
  // Up to kUnitRows rows in one step of the walk.
  struct Item {
    int32_t row;  // index of the first row in the call
    int32_t rows;
    int32_t step;
    int32_t first_block;  // in the step: the first block with a key that a row sees
    int32_t num_blocks;   // from first_block to the last block with a key that a row sees
    bool whole;           // whether every row sees all keys of the step
    bool fresh;           // whether the state begins with this step
    const std::byte* blocks[kBlocksPerStep];
    uint16_t* weights;  // [kBlocksPerStep, kUnitRows, kKvBlockTokens]

    // The number of rows of the first of two tiles; the second tile has the rest.
    int32_t upper() const { return (rows + 1) / 2; }
  };

  // Lane i of the result is the largest element of v[i]; no element may be NaN. Changes v.
  static Vec LargestOfEach(Vec v[16]) {
    // Each round halves the number of vectors: it folds the halves of every 32, 16, 8 and 4 bytes
    // of two vectors, and puts the two results side by side.
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
    const __m512 folded =
        _mm512_max_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
    // Folding leaves the maximum of vector i in another lane. That lane's number is i with bits 0
    // and 1 swapped, and bits 2 and 3 swapped.
    const __m512i order = _mm512_setr_epi32(0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15);
    return {_mm512_permutexvar_ps(order, folded)};
  }

  // 2^x for x of at most about 0, with a relative error of 1e-4. Results below 2^-126 are +0, or
  // denormals that rounding to bf16 flushes. A NaN stays a NaN: a NaN from products of bf16 has
  // zeros in the low bits, which are added to the exponent.
  static Vec PowerOfTwo(Vec x) {
    const Vec magic = Vec::Set(0x1.8p23f);  // adding it rounds to an integer in the low bits
    const Vec clamped = {_mm512_max_ps(_mm512_set1_ps(-127.0f), x.v)};
    const Vec shifted = clamped + magic;
    const Vec r = clamped - (shifted - magic);
    Vec y = Fma(Vec::Set(0x1.c2a218p-5f), r, Vec::Set(0x1.f00c4ep-3f));
    y = Fma(y, r, Vec::Set(0x1.62f5fap-1f));
    return AddExponent(Fma(y, r, Vec::Set(1.0f)), shifted);
  }

  // x * 2^n for integers n <= 0 or -inf; exact unless the result is flushed.
  static Vec ScaleBy(Vec x, Vec n) { return {_mm512_scalef_ps(x.v, n.v)}; }

  struct State {
    float max[kMaxQueryRows + 16];                       // integers
    alignas(64) float sum[kMaxQueryRows * 16];           // [rows, lanes]
    alignas(64) float acc[kMaxQueryRows * kMaxHeadDim];  // [rows, stride_]
  };

  // The end (at most `last`) of the run of rows from `first` on that have the same blocks in the
  // step.
  int32_t RunEnd(int32_t first, int32_t last, int32_t step) const {
    return skein::RunEnd<Vec, kKeysPerAmxStep>(args_.rows, first, last, step);
  }

  // Walks the rows [first, last) from `step` on. The rows walk together while they have the same
  // blocks. After that, each run of rows with the same blocks walks on its own.
  void Walk(int32_t first, int32_t last, int32_t step) {
    const int32_t max_keys = VisibleKeysOfAll<Vec>(args_.rows + first, last - first).end;
    // If these rows end here, in the middle of a segment, the other rows have gone on without them,
    // and the segment has not been merged yet.
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
      static_cast<Derived*>(this)->Steps(first, last, step, end);
      step = end;
      if (end >= max_keys || end == segment + kKeysPerSegment) MergeSegment(first, last, segment);
    }
  }
  // Merges a segment. The walk's first segment is computed in the total itself; each later segment
  // is merged into the total. The total of a row that sees no key of the first segment is still
  // empty then.
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
      item.whole = item.whole && visible.begin == 0 && visible.end == kKeysPerAmxStep &&
                   args_.rows[r].visible == nullptr;
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

  float* Scores(int32_t block) { return scores_ + block * kBlockScores; }

  // Adds the rows' terms, if there are any, to the products of one block of the item. Then scales
  // and caps them, if they are capped; otherwise they are scaled later.
  void FinishScores(const Item& item, int32_t block) {
    if (args_.rows->terms != nullptr) AddTerms(item, block);
    if (args_.soft_cap > 0.0f) CapScores(item, block);
  }

  void CapScores(const Item& item, int32_t block) {
    const Vec factor = Vec::Set(args_.scale / args_.soft_cap), cap = Vec::Set(args_.soft_cap);
    float* scores = Scores(block);
    for (int32_t i = 0; i < item.rows * kKvBlockTokens; i += 16) {
      Capped(Vec::Load(scores + i), factor, cap).Store(scores + i);
    }
  }

  // A row has no terms beyond the block of its last key.
  void AddTerms(const Item& item, int32_t block) {
    const int32_t key = item.step + (item.first_block + block) * kKvBlockTokens;
    float* scores = Scores(block);
    for (int32_t r = 0; r < item.rows; ++r, scores += kKvBlockTokens) {
      if (args_.rows[item.row + r].num_keys <= key) continue;
      const float* terms = args_.rows[item.row + r].terms + key;
      for (int32_t i = 0; i < kKvBlockTokens; i += 16) {
        (Vec::Load(scores + i) + Vec::Load(terms + i)).Store(scores + i);
      }
    }
  }

  // The keys of the step that the row sees, relative to the step's first key.
  KeyRange Visible(int32_t row, int32_t step) const {
    return VisibleInStep<Vec, kKeysPerAmxStep>(args_.rows[row], step);
  }
  // A bit for each key of the item's block, set if the row sees the key.
  __mmask32 MaskOf(const Item& item, int32_t block, int32_t r) const {
    const KeyRange visible = Visible(item.row + r, item.step);
    const int32_t key = (item.first_block + block) * kKvBlockTokens;
    const __mmask32 range = FirstKeys(visible.end - key) & ~FirstKeys(visible.begin - key);
    return range == 0 ? range : range & VisibleBits<Vec>(args_.rows[item.row + r], item.step + key);
  }
  static __mmask32 FirstKeys(int32_t count) {
    return count >= kKvBlockTokens ? ~0u : count <= 0 ? 0 : (1u << count) - 1;
  }

  // largest_[r] = the largest score of item row r among the keys that the row sees, not scaled yet,
  // or -inf.
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

  // Updates the maxima of the 16 rows from `half` on with this step's scores, and rescales the
  // rows' sums of weights. shift: the new maxima. factor: the power of two by which the rows'
  // accumulators must be multiplied.
  void MoveMaxima(const Item& item, int32_t half, float* shift, float* factor) {
    const int32_t rows = item.rows - half < kVecRows ? item.rows - half : kVecRows;
    State& state = StateAt(item.step);
    float* max = state.max + item.row + half;
    const Vec old_max = item.fresh ? Vec::Set(-__builtin_inff()) : Vec::Load(max);
    for (int32_t r = rows; r < kVecRows; ++r) largest_[half + r] = Vec::Set(-__builtin_inff());
    const Vec scaled = LargestOfEach(largest_ + half) * Vec::Set(scale_);
    constexpr int kUp = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;
    const Vec new_max = {_mm512_max_ps(_mm512_roundscale_ps(scaled.v, kUp), old_max.v)};
    new_max.StoreFirst(max, rows);
    new_max.Store(shift + half);
    // The change is 0 where the maximum stays. Without this case, it would be NaN for rows that
    // have seen no key.
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
  // and 0 for the others. Adds the weights to the row's sum.
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

  // Multiplies the rows' accumulators by their factors.
  void Rescale(const Item& item, const float* factor) {
    if (item.fresh) return;  // nothing is accumulated yet
    float* acc = StateAt(item.step).acc + item.row * stride_;
    for (int32_t r = 0; r < item.rows; ++r, acc += stride_) {
      if (factor[r] == 0.0f) continue;
      const Vec by = Vec::Set(factor[r]);
      for (int32_t d = 0; d < stride_; d += 16) ScaleBy(Vec::Load(acc + d), by).Store(acc + d);
    }
  }

  // Merges the current segment, which is finished, into the row's total.
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
    // max is an exponent of two, so that the sink's weight is exp(sink - max * ln 2).
    alignas(64) float sink[16];
    Exp(Vec::Set(__builtin_fmaf(total_.max[row], -0x1.62e43p-1f, args_.rows[row].sink)))
        .Store(sink);
    const Vec inverse = Vec::Set(1.0f / (Vec::Load(total_.sum + row * 16).Sum() + sink[0]));
    for (int32_t d = 0; d < args_.head_dim; d += 16) {
      const int n = args_.head_dim - d < 16 ? args_.head_dim - d : 16;
      const Vec out = (Vec::Load(acc + d) + Vec::Set(0.0f)) * inverse;
      auto* to = static_cast<uint16_t*>(args_.rows[row].out);
      out.StoreBf16First(to + PieceIndex(d, args_.piece_stride), n);
    }
  }

  const AttentionArgs& args_;
  const int32_t num_panels_;  // panels of V
  const int32_t stride_;
  const int64_t q_stride_;
  const float scale_;
  const int32_t start_;  // the first step of the walk
  Vec largest_[kUnitRows];
  alignas(64) float scores_[kBlocksPerStep * kBlockScores];  // [blocks, kUnitRows, keys]
  // One buffer for an item and one for the previous item.
  alignas(64) uint16_t weights_[2][kBlocksPerStep * kBlockScores];
  alignas(64) uint16_t q_[kMaxQueryRows * kMaxQStride];  // [rows, q_stride_]
  State part_;                                           // the current segment
  State total_;                                          // all segments before the current one
};

}  // namespace skein
