#include "kernels/reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/fp_mode.h"

namespace skein::reference {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int32_t kLanes = 16;

using Lanes = std::array<float, kLanes>;

float SumOfLanes(Lanes lanes) {
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

// Adds the product to `sum`, tile by tile.
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

float DotAmx(const float* a, const float* b, int32_t k) { return ContinueAmx(0.0f, a, b, k); }

// exp(max) * sum and exp(max) * acc are the sums over the keys seen.
struct State {
  float max = -kInfinity;
  float sum = 0.0f;
  std::vector<float> acc;  // [head_dim]
};

// The weights of the keys [begin, end) against the new maximum, which becomes the state's; returns
// the factor of what the state holds already.
float Weigh(NumericClass numeric_class, const AttentionInput& in, int32_t begin, int32_t end,
            State& state, std::vector<float>& p) {
  const bool amx = numeric_class == NumericClass::kAmx;
  const auto dot = amx ? DotAmx : DotFma;
  float max = state.max;
  for (int32_t key = begin; key < end; ++key) {
    p.push_back(dot(in.q, in.k + int64_t{key} * in.head_dim, in.head_dim));
    if (p.back() * in.scale > max) max = p.back() * in.scale;
  }
  for (float& x : p) {
    x = Rounded(Exp(amx ? std::fma(x, in.scale, -max) : x * in.scale - max), in.dtype);
  }
  const float factor = Exp(state.max - max);
  state.max = max;
  return factor;
}

// Continues `state` by the keys [begin, end) of one step.
void StepFma(const AttentionInput& in, int32_t begin, int32_t end, State& state) {
  std::vector<float> p;
  const float factor = Weigh(NumericClass::kFma, in, begin, end, state, p);
  Lanes lanes = {};
  for (size_t j = 0; j < p.size(); ++j) lanes[j % kLanes] = lanes[j % kLanes] + p[j];
  state.sum = std::fma(state.sum, factor, SumOfLanes(lanes));
  for (int32_t d = 0; d < in.head_dim; ++d) {
    float acc = state.acc[d] * factor;
    for (size_t j = 0; j < p.size(); ++j) {
      acc = std::fma(p[j], in.v[(begin + int64_t(j)) * in.head_dim + d], acc);
    }
    state.acc[d] = acc;
  }
}

void StepAmx(const AttentionInput& in, int32_t begin, int32_t end, State& state) {
  std::vector<float> p;
  const float factor = Weigh(NumericClass::kAmx, in, begin, end, state, p);
  const auto n = static_cast<int32_t>(p.size());
  const std::vector<float> ones(n, 1.0f);
  state.sum = ContinueAmx(state.sum * factor, p.data(), ones.data(), n);
  std::vector<float> v(n);
  for (int32_t d = 0; d < in.head_dim; ++d) {
    for (int32_t j = 0; j < n; ++j) v[j] = in.v[(begin + int64_t{j}) * in.head_dim + d];
    state.acc[d] = ContinueAmx(state.acc[d] * factor, p.data(), v.data(), n);
  }
}

void Merge(const State& segment, State& total) {
  const float max = segment.max > total.max ? segment.max : total.max;
  const float total_factor = Exp(total.max - max);
  const float segment_factor = Exp(segment.max - max);
  total.max = max;
  total.sum = std::fma(total.sum, total_factor, segment.sum * segment_factor);
  for (size_t d = 0; d < total.acc.size(); ++d) {
    total.acc[d] = std::fma(total.acc[d], total_factor, segment.acc[d] * segment_factor);
  }
}

}  // namespace

NumericClass ClassOf(Isa isa, DType dtype) {
  return isa == Isa::kAmx && dtype == DType::kBf16 ? NumericClass::kAmx : NumericClass::kFma;
}

void Gemm(NumericClass numeric_class, GemmShape shape, const float* a, const float* w,
          const float* bias, bool add_to_out, float* out) {
  const ScopedFpMode fp_mode;
  const auto dot = numeric_class == NumericClass::kAmx ? DotAmx : DotFma;
  for (int64_t row = 0; row < shape.m; ++row) {
    for (int64_t column = 0; column < shape.n; ++column) {
      float sum = dot(a + row * shape.k, w + column * shape.k, shape.k);
      if (bias != nullptr) sum = sum + bias[column];
      float& to = out[row * shape.n + column];
      to = add_to_out ? to + sum : sum;
    }
  }
}

void Attention(NumericClass numeric_class, const AttentionInput& in, float* out) {
  const ScopedFpMode fp_mode;
  const auto step_keys = numeric_class == NumericClass::kAmx ? StepAmx : StepFma;
  State total;
  for (int32_t segment = 0; segment < in.num_keys; segment += kKeysPerSegment) {
    const int32_t segment_end = std::min(segment + kKeysPerSegment, in.num_keys);
    State part;
    part.acc.assign(in.head_dim, 0.0f);
    for (int32_t step = segment; step < segment_end; step += kKeysPerStep) {
      step_keys(in, step, std::min(step + kKeysPerStep, segment_end), part);
    }
    if (segment == 0) {
      total = part;
    } else {
      Merge(part, total);
    }
  }
  const float inverse = 1.0f / total.sum;
  for (int32_t d = 0; d < in.head_dim; ++d) {
    // In the AMX class a zero may have either sign until here.
    const float acc = numeric_class == NumericClass::kAmx ? total.acc[d] + 0.0f : total.acc[d];
    out[d] = Rounded(acc * inverse, in.dtype);
  }
}

float Exp(float x) {
  const ScopedFpMode fp_mode;
  if (std::isnan(x)) return x;
  if (x < -0x1.5d589ep+6f) return 0.0f;
  if (x > 0x1.62e42ep+6f) return kInfinity;
  // Exact in double, so the integer is the nearest, ties to even, to x times the f32 constant.
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
    case Activation::kNone:
      break;
  }
  return x;
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

Kernels::LogSum LogSumExp(std::span<const float> x) {
  constexpr size_t kBlock = 2048;
  const ScopedFpMode fp_mode;
  Kernels::LogSum result = {0.0f, -kInfinity, 0, true};
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) || x[i] == kInfinity) result.finite = false;
    if (x[i] > result.max) {
      result.max = x[i];
      result.argmax = static_cast<int32_t>(i);
    }
  }
  result.max = result.max + 0.0f;
  if (result.max == -kInfinity) result.finite = false;
  if (!result.finite) {
    result.log_sum_exp = std::numeric_limits<float>::quiet_NaN();
    return result;
  }
  Lanes total = {};
  for (size_t block = 0; block < x.size(); block += kBlock) {
    Lanes lanes = {};
    for (size_t i = block; i < std::min(block + kBlock, x.size()); ++i) {
      lanes[i % kLanes] = lanes[i % kLanes] + Exp(x[i] - result.max);
    }
    for (int32_t i = 0; i < kLanes; ++i) total[i] = total[i] + lanes[i];
  }
  result.log_sum_exp = static_cast<float>(double{result.max} + std::log(double{SumOfLanes(total)}));
  return result;
}

}  // namespace skein::reference
