#include "kernels/reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/blocks/block_format.h"
#include "base/fp_mode.h"

namespace skein::reference {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int32_t kLanes = 16;

using Lanes = std::array<float, kLanes>;

template <class T>
T SumOfLanes(std::array<T, kLanes> lanes) {
  for (int32_t count = kLanes / 2; count > 0; count /= 2) {
    for (int32_t i = 0; i < count; ++i) lanes[i] = lanes[i] + lanes[i + count];
  }
  return lanes[0];
}

float Rounded(float x, DType dtype) { return dtype == DType::kBf16 ? ToFloat(ToBf16(x)) : x; }

float DotFma(const float* a, const float* b, int32_t k) {
  float sum = 0.0f;
  for (int32_t i = 0; i < k; ++i) sum = std::fma(a[i], b[i], sum);
  return sum;
}

// Adds the product of a and b to `sum`, pair by pair, the odd term first. An incomplete pair is
// padded with a zero.
float ContinueBf16(float sum, const float* a, const float* b, int32_t k) {
  for (int32_t i = 0; i < k; i += 2) {
    const bool odd = i + 1 < k;
    sum = std::fma(odd ? a[i + 1] : 0.0f, odd ? b[i + 1] : 0.0f, sum);
    sum = std::fma(a[i], b[i], sum);
  }
  return sum;
}

// Adds the product of a and b to `sum`, tile by tile.
float ContinueAmx(float sum, const float* a, const float* b, int32_t k) {
  constexpr int32_t kTileK = 32;
  for (int32_t tile = 0; tile < k; tile += kTileK) {
    float even = 0.0f, odd = 0.0f;
    for (int32_t i = tile; i < tile + kTileK; ++i) {
      const float x = i < k ? a[i] : 0.0f;
      const float y = i < k ? b[i] : 0.0f;
      float& chain = i % 2 == 0 ? even : odd;
      chain = std::fma(x, y, chain);
    }
    sum = sum + (even + odd);
  }
  return sum;
}

float DotBf16(const float* a, const float* b, int32_t k) { return ContinueBf16(0.0f, a, b, k); }
float DotAmx(const float* a, const float* b, int32_t k) { return ContinueAmx(0.0f, a, b, k); }

// The function that continues a sum, for both products of attention in a class other than FMA.
using Continue = float (*)(float sum, const float* a, const float* b, int32_t k);

// The sums over the keys seen so far are base^max * sum and base^max * acc. The base is e in the
// FMA class, otherwise 2.
struct State {
  float max = -kInfinity;
  Lanes sum = {};          // in the FMA class lane 0 holds the whole sum
  std::vector<float> acc;  // [head_dim]
};

bool Sees(const AttentionInput& in, int32_t key) {
  return in.visible == nullptr || (in.visible[key / 32] >> (key % 32) & 1) != 0;
}

bool SeesAny(const AttentionInput& in, int32_t begin, int32_t end) {
  for (int32_t key = begin; key < end; ++key) {
    if (Sees(in, key)) return true;
  }
  return false;
}

// A key's score with its term, if there are terms.
float WithTerm(const AttentionInput& in, int32_t key, float score) {
  return in.terms == nullptr ? score : score + in.terms[key];
}

float Capped(float x, float factor, float cap) {
  return cap * Activate(Activation::kTanh, x * factor);
}

// The factor of finished scores: capped ones are scaled already.
float ScaleOf(const AttentionInput& in) { return in.soft_cap > 0 ? 1.0f : in.scale; }

// A key's score from its product with q: with its term and capped, if there are terms or a cap.
float ScoreOf(const AttentionInput& in, int32_t key, float product) {
  const float score = WithTerm(in, key, product);
  return in.soft_cap > 0 ? Capped(score, in.scale / in.soft_cap, in.soft_cap) : score;
}

// The weights of the keys [begin, end), which are the keys of one step. Moves the state to their
// maximum, and adds them to its sum. dot(key): q · k.
template <class Dot>
std::vector<float> WeightsFma(const AttentionInput& in, int32_t begin, int32_t end, const Dot& dot,
                              State& state) {
  std::vector<float> p;
  float max = state.max;
  for (int32_t key = begin; key < end; ++key) {
    const float score = ScoreOf(in, key, dot(key)) * ScaleOf(in);
    p.push_back(Sees(in, key) ? score : -kInfinity);
    if (p.back() > max) max = p.back();
  }
  Lanes lanes = {};
  for (size_t j = 0; j < p.size(); ++j) {
    p[j] = Exp(p[j] - max);
    if (!in.int8) p[j] = Rounded(p[j], in.dtype);
    float& lane = lanes[(begin + j) % kLanes];  // steps begin at multiples of kLanes
    lane = lane + p[j];
  }
  const float factor = Exp(state.max - max);
  state.max = max;
  state.sum[0] = std::fma(state.sum[0], factor, SumOfLanes(lanes));
  for (float& acc : state.acc) acc = acc * factor;
  return p;
}

// Adds the visible keys among [begin, end), which are the keys of one step, to `state`.
void StepFma(const AttentionInput& in, int32_t begin, int32_t end, State& state) {
  const auto dot = [&](int32_t key) {
    return DotFma(in.q, in.k + int64_t{key} * in.head_dim, in.head_dim);
  };
  const std::vector<float> p = WeightsFma(in, begin, end, dot, state);
  for (int32_t d = 0; d < in.head_dim; ++d) {
    float acc = state.acc[d];
    const int32_t blocks_end = (end + kKvBlockTokens - 1) / kKvBlockTokens * kKvBlockTokens;
    for (int32_t key = begin / kKvBlockTokens * kKvBlockTokens;
         key < std::min(blocks_end, in.num_keys); ++key) {
      const int32_t block = key / kKvBlockTokens * kKvBlockTokens;
      if (!SeesAny(in, block, std::min(block + kKvBlockTokens, in.num_keys))) continue;
      const float weight = key < begin || key >= end ? 0.0f : p[key - begin];
      acc = std::fma(weight, in.v[int64_t{key} * in.head_dim + d], acc);
    }
    state.acc[d] = acc;
  }
}

struct Int8Row {
  std::vector<int8_t> q;
  std::vector<float> scales;  // of each `per_scale` elements
};

Int8Row Int8RowOf(const float* x, int32_t n, int32_t per_scale) {
  Int8Row row = {std::vector<int8_t>(n), {}};
  for (int32_t i = 0; i < n; i += per_scale) {
    row.scales.push_back(Quantize({x + i, x + std::min(i + per_scale, n)}, &row.q[i]));
  }
  return row;
}

void StepInt8(const AttentionInput& in, int32_t begin, int32_t end, State& state) {
  const int32_t n = in.head_dim;
  const Int8Row q = Int8RowOf(in.q, n, kBlockTerms);
  const auto dot = [&](int32_t key) {
    const Int8Row k = Int8RowOf(in.k + int64_t{key} * n, n, kBlockTerms);
    std::vector<int32_t> products(q.scales.size());
    for (int32_t i = 0; i < n; ++i) products[i / kBlockTerms] += q.q[i] * k.q[i];
    float sum = 0;
    for (size_t b = 0; b < products.size(); ++b) {
      sum = std::fma(static_cast<float>(products[b]), q.scales[b] * k.scales[b], sum);
    }
    return sum;
  };
  const std::vector<float> p = WeightsFma(in, begin, end, dot, state);
  for (int32_t block = begin / kBlockTerms * kBlockTerms; block < end; block += kBlockTerms) {
    const int32_t keys = std::min(kBlockTerms, in.num_keys - block);
    if (!SeesAny(in, block, block + keys)) continue;
    std::vector<Int8Row> values;
    std::vector<float> weights(keys, 0.0f);
    for (int32_t key = block; key < block + keys; ++key) {
      values.push_back(Int8RowOf(in.v + int64_t{key} * n, n, n));
      const float weight = key < begin || key >= end ? 0.0f : p[key - begin];
      if (weight > 0) weights[key - block] = weight * values.back().scales[0];
    }
    const Int8Row w = Int8RowOf(weights.data(), keys, kBlockTerms);
    for (int32_t d = 0; d < n; ++d) {
      int32_t product = 0;
      for (int32_t j = 0; j < keys; ++j) product += w.q[j] * values[j].q[d];
      state.acc[d] = std::fma(static_cast<float>(product), w.scales[0], state.acc[d]);
    }
  }
}

// 2^x for the weights of the AMX and BF16 classes: 0 for results below the smallest normal number.
float PowerOfTwo(float x) {
  if (x < -127.0f) return 0.0f;
  const float n = std::nearbyint(x);
  const float r = x - n;
  float y = std::fma(0x1.c2a218p-5f, r, 0x1.f00c4ep-3f);
  y = std::fma(y, r, 0x1.62f5fap-1f);
  y = std::fma(y, r, 1.0f);
  const double power = std::ldexp(double{y}, static_cast<int>(n));
  return power < 0x1p-126 ? 0.0f : static_cast<float>(power);
}

// x * 2^(from - to), for integers from <= to, or both -inf.
float Moved(float x, float from, float to) {
  if (from == to) return x;
  const double moved = double{x} * std::exp2(double{from} - double{to});
  return std::abs(moved) < 0x1p-126 ? 0.0f : static_cast<float>(moved);
}

template <Continue product>
void StepPower(const AttentionInput& in, int32_t begin, int32_t end, State& state) {
  const float scale = ScaleOf(in) * 0x1.715476p+0f;
  const int32_t step = begin / kKeysPerAmxStep * kKeysPerAmxStep;
  const int32_t n = end - step, hidden = begin - step;
  std::vector<float> p(n, 0.0f), v(n);
  float max = state.max;
  for (int32_t j = hidden; j < n; ++j) {
    if (!Sees(in, step + j)) continue;
    const float dot = product(0.0f, in.q, in.k + (step + int64_t{j}) * in.head_dim, in.head_dim);
    p[j] = ScoreOf(in, step + j, dot);
    const float up = std::ceil(p[j] * scale);
    if (up > max) max = up;
  }
  for (int32_t j = hidden; j < n; ++j) {
    if (!Sees(in, step + j)) continue;
    p[j] = Rounded(PowerOfTwo(std::fma(p[j], scale, -max)), in.dtype);
  }
  for (float& lane : state.sum) lane = Moved(lane, state.max, max);
  for (int32_t j = 0; j < n; j += 2) {
    float& lane = state.sum[j % 32 / 2];
    if (j + 1 < n) lane = lane + p[j + 1];
    lane = lane + p[j];
  }
  for (int32_t d = 0; d < in.head_dim; ++d) {
    for (int32_t j = 0; j < n; ++j) v[j] = in.v[(step + int64_t{j}) * in.head_dim + d];
    state.acc[d] = product(Moved(state.acc[d], state.max, max), p.data(), v.data(), n);
  }
  state.max = max;
}

void MergeFma(const State& segment, State& total) {
  const float max = segment.max > total.max ? segment.max : total.max;
  const float total_factor = Exp(total.max - max);
  const float segment_factor = Exp(segment.max - max);
  total.max = max;
  total.sum[0] = std::fma(total.sum[0], total_factor, segment.sum[0] * segment_factor);
  for (size_t d = 0; d < total.acc.size(); ++d) {
    total.acc[d] = std::fma(total.acc[d], total_factor, segment.acc[d] * segment_factor);
  }
}

void MergePower(const State& segment, State& total) {
  const float max = segment.max > total.max ? segment.max : total.max;
  const auto merge = [&](float& to, float part) {
    to = Moved(to, total.max, max) + Moved(part, segment.max, max);
  };
  for (int32_t i = 0; i < kLanes; ++i) merge(total.sum[i], segment.sum[i]);
  for (size_t d = 0; d < total.acc.size(); ++d) merge(total.acc[d], segment.acc[d]);
  total.max = max;
}

}  // namespace

void Gemm(NumericClass numeric_class, GemmShape shape, const float* a, const float* w,
          const float* bias, bool add_to_out, float* out) {
  const ScopedFpMode fp_mode;
  const auto dot = numeric_class == NumericClass::kAmx    ? DotAmx
                   : numeric_class == NumericClass::kBf16 ? DotBf16
                                                          : DotFma;
  for (int64_t row = 0; row < shape.m; ++row) {
    for (int64_t column = 0; column < shape.n; ++column) {
      float sum = dot(a + row * shape.k, w + column * shape.k, shape.k);
      if (bias != nullptr) sum = sum + bias[column];
      float& to = out[row * shape.n + column];
      to = add_to_out ? to + sum : sum;
    }
  }
}

float AddBf16Pairs(float sum, const float* a, const float* b, int32_t k) {
  const ScopedFpMode fp_mode;
  return ContinueBf16(sum, a, b, k);
}

float Quantize(std::span<const float> x, int8_t* q) {
  const ScopedFpMode fp_mode;
  float largest = 0.0f;
  bool finite = true;
  for (const float e : x) {
    finite = finite && std::isfinite(e);
    largest = std::max(largest, std::abs(e));
  }
  std::fill_n(q, x.size(), int8_t{0});
  if (!finite) return std::numeric_limits<float>::quiet_NaN();
  if (largest < 0x1p-100f) return 0.0f;
  const float inverse = 127.0f / largest;
  for (size_t i = 0; i < x.size(); ++i) {
    q[i] = static_cast<int8_t>(std::nearbyint(x[i] * inverse));
  }
  return largest / 127.0f;
}

void GemmInt8(GemmShape shape, const float* a, const float* w, const float* bias, bool add_to_out,
              float* out) {
  const size_t k = shape.k;
  std::vector<int8_t> w_q(shape.n * k), a_q(k);
  std::vector<float> w_scales(shape.n);
  for (int32_t column = 0; column < shape.n; ++column) {
    w_scales[column] = Quantize({w + column * k, k}, &w_q[column * k]);
  }
  const ScopedFpMode fp_mode;
  for (int32_t row = 0; row < shape.m; ++row) {
    const float a_scale = Quantize({a + row * k, k}, a_q.data());
    for (int32_t column = 0; column < shape.n; ++column) {
      int32_t sum = 0;
      for (size_t i = 0; i < k; ++i) sum += a_q[i] * w_q[column * k + i];
      float c = static_cast<float>(sum) * a_scale;
      c = c * w_scales[column];
      if (bias != nullptr) c = c + bias[column];
      float& to = out[row * int64_t{shape.n} + column];
      to = add_to_out ? to + c : c;
    }
  }
}

void GemmBlocks(GemmShape shape, const float* a, const PackedWeight& w, const float* bias,
                bool add_to_out, float* out) {
  const ScopedFpMode fp_mode;
  for (int32_t row = 0; row < shape.m; ++row) {
    for (int32_t column = 0; column < shape.n; ++column) {
      const PackedWeight::BlockPanel panel = w.block_panel(column / kPanelCols);
      const BlockTraits& traits = TraitsOf(panel.format);
      const int32_t halves = traits.scales == BlockScales::kSuperHalves ? 2 : 1;
      float c = 0.0f;
      for (int32_t block = 0; block < shape.k / kBlockTerms; ++block) {
        const BlockTerms terms =
            ReadBlockTerms(panel.format, panel.values, panel.scales, column % kPanelCols, block);
        int8_t q[kBlockTerms];
        const float scale =
            Quantize({a + int64_t{row} * shape.k + block * kBlockTerms, size_t{kBlockTerms}}, q);
        int32_t row_sum = 0;
        for (int32_t half = 0; half < halves; ++half) {
          int32_t sum = 0;
          for (int32_t i = 0; i < kBlockTerms / halves; ++i) {
            const int32_t at = half * kBlockTerms / 2 + i;
            sum += q[at] * terms.values[at];
            row_sum += q[at];
          }
          const float both = scale * terms.scales[half];
          c = std::fma(static_cast<float>(sum), both, c);
        }
        const float scaled_sum = scale * static_cast<float>(row_sum);
        if (traits.has_minimum()) c = std::fma(scaled_sum, terms.minimum, c);
      }
      if (bias != nullptr) c = c + bias[column];
      float& to = out[row * int64_t{shape.n} + column];
      to = add_to_out ? to + c : c;
    }
  }
}

void Attention(NumericClass numeric_class, const AttentionInput& in, float* out) {
  const ScopedFpMode fp_mode;
  const bool fma = numeric_class == NumericClass::kFma || in.int8;
  const auto step_of = in.int8                                ? StepInt8
                       : fma                                  ? StepFma
                       : numeric_class == NumericClass::kBf16 ? StepPower<ContinueBf16>
                                                              : StepPower<ContinueAmx>;
  const int32_t step_keys = fma ? kKeysPerStep : kKeysPerAmxStep;
  const int32_t first = in.window.first, end = std::min(in.window.end, in.num_keys);
  State total;
  for (int32_t segment = 0; segment < end; segment += kKeysPerSegment) {
    if (segment + kKeysPerSegment <= first) continue;
    State part;
    part.acc.assign(in.head_dim, 0.0f);
    for (int32_t step = segment; step < segment + kKeysPerSegment; step += step_keys) {
      const int32_t step_begin = std::max(step, first), step_end = std::min(step + step_keys, end);
      if (step_begin < step_end && SeesAny(in, step_begin, step_end)) {
        step_of(in, step_begin, step_end, part);
      }
    }
    if (total.acc.empty()) {
      total = part;
    } else {
      (fma ? MergeFma : MergePower)(part, total);
    }
  }
  const float sink = Exp(fma ? in.sink - total.max : std::fma(total.max, -0x1.62e43p-1f, in.sink));
  const float inverse = 1.0f / ((fma ? total.sum[0] : SumOfLanes(total.sum)) + sink);
  for (int32_t d = 0; d < in.head_dim; ++d) {
    // Outside the FMA class, a zero may have either sign up to this addition.
    const float acc = fma ? total.acc[d] : total.acc[d] + 0.0f;
    out[d] = Rounded(acc * inverse, in.dtype);
  }
}

float Exp(float x) {
  const ScopedFpMode fp_mode;
  if (std::isnan(x)) return x;
  if (x < -0x1.5d589ep+6f) return 0.0f;
  if (x > 0x1.62e42ep+6f) return kInfinity;
  // The product of x and the f32 constant is exact in double. So n is the integer nearest to the
  // product, ties to even.
  const double n = std::nearbyint(double{x} * double{0x1.715476p+0f});
  float r = std::fma(static_cast<float>(n), -0x1.62e4p-1f, x);
  r = std::fma(static_cast<float>(n), -0x1.7f7d1cp-20f, r);
  float y = 0x1.6a2430p-10f;
  for (float c : {0x1.1239e4p-7f, 0x1.5558f2p-5f, 0x1.555492p-3f, 0x1.fffffcp-2f, 1.0f, 1.0f}) {
    y = std::fma(y, r, c);
  }
  return static_cast<float>(std::ldexp(double{y}, static_cast<int>(n)));
}

void RmsNorm(std::span<const float> x, const float* weight, float eps, float* out) {
  const ScopedFpMode fp_mode;
  Lanes lanes = {};
  for (size_t i = 0; i < x.size(); ++i) {
    lanes[i % kLanes] = std::fma(x[i], x[i], lanes[i % kLanes]);
  }
  const float mean = SumOfLanes(lanes) / static_cast<float>(x.size());
  const float scale = 1.0f / std::sqrt(mean + eps);
  for (size_t i = 0; i < x.size(); ++i) out[i] = (x[i] * scale) * weight[i];
}

void LayerNorm(std::span<const float> x, const float* weight, const float* bias, float eps,
               float* out) {
  const ScopedFpMode fp_mode;
  const auto size = static_cast<float>(x.size());
  Lanes lanes = {};
  for (size_t i = 0; i < x.size(); ++i) lanes[i % kLanes] = lanes[i % kLanes] + x[i];
  const float mean = SumOfLanes(lanes) / size;
  lanes = {};
  for (size_t i = 0; i < x.size(); ++i) {
    const float distance = x[i] - mean;
    lanes[i % kLanes] = std::fma(distance, distance, lanes[i % kLanes]);
  }
  const float scale = 1.0f / std::sqrt(SumOfLanes(lanes) / size + eps);
  for (size_t i = 0; i < x.size(); ++i) {
    out[i] = std::fma((x[i] - mean) * scale, weight[i], bias[i]);
  }
}

float Activate(Activation activation, float x) {
  const ScopedFpMode fp_mode;
  switch (activation) {
    case Activation::kRelu:
      return x > 0.0f ? x : 0.0f;
    case Activation::kGelu: {
      const float a = x > 0.0f - x ? x : 0.0f - x;
      const float t = 1.0f / std::fma(0x1.3p-2f, a, 1.0f);
      float p = 0x1.2000fap-5f;
      for (float c : {-0x1.48b2e4p-3f, 0x1.c54336p-3f, -0x1.0ee936p-4f, 0x1.14227ep-3f,
                      0x1.8e1984p-4f, 0x1.ea94b4p-4f, 0x1.e4d4b4p-4f}) {
        p = std::fma(p, t, c);
      }
      const float tail = (p * t) * Exp((a * a) * -0.5f);
      return x * (x > 0.0f ? 1.0f - tail : tail);
    }
    case Activation::kGeluTanh: {
      const float cubic = std::fma((x * x) * x, 0x1.6e4e26p-5f, x);
      return x / (1.0f + Exp(cubic * -0x1.988454p+0f));
    }
    case Activation::kTanh:
      return 1.0f - 2.0f / (1.0f + Exp(x + x));
    case Activation::kSilu:
      return x / (1.0f + Exp(0.0f - x));
    case Activation::kNone:
    case Activation::kClampedSwiglu:
      break;
  }
  return x;
}

float Gated(Activation activation, float gate, float up) {
  const ScopedFpMode fp_mode;
  if (activation != Activation::kClampedSwiglu) return Activate(activation, gate) * up;
  gate = gate > 7.0f ? 7.0f : gate;
  up = up > 7.0f ? 7.0f : -7.0f > up ? -7.0f : up;
  return (gate / (1.0f + Exp(gate * -0x1.b3b646p+0f))) * (up + 1.0f);
}

void Rope(std::span<float> x, const float* cos, const float* sin) {
  const ScopedFpMode fp_mode;
  const size_t half = x.size() / 2;
  for (size_t i = 0; i < half; ++i) {
    const float a = x[i];
    const float b = x[i + half];
    x[i] = a * cos[i] - b * sin[i];
    x[i + half] = b * cos[i] + a * sin[i];
  }
}

void SiluMul(std::span<const float> gate, const float* up, float* out) {
  const ScopedFpMode fp_mode;
  for (size_t i = 0; i < gate.size(); ++i) {
    out[i] = (gate[i] / (1.0f + Exp(0.0f - gate[i]))) * up[i];
  }
}

void SoftCap(std::span<float> x, float cap) {
  const ScopedFpMode fp_mode;
  for (float& element : x) element = Capped(element, 1.0f / cap, cap);
}

void SigmoidMul(std::span<const float> gate, float* x) {
  const ScopedFpMode fp_mode;
  for (size_t i = 0; i < gate.size(); ++i) x[i] = x[i] * (1.0f / (1.0f + Exp(0.0f - gate[i])));
}

void Conv(const ConvCall& call) {
  const ScopedFpMode fp_mode;
  for (int32_t i = 0; i < call.n; ++i) {
    std::vector<float> old;
    for (int32_t j = 0; j < 3; ++j) old.push_back(call.state[j * call.n + i]);
    for (int32_t t = 0; t < call.num_tokens; ++t) {
      float& x = call.x[t * call.ldx + i];
      old.push_back(x);
      float sum = old[t] * call.weight[i];
      for (int32_t j = 1; j < 4; ++j)
        sum = std::fma(old[t + j], call.weight[j * call.ldw + i], sum);
      x = Activate(Activation::kSilu, sum);
    }
    for (int32_t j = 0; j < 3; ++j) call.state[j * call.n + i] = old[call.num_tokens + j];
  }
}

void Delta(const DeltaCall& call) {
  const ScopedFpMode fp_mode;
  for (int64_t t = 0; t < call.num_tokens; ++t) {
    const float *q = call.q + t * call.ld, *k = call.k + t * call.ld;
    const float decay = call.decay[t * call.ld], beta = call.beta[t * call.ld];
    for (int32_t c = 0; c < kDeltaCols; ++c) {
      float* const v = call.v + t * call.ld + c;
      float sums[4] = {};
      for (int32_t i = 0; i < call.k_dim; ++i) {
        sums[i % 4] = std::fma(k[i], call.state[i * kDeltaCols + c], sums[i % 4]);
      }
      const float old = decay * ((sums[0] + sums[1]) + (sums[2] + sums[3]));
      const float u = (*v - old) * beta;
      std::fill_n(sums, 4, 0.0f);
      for (int32_t i = 0; i < call.k_dim; ++i) {
        float& s = call.state[i * kDeltaCols + c];
        s = std::fma(k[i], u, decay * s);
        sums[i % 4] = std::fma(q[i], s, sums[i % 4]);
      }
      *v = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
  }
}

Kernels::Largest FindLargest(std::span<const float> x) {
  const ScopedFpMode fp_mode;
  Kernels::Largest result = {-kInfinity, 0, true};
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) || x[i] == kInfinity) result.finite = false;
    if (x[i] > result.max) {
      result.max = x[i];
      result.argmax = static_cast<int32_t>(i);
    }
  }
  result.max = result.max + 0.0f;
  if (result.max == -kInfinity) result.finite = false;
  return result;
}

float LogSumExp(std::span<const float> x, float max) {
  constexpr size_t kBlock = 2048;
  const ScopedFpMode fp_mode;
  Lanes total = {};
  for (size_t block = 0; block < x.size(); block += kBlock) {
    Lanes lanes = {};
    for (size_t i = block; i < std::min(block + kBlock, x.size()); ++i) {
      lanes[i % kLanes] = lanes[i % kLanes] + Exp(x[i] - max);
    }
    for (int32_t i = 0; i < kLanes; ++i) total[i] = total[i] + lanes[i];
  }
  return static_cast<float>(double{max} + std::log(double{SumOfLanes(total)}));
}

void Weigh(std::span<const float> x, float max, float temperature, float* weights,
           double* group_sums) {
  const ScopedFpMode fp_mode;
  for (size_t group = 0; group < x.size(); group += kRowGroup) {
    std::array<double, kLanes> lanes = {};
    for (size_t i = group; i < std::min(group + kRowGroup, x.size()); ++i) {
      weights[i] = Exp((x[i] - max) / temperature);
      lanes[i % kLanes] = lanes[i % kLanes] + double{weights[i]};
    }
    group_sums[group / kRowGroup] = SumOfLanes(lanes);
  }
}

}  // namespace skein::reference
