#pragma once

// Bodies of the kernels, written once for a vector type `V` of 16 f32 lanes (vec_*.h). The
// translation unit of each instruction set includes these files after its target pragma, and so
// compiles them for that set. The parameter V keeps the names of different sets apart.
// docs/numerics.md defines every rounding.

#include <cstdint>

#include "base/dtype.h"
#include "kernels/kernels.h"
#include "kernels/quantize.h"

namespace skein {

// The maximum of each lane; b where a or b is NaN.
template <class V>
inline V Max(V a, V b) {
  return IfGreater(a, b, a, b);
}

// e^r for |r| <= ln(2) / 2: 1 + r + r^2 q(r), where q has the smallest possible maximal relative
// error on the interval (4e-9).
template <class V>
inline V ExpPolynomial(V r) {
  V q = V::Set(0x1.6a2430p-10f);
  q = Fma(q, r, V::Set(0x1.1239e4p-7f));
  q = Fma(q, r, V::Set(0x1.5558f2p-5f));
  q = Fma(q, r, V::Set(0x1.555492p-3f));
  q = Fma(q, r, V::Set(0x1.fffffcp-2f));
  q = Fma(q, r, V::Set(1.0f));
  return Fma(q, r, V::Set(1.0f));
}

// e^x. Results below the smallest normal number are 0.
template <class V>
inline V Exp(V x) {
  // e^x = 2^n * e^r with n = round(x / ln 2) and |r| <= ln(2) / 2. Adding 1.5 * 2^23 rounds to an
  // integer in the low bits of the sum.
  const V magic = V::Set(0x1.8p23f);
  const V shifted = Fma(x, V::Set(0x1.715476p+0f), magic);
  const V n = shifted - magic;
  V r = Fma(n, V::Set(-0x1.62e4p-1f), x);  // ln 2 in two parts; n times the shorter part is exact
  r = Fma(n, V::Set(-0x1.7f7d1cp-20f), r);
  V y = AddExponent(ExpPolynomial(r), shifted);
  y = IfGreater(V::Set(-0x1.5d589ep+6f), x, V::Set(0.0f), y);
  return IfGreater(x, V::Set(0x1.62e42ep+6f), V::Set(__builtin_inff()), y);
}

template <class V>
inline V Silu(V x) {
  return x / (V::Set(1.0f) + Exp(V::Set(0.0f) - x));
}

// x * Phi(x), where Phi is the normal distribution. With a = |x|, Phi(-a) is exp(-a^2 / 2) times a
// polynomial in 1 / (1 + 19/64 a), whose relative error is below 5e-7.
template <class V>
inline V Gelu(V x) {
  const V zero = V::Set(0.0f);
  const V one = V::Set(1.0f);
  const V a = Max(x, zero - x);
  const V t = one / Fma(V::Set(0x1.3p-2f), a, one);
  V p = V::Set(0x1.2000fap-5f);
  p = Fma(p, t, V::Set(-0x1.48b2e4p-3f));
  p = Fma(p, t, V::Set(0x1.c54336p-3f));
  p = Fma(p, t, V::Set(-0x1.0ee936p-4f));
  p = Fma(p, t, V::Set(0x1.14227ep-3f));
  p = Fma(p, t, V::Set(0x1.8e1984p-4f));
  p = Fma(p, t, V::Set(0x1.ea94b4p-4f));
  p = Fma(p, t, V::Set(0x1.e4d4b4p-4f));
  const V tail = (p * t) * Exp((a * a) * V::Set(-0.5f));
  return x * IfGreater(x, zero, one - tail, tail);
}

// Gelu by tanh: 0.5 x (1 + tanh(u)) is x / (1 + exp(-2 u)).
template <class V>
inline V GeluTanh(V x) {
  const V cubic = Fma((x * x) * x, V::Set(0x1.6e4e26p-5f), x);       // 0.044715
  return x / (V::Set(1.0f) + Exp(cubic * V::Set(-0x1.988454p+0f)));  // 2 sqrt(2 / pi)
}

// tanh(x) with an absolute error below 2e-7.
template <class V>
inline V Tanh(V x) {
  const V one = V::Set(1.0f);
  return one - V::Set(2.0f) / (one + Exp(x + x));
}

// cap * tanh(x * factor).
template <class V>
inline V Capped(V x, V factor, V cap) {
  return cap * Tanh(x * factor);
}

template <class V>
inline V Activated(Activation activation, V x) {
  switch (activation) {
    case Activation::kRelu:
      return Max(x, V::Set(0.0f));
    case Activation::kGelu:
      return Gelu(x);
    case Activation::kGeluTanh:
      return GeluTanh(x);
    case Activation::kTanh:
      return Tanh(x);
    case Activation::kSilu:
      return Silu(x);
    case Activation::kNone:
    case Activation::kClampedSwiglu:  // a function of two numbers
      break;
  }
  return x;
}

// The result of a gated product.
template <class V>
inline V Gated(Activation activation, V gate, V up) {
  if (activation != Activation::kClampedSwiglu) return Activated(activation, gate) * up;
  const V one = V::Set(1.0f), limit = V::Set(7.0f), least = V::Set(-7.0f);
  gate = IfGreater(gate, limit, limit, gate);
  up = IfGreater(up, limit, limit, IfGreater(least, up, least, up));
  return (gate / (one + Exp(gate * V::Set(-0x1.b3b646p+0f)))) * (up + one);
}

// Stores the first n <= 16 lanes at `index` of an array of type f32 or bf16.
template <class V>
inline void StoreAs(V v, void* out, DType dtype, int64_t index, int n) {
  if (dtype == DType::kF32) {
    v.StoreFirst(static_cast<float*>(out) + index, n);
  } else {
    v.StoreBf16First(static_cast<uint16_t*>(out) + index, n);
  }
}

// Rounds the elements low [16] and high [16] of a block to int8, out [32].
template <class V>
inline RowBlock QuantizeBlock(V low, V high, int8_t* out) {
  const V largest = MaxMagnitude(MaxMagnitude(V::Set(0.0f), low), high);
  const Int8Scale scale = Int8ScaleOf(largest.LargestMagnitude());
  const V inverse = V::Set(scale.inverse);
  const bool zeros = scale.inverse == 0.0f;  // whatever the block holds
  (zeros ? inverse : low * inverse).StoreInt8First(out, 16);
  (zeros ? inverse : high * inverse).StoreInt8First(out + 16, 16);
  const int32_t low_sum = V::SumOfBytes(out), sum = low_sum + V::SumOfBytes(out + 16);
  return {scale.scale, scale.scale * static_cast<float>(sum), low_sum, sum};
}

}  // namespace skein
