#pragma once

// Operations on one row. math_body.h says how this file is used.

#include "kernels/cpu/math_body.h"
#include "kernels/cpu/ops.h"

namespace skein {

inline constexpr int kLanes = 16;

// The factor that gives x [n] a mean square of one.
template <class V>
inline float NormScale(const float* x, float eps, int32_t n) {
  V squares = V::Set(0.0f);
  int32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V v = V::Load(x + i);
    squares = Fma(v, v, squares);
  }
  if (i < n) {
    const V v = V::LoadFirst(x + i, n - i);
    squares = Fma(v, v, squares);
  }
  const float mean = squares.Sum() / static_cast<float>(n);
  return 1.0f / __builtin_sqrtf(mean + eps);
}

template <class V>
void RmsNorm(const float* x, const float* weight, float eps, int32_t n, void* out, DType out_dtype,
             int64_t piece_stride) {
  const V scale = V::Set(NormScale<V>(x, eps, n));
  int32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    StoreAs(V::Load(x + i) * scale * V::Load(weight + i), out, out_dtype,
            PieceIndex(i, piece_stride), kLanes);
  }
  if (i < n) {
    StoreAs(V::LoadFirst(x + i, n - i) * scale * V::LoadFirst(weight + i, n - i), out, out_dtype,
            PieceIndex(i, piece_stride), n - i);
  }
}

// Loads the first n elements. Lanes without an element get the value `fill`.
template <class V>
inline V LoadFirstOr(const float* p, int n, float fill) {
  float padded[kLanes];
  for (int i = 0; i < kLanes; ++i) padded[i] = i < n ? p[i] : fill;
  return V::Load(padded);
}

// Loads the elements i, i + 1, ... (at most 16, below n). Lanes without an element are -inf.
template <class V>
inline V LoadOrLowest(const float* x, int32_t i, int32_t n) {
  return i + kLanes <= n ? V::Load(x + i) : LoadFirstOr<V>(x + i, n - i, -__builtin_inff());
}

template <class V>
void LayerNorm(const float* x, const float* weight, const float* bias, float eps, int32_t n,
               void* out, DType out_dtype) {
  V sum = V::Set(0.0f);
  for (int32_t i = 0; i < n; i += kLanes) {
    sum = sum + V::LoadFirst(x + i, n - i < kLanes ? n - i : kLanes);
  }
  const float mean = sum.Sum() / static_cast<float>(n);
  const V center = V::Set(mean);
  V squares = V::Set(0.0f);
  for (int32_t i = 0; i < n; i += kLanes) {
    // Lanes without an element hold the mean, so that they add +0.
    const V v = i + kLanes <= n ? V::Load(x + i) : LoadFirstOr<V>(x + i, n - i, mean);
    squares = Fma(v - center, v - center, squares);
  }
  const float variance = squares.Sum() / static_cast<float>(n);
  const V scale = V::Set(1.0f / __builtin_sqrtf(variance + eps));
  for (int32_t i = 0; i < n; i += kLanes) {
    const int count = n - i < kLanes ? n - i : kLanes;
    const V normal = (V::LoadFirst(x + i, count) - center) * scale;
    StoreAs(Fma(normal, V::LoadFirst(weight + i, count), V::LoadFirst(bias + i, count)), out,
            out_dtype, i, count);
  }
}

template <class V>
void Activate(Activation activation, const float* x, int32_t n, void* out, DType out_dtype) {
  for (int32_t i = 0; i < n; i += kLanes) {
    const int count = n - i < kLanes ? n - i : kLanes;
    StoreAs(Activated(activation, V::LoadFirst(x + i, count)), out, out_dtype, i, count);
  }
}

// Rotates n <= 16 pairs, from pair i on, of the head at `offset`.
template <class V, class LoadFn>
inline void RotatePairs(const RotateCall& call, V scale, int64_t offset, int32_t half, int32_t i,
                        int n, LoadFn load) {
  V a = load(call.x + offset + i), b = load(call.x + offset + half + i);
  if (call.norm != nullptr) {
    a = a * scale * load(call.norm + i);
    b = b * scale * load(call.norm + half + i);
  }
  if (call.cos != nullptr) {
    const V c = load(call.cos + i), s = load(call.sin + i);
    const V rotated = a * c - b * s;
    b = b * c + a * s;
    a = rotated;
  }
  StoreAs(a, call.out, call.dtype, PieceIndex(offset + i, call.piece_stride), n);
  StoreAs(b, call.out, call.dtype, PieceIndex(offset + half + i, call.piece_stride), n);
}

template <class V>
void Rotate(const RotateCall& call) {
  const int32_t rotary_dim = call.rotary_dim > 0 ? call.rotary_dim : call.head_dim;
  const int32_t half = rotary_dim / 2;
  for (int32_t h = 0; h < call.num_heads; ++h) {
    const int64_t offset = int64_t{h} * call.head_dim;
    V scale = V::Set(0.0f);
    if (call.norm != nullptr) {
      scale = V::Set(NormScale<V>(call.x + offset, call.eps, call.head_dim));
    }
    int32_t i = 0;
    for (; i + kLanes <= half; i += kLanes) {
      RotatePairs(call, scale, offset, half, i, kLanes, [](const float* p) { return V::Load(p); });
    }
    if (i < half) {
      const int n = half - i;
      RotatePairs(call, scale, offset, half, i, n,
                  [n](const float* p) { return V::LoadFirst(p, n); });
    }
    for (i = rotary_dim; i < call.head_dim; i += kLanes) {
      const int n = call.head_dim - i < kLanes ? call.head_dim - i : kLanes;
      V x = V::LoadFirst(call.x + offset + i, n);
      if (call.norm != nullptr) x = x * scale * V::LoadFirst(call.norm + i, n);
      StoreAs(x, call.out, call.dtype, PieceIndex(offset + i, call.piece_stride), n);
    }
  }
}

template <class V>
void SiluMul(const float* gate, const float* up, int32_t n, void* out, DType out_dtype) {
  for (int32_t i = 0; i < n; i += kLanes) {
    const int count = n - i < kLanes ? n - i : kLanes;
    const V product = Silu(V::LoadFirst(gate + i, count)) * V::LoadFirst(up + i, count);
    StoreAs(product, out, out_dtype, i, count);
  }
}

template <class V>
void SoftCap(float* x, int32_t n, float cap) {
  for (int32_t i = 0; i < n; i += kLanes) {
    const int count = n - i < kLanes ? n - i : kLanes;
    Capped(V::LoadFirst(x + i, count), V::Set(1.0f / cap), V::Set(cap)).StoreFirst(x + i, count);
  }
}

template <class V>
void Convert(const float* x, int32_t n, void* out, DType out_dtype) {
  for (int32_t i = 0; i < n; i += kLanes) {
    const int count = n - i < kLanes ? n - i : kLanes;
    StoreAs(V::LoadFirst(x + i, count), out, out_dtype, i, count);
  }
}

// Loads the elements i, i + 1, ... (at most 16, below n).
template <class V>
inline V LoadAs(const void* x, DType dtype, int32_t i, int32_t n) {
  const int count = n - i < kLanes ? n - i : kLanes;
  return dtype == DType::kF32 ? V::LoadFirst(static_cast<const float*>(x) + i, count)
                              : V::LoadBf16First(static_cast<const uint16_t*>(x) + i, count);
}

template <class V>
float Quantize(const void* x, DType dtype, int32_t n, int8_t* out) {
  V largest = V::Set(0.0f);
  for (int32_t i = 0; i < n; i += kLanes) {
    largest = MaxMagnitude(largest, LoadAs<V>(x, dtype, i, n));
  }
  const Int8Scale scale = Int8ScaleOf(largest.LargestMagnitude());
  const V inverse = V::Set(scale.inverse);
  for (int32_t i = 0; i < n; i += kLanes) {
    const int count = n - i < kLanes ? n - i : kLanes;
    // If the scale has no inverse, all results are zeros.
    const V q = scale.inverse == 0.0f ? inverse : LoadAs<V>(x, dtype, i, n) * inverse;
    q.StoreInt8First(out + i, count);
  }
  return scale.scale;
}

template <class V>
void QuantizeBlocks(const void* x, DType dtype, int32_t n, int8_t* out, RowBlock* blocks) {
  for (int32_t i = 0; i < n; i += kBlockTerms, ++blocks) {
    *blocks = QuantizeBlock(LoadAs<V>(x, dtype, i, n), LoadAs<V>(x, dtype, i + kLanes, n), out + i);
  }
}

template <class V>
void ExpShifted(const float* x, float shift, int32_t n, float* out) {
  for (int32_t i = 0; i < n; i += kLanes) {
    const int count = n - i < kLanes ? n - i : kLanes;
    Exp(V::LoadFirst(x + i, count) - V::Set(shift)).StoreFirst(out + i, count);
  }
}

template <class V>
float SumExp(const float* x, float max, int32_t n) {
  // The number of elements of a partial sum. Partial sums keep the error of long rows small.
  constexpr int32_t kBlock = 2048;
  const V zero = V::Set(0.0f);
  const V shift = V::Set(max);
  V total = zero;
  for (int32_t block = 0; block < n; block += kBlock) {
    const int32_t end = n - block < kBlock ? n : block + kBlock;
    V sum = zero;
    for (int32_t i = block; i < end; i += kLanes) {
      sum = sum + Exp(LoadOrLowest<V>(x, i, end) - shift);
    }
    total = total + sum;
  }
  return total.Sum();
}

}  // namespace skein
