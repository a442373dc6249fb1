#pragma once

// The attention walk of the FMA class and of keys and values in int8 (docs/numerics.md).
// math_body.h says how this file is used.

#include "kernels/cpu/attention/attention_runs.h"
#include "kernels/cpu/gemm_body.h"
#include "kernels/cpu/math_body.h"
#include "kernels/cpu/ops.h"

namespace skein {

// The number of rows that walk together.
inline constexpr int32_t kWalkRows = 16;

// The state of each row after the keys that the walk has seen so far. The softmax-weighted sum is
// acc / sum; acc and sum are relative to exp(max).
struct AttentionState {
  alignas(64) float max[kWalkRows];
  alignas(64) float sum[kWalkRows];
  alignas(64) float acc[kWalkRows * kMaxHeadDim];  // [rows, head_dim_padded]
};

template <class V>
inline void ResetState(AttentionState& state, int64_t acc_elements) {
  V::Set(-__builtin_inff()).Store(state.max);
  V::Set(0.0f).Store(state.sum);
  for (int64_t i = 0; i < acc_elements; i += 16) V::Set(0.0f).Store(state.acc + i);
}

// The products of a walk's rows with keys and values in f32 or bf16.
template <class V, bool kBf16>
class FloatProducts {
 public:
  explicit FloatProducts(const AttentionArgs& args) : args_(args) {
    for (int32_t r = 0; r < args.num_rows; ++r) {
      if constexpr (kBf16) {
        WidenRows<V>(static_cast<const uint16_t*>(args.rows[r].q), 0, 1, args.head_dim,
                     q_ + r * args.head_dim_padded);
      } else {
        const auto* q = static_cast<const float*>(args.rows[r].q);
        for (int32_t d = 0; d < args.head_dim; ++d) q_[r * args.head_dim_padded + d] = q[d];
      }
    }
  }

  // The bytes of 16 keys.
  int64_t group_bytes() const { return 16 * args_.head_dim_padded * kElementBytes; }

  // p[r][16 g + j] += q[row + r] . key j of groups[g], for r in [0, count); p has row stride
  // kKeysPerStep.
  void AddScores(int32_t row, int32_t count, const std::byte* const* groups, int num_groups,
                 float* p) const {
    // The values of a block are the bytes two groups ahead of its keys.
    const std::byte* values[kKeysPerStep / 16];
    for (int g = 0; g < num_groups; ++g) values[g] = groups[g] + 2 * group_bytes();
    Multiply(count, q_ + row * args_.head_dim_padded, args_.head_dim_padded, groups, values,
             num_groups, args_.head_dim, p, kKeysPerStep);
  }

  // The weight as the products take it.
  static V Rounded(V weight) {
    if constexpr (kBf16) return weight.RoundToBf16();
    return weight;
  }

  // acc[r] += weights[r] * values for `count` rows, over the first `terms` keys of the block with
  // these values. weights has row stride kKeysPerStep, acc head_dim_padded. `next`: a block that
  // the walk reads soon, or null.
  void AddValues(int32_t count, const float* weights, const std::byte* values, int32_t terms,
                 const std::byte* next, float* acc) const {
    const std::byte *panels[kMaxHeadDim / 16], *ahead[kMaxHeadDim / 16];
    int num_panels = 0;
    for (int32_t d = 0; d < args_.head_dim; d += 16) {
      const int64_t offset = d * (kKvBlockTokens * kElementBytes);
      panels[num_panels] = values + offset;
      ahead[num_panels++] = (next != nullptr ? next : values) + offset;
    }
    Multiply(count, weights, kKeysPerStep, panels, next != nullptr ? ahead : nullptr, num_panels,
             terms, acc, args_.head_dim_padded);
  }

 private:
  static constexpr int64_t kElementBytes = kBf16 ? 2 : 4;

  // TilesOfPanels, in which few rows prefetch `far`, if it is not null.
  static void Multiply(int32_t rows, const float* a, int64_t lda, const std::byte* const* panels,
                       const std::byte* const* far, int num_panels, int32_t k, float* c,
                       int64_t ldc) {
    if (rows > kFewWalkRows || far == nullptr) {
      return TilesOfPanels<V, kBf16>(rows, a, lda, panels, num_panels, k, c, ldc);
    }
    TilesOfPanels<V, kBf16, true>(rows, a, lda, panels, num_panels, k, c, ldc, far);
  }

  const AttentionArgs& args_;
  alignas(64) float q_[kWalkRows * kMaxHeadDim];
};

// The walk of up to kWalkRows rows. Rows of different sequences walk together, step by step, while
// they have the same blocks, so that each block is read once. Takes about 55 KB on the stack of its
// thread. Products has the functions of FloatProducts.
template <class V, class Products>
class AttentionWalk {
 public:
  explicit AttentionWalk(const AttentionArgs& args)
      : args_(args), keys_(VisibleKeysOfAll<V>(args.rows, args.num_rows)), products_(args) {}

  void Run() {
    const int64_t acc_elements = int64_t{args_.num_rows} * args_.head_dim_padded;
    ResetState<V>(total_, acc_elements);
    // Skips the steps before the first key that any row sees.
    int32_t step = keys_.begin / kKeysPerStep * kKeysPerStep;
    while (step < keys_.end) {
      const int32_t segment = step / kKeysPerSegment * kKeysPerSegment;
      const int32_t end =
          keys_.end - segment < kKeysPerSegment ? keys_.end : segment + kKeysPerSegment;
      ResetState<V>(part_, acc_elements);
      for (; step < end; step += kKeysPerStep) {
        for (int32_t row = 0, run_end; row < args_.num_rows; row = run_end) {
          run_end = RunEnd<V, kKeysPerStep>(args_.rows, row, args_.num_rows, step);
          Step({row, run_end, VisibleKeysOfAll<V>(args_.rows + row, run_end - row)}, step);
        }
      }
      Merge(segment);
    }
    Finish();
  }

 private:
  // Rows [begin, end), which have the same blocks in a step, and the range of the keys that they
  // see.
  struct Rows {
    int32_t begin, end;
    KeyRange keys;
  };

  const std::byte* Block(const Rows& rows, int32_t key) const {
    const int32_t block = args_.rows[rows.begin].block_table[key / kKvBlockTokens];
    const auto bytes = static_cast<int64_t>(args_.block_bytes);
    return block < args_.num_blocks ? args_.kv + block * bytes
                                    : args_.own_kv + (block - args_.num_blocks) * bytes;
  }
  // The keys of the step at `step` that the row sees, relative to the step's first key.
  KeyRange Visible(int32_t row, int32_t step) const {
    return VisibleInStep<V, kKeysPerStep>(args_.rows[row], step);
  }

  void Step(const Rows& rows, int32_t step) {
    if (rows.keys.end <= step || rows.keys.begin >= step + kKeysPerStep) return;
    if (!SeesAny(rows, step)) return;
    Scores(rows, step);
    Softmax(rows, step);
    for (int32_t key = step; key < step + kKeysPerStep && key < rows.keys.end;
         key += kKvBlockTokens) {
      AddValues(rows, step, key);
    }
  }

  bool SeesAny(const Rows& rows, int32_t step) const {
    for (int32_t r = rows.begin; r < rows.end; ++r) {
      const KeyRange visible = Visible(r, step);
      if (visible.begin < visible.end) return true;
    }
    return false;
  }

  // p_[r][j] = q[r] . k[step + j], not scaled yet. Values of keys that a row does not see are never
  // used.
  void Scores(const Rows& rows, int32_t step) {
    constexpr int kGroupsPerStep = kKeysPerStep / 16;
    const std::byte* groups[kGroupsPerStep];
    int num_groups = 0;
    const int32_t begin = rows.keys.begin > step ? rows.keys.begin / 16 * 16 : step;
    for (int32_t key = begin; key < step + kKeysPerStep && key < rows.keys.end; key += 16) {
      groups[num_groups++] = Block(rows, key) + key % kKvBlockTokens / 16 * products_.group_bytes();
    }
    const int32_t count = rows.end - rows.begin;
    float* p = p_ + rows.begin * kKeysPerStep;
    for (int32_t i = 0; i < count * kKeysPerStep; i += 16) V::Set(0.0f).Store(p + i);
    products_.AddScores(rows.begin, count, groups, num_groups, p + (begin - step));
    if (args_.rows->terms != nullptr) AddTerms(rows, step, begin, num_groups);
    if (args_.soft_cap > 0.0f) CapScores(rows, step, begin, num_groups);
  }

  // Scales and caps the scores of the groups of AddTerms. Softmax does not scale them again.
  void CapScores(const Rows& rows, int32_t step, int32_t begin, int num_groups) {
    const V factor = V::Set(args_.scale / args_.soft_cap), cap = V::Set(args_.soft_cap);
    for (int32_t r = rows.begin; r < rows.end; ++r) {
      float* p = p_ + r * kKeysPerStep + (begin - step);
      for (int32_t i = 0; i < num_groups * 16; i += 16) {
        Capped(V::Load(p + i), factor, cap).Store(p + i);
      }
    }
  }

  // Adds the rows' terms to the scores of `num_groups` groups of 16 keys, the first of which begins
  // at `begin`. A row has no terms beyond the block of its last key.
  void AddTerms(const Rows& rows, int32_t step, int32_t begin, int num_groups) {
    for (int32_t r = rows.begin; r < rows.end; ++r) {
      const float* terms = args_.rows[r].terms + begin;
      float* p = p_ + r * kKeysPerStep + (begin - step);
      for (int32_t i = 0; i < num_groups * 16 && begin + i < args_.rows[r].num_keys; i += 16) {
        (V::Load(p + i) + V::Load(terms + i)).Store(p + i);
      }
    }
  }

  // A bit for each of the 16 keys from `j` on, set if the row sees the key. `visible` is the result
  // of Visible for the step.
  uint32_t LanesAt(int32_t row, const KeyRange& visible, int32_t step, int32_t j) const {
    uint32_t lanes = 0xffff;
    if (visible.begin > j) lanes &= ~0u << (visible.begin - j);
    if (visible.end < j + 16) lanes &= (1u << (visible.end - j)) - 1;
    return lanes & (VisibleBits<V>(args_.rows[row], step + j) >> ((step + j) % kKvBlockTokens));
  }
  // Replaces the lanes that are not in `lanes` by `fill`. These lanes may hold anything, even NaN.
  static V Keep(V v, uint32_t lanes, float fill) {
    if (lanes == 0xffff) return v;
    alignas(64) float values[16];
    v.Store(values);
    for (int i = 0; i < 16; ++i) {
      if ((lanes >> i & 1) == 0) values[i] = fill;
    }
    return V::Load(values);
  }

  // Updates the rows' maxima with this step's scores, and turns the scores in p_ into weights
  // relative to the maxima.
  void Softmax(const Rows& rows, int32_t step) {
    const V scale = V::Set(args_.soft_cap > 0.0f ? 1.0f : args_.scale);
    alignas(64) float new_max[16];
    V::Load(part_.max).Store(new_max);
    for (int32_t r = rows.begin; r < rows.end; ++r) {
      const KeyRange visible = Visible(r, step);
      if (visible.begin >= visible.end) continue;
      float* p = p_ + r * kKeysPerStep;
      V max = V::Set(new_max[r]);
      for (int32_t j = visible.begin / 16 * 16; j < visible.end; j += 16) {
        const V s = Keep(V::Load(p + j) * scale, LanesAt(r, visible, step, j), -__builtin_inff());
        s.Store(p + j);
        max = Max(s, max);
      }
      new_max[r] = max.Largest();
    }
    alignas(64) float factor[16];  // for the sums of earlier steps
    Exp(V::Load(part_.max) - V::Load(new_max)).Store(factor);
    for (int32_t r = rows.begin; r < rows.end; ++r) {
      const KeyRange visible = Visible(r, step);
      if (visible.begin < visible.end) Weigh(r, visible, new_max[r], factor[r]);
    }
  }

  // Computes the weights of the keys that the row sees. Other keys of their blocks get the weight
  // 0.
  void Weigh(int32_t r, const KeyRange& visible, float new_max, float factor) {
    float* p = p_ + r * kKeysPerStep;
    const V shift = V::Set(new_max);
    V sum = V::Set(0.0f);
    const int32_t begin = visible.begin / kKvBlockTokens * kKvBlockTokens;
    const int32_t end = (visible.end + kKvBlockTokens - 1) / kKvBlockTokens * kKvBlockTokens;
    for (int32_t j = begin; j < end; j += 16) {
      if (j + 16 <= visible.begin || j >= visible.end) {
        V::Set(0.0f).Store(p + j);
        continue;
      }
      // 0 where Softmax filled in -inf.
      const V weight = Products::Rounded(Exp(V::Load(p + j) - shift));
      weight.Store(p + j);
      sum = sum + weight;
    }
    part_.max[r] = new_max;
    part_.sum[r] = __builtin_fmaf(part_.sum[r], factor, sum.Sum());
    if (factor == 1.0f) return;  // x * 1 = x
    float* acc = part_.acc + r * args_.head_dim_padded;
    for (int32_t d = 0; d < args_.head_dim; d += 16)
      (V::Load(acc + d) * V::Set(factor)).Store(acc + d);
  }

  // acc += P * V over the block of 32 keys at `key`. Rows with the same number of terms are
  // computed together.
  void AddValues(const Rows& rows, int32_t step, int32_t key) {
    const std::byte* const values = Block(rows, key) + args_.k_bytes;
    const int32_t next_key = key + kKeysPerStep;
    const std::byte* const next =
        next_key < args_.rows[rows.begin].num_keys ? Block(rows, next_key) : nullptr;
    for (int32_t r = rows.begin, end; r < rows.end; r = end) {
      const int32_t count = TermsOfBlock(r, key);
      end = r + 1;
      while (end < rows.end && TermsOfBlock(end, key) == count) ++end;
      if (count == 0) continue;
      products_.AddValues(end - r, p_ + r * kKeysPerStep + (key - step), values, count, next,
                          part_.acc + r * args_.head_dim_padded);
    }
  }
  // The number of keys of the block that exist for the row, if the row sees one of them; otherwise
  // 0. A key that does not exist is not a term, since its memory may hold anything.
  int32_t TermsOfBlock(int32_t row, int32_t key) const {
    const KeyRange visible = VisibleKeys<V>(args_.rows[row]);
    if (visible.end <= key || visible.begin >= key + kKvBlockTokens) return 0;
    if (VisibleBits<V>(args_.rows[row], key) == 0) return 0;
    const int32_t left = args_.rows[row].num_keys - key;
    return left > kKvBlockTokens ? kKvBlockTokens : left;
  }

  // Merges part_ into total_ for the rows that saw a key of the segment. For the first segment of
  // which a row saw a key, part_ replaces the row's total.
  void Merge(int32_t segment) {
    const V old_max = V::Load(total_.max);
    const V part_max = V::Load(part_.max);
    const V max = Max(part_max, old_max);
    alignas(64) float new_max[16], old_factor[16], part_factor[16];
    max.Store(new_max);
    Exp(old_max - max).Store(old_factor);
    Exp(part_max - max).Store(part_factor);
    for (int32_t r = 0; r < args_.num_rows; ++r) {
      const KeyRange visible = VisibleKeys<V>(args_.rows[r]);
      if (visible.end <= segment || visible.begin >= segment + kKeysPerSegment) continue;
      const bool is_first = visible.begin >= segment;
      float* acc = total_.acc + r * args_.head_dim_padded;
      const float* part = part_.acc + r * args_.head_dim_padded;
      if (is_first) {
        total_.sum[r] = part_.sum[r];
        for (int32_t d = 0; d < args_.head_dim; d += 16) V::Load(part + d).Store(acc + d);
      } else {
        total_.sum[r] = __builtin_fmaf(total_.sum[r], old_factor[r], part_.sum[r] * part_factor[r]);
        const V a = V::Set(old_factor[r]);
        const V b = V::Set(part_factor[r]);
        for (int32_t d = 0; d < args_.head_dim; d += 16) {
          Fma(V::Load(acc + d), a, V::Load(part + d) * b).Store(acc + d);
        }
      }
      total_.max[r] = is_first ? part_.max[r] : new_max[r];
    }
  }

  void Finish() {
    alignas(64) float sinks[kWalkRows];
    V::Set(0.0f).Store(sinks);
    for (int32_t r = 0; r < args_.num_rows; ++r) sinks[r] = args_.rows[r].sink;
    Exp(V::Load(sinks) - V::Load(total_.max)).Store(sinks);
    for (int32_t r = 0; r < args_.num_rows; ++r) {
      const V inverse = V::Set(1.0f / (total_.sum[r] + sinks[r]));
      const float* acc = total_.acc + r * args_.head_dim_padded;
      for (int32_t d = 0; d < args_.head_dim; d += 16) {
        const int n = args_.head_dim - d < 16 ? args_.head_dim - d : 16;
        StoreAs(V::Load(acc + d) * inverse, args_.rows[r].out, args_.dtype,
                PieceIndex(d, args_.piece_stride), n);
      }
    }
  }

  const AttentionArgs& args_;
  const KeyRange keys_;  // the range of keys that any row sees
  Products products_;
  alignas(64) float p_[kWalkRows * kKeysPerStep];  // the scores, then the weights, of a step
  AttentionState part_;                            // the current segment
  AttentionState total_;                           // all segments before the current one
};

template <class V, class Products>
void Attention(const AttentionArgs& args) {
  AttentionArgs run = args;
  for (int32_t first = 0; first < args.num_rows; first += run.num_rows) {
    run.rows = args.rows + first;
    run.num_rows = args.num_rows - first < kWalkRows ? args.num_rows - first : kWalkRows;
    AttentionWalk<V, Products> walk(run);
    walk.Run();
  }
}

}  // namespace skein
