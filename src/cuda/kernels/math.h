#pragma once

// Functions of one value, of a row and of a tile that several kernels use. They give the bits of
// docs/numerics.md, as the CPU does.

#include <cstdint>

#include "base/dtype.h"
#include "cuda/kernels/args.h"
#include "cuda/kernels/dialect.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

inline constexpr uint32_t kAllLanes = 0xffffffffu;
inline constexpr int kRowLanes = 16;  // lanes that compute a sum along a row
inline constexpr float kMinusInfinity = -__builtin_inff();

__device__ __forceinline__ float Widen(float x) { return x; }
__device__ __forceinline__ float Widen(Bf16 x) {
  return __uint_as_float(static_cast<uint32_t>(x.bits) << 16);
}

__device__ __forceinline__ uint32_t RoundToBf16(float x) {
  const uint32_t bits = __float_as_uint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16) | 0x40u;
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}
__device__ __forceinline__ void Round(float x, float* out) { *out = x; }
__device__ __forceinline__ void Round(float x, Bf16* out) {
  out->bits = static_cast<uint16_t>(RoundToBf16(x));
}

inline constexpr float kExpMin = -0x1.5d589ep+6f;  // e^x is below the smallest normal number

// e^x = 2^n * y, for x whose e^x is a normal number or close to one. `shifted` has n + kBias in its
// low 9 bits.
template <int kBias = 0>
struct ReducedExp {
  __device__ __forceinline__ explicit ReducedExp(float x) {
    // n = round(x / ln 2), and y = e^r. Adding 1.5 * 2^23 rounds to an integer in the low bits.
    const float magic = 0x1.8p23f + static_cast<float>(kBias);
    const float sum = fmaf(x, 0x1.715476p+0f, magic);
    const float n = sum - magic;
    float r = fmaf(n, -0x1.62e4p-1f, x);
    r = fmaf(n, -0x1.7f7d1cp-20f, r);
    y = 0x1.6a2430p-10f;
    y = fmaf(y, r, 0x1.1239e4p-7f);
    y = fmaf(y, r, 0x1.5558f2p-5f);
    y = fmaf(y, r, 0x1.555492p-3f);
    y = fmaf(y, r, 0x1.fffffcp-2f);
    y = fmaf(y, r, 1.0f);
    y = fmaf(y, r, 1.0f);
    shifted = __float_as_uint(sum);
  }
  // 2^(n + kBias) * y, where it is a normal number.
  __device__ __forceinline__ float Scaled() const {
    return __uint_as_float(__float_as_uint(y) + (shifted << 23));
  }

  float y;
  uint32_t shifted;
};

inline constexpr float kExpMax = 0x1.62e42ep+6f;  // e^x is infinite above it

// e^x, where it is a normal number.
__device__ __forceinline__ float NormalExp(float x) { return ReducedExp<>(x).Scaled(); }

// e^x. Results below the smallest normal number are 0. Choices in the place of branches, which the
// threads of a warp would take one after the other.
__device__ __forceinline__ float Exp(float x) {
  float y = NormalExp(x);
  y = x < kExpMin ? 0.0f : y;
  y = x > kExpMax ? __builtin_inff() : y;
  return x != x ? x : y;
}

// The same for x that is not positive. Below kExpMin the product is denormal or 0 and is flushed,
// so that no choice is needed: 2^n is 0 for the least x that is computed.
__device__ __forceinline__ float ExpOfNegative(float x) {
  const ReducedExp<> e(MaxOrNan(x, -88.0f));
  return e.y * __uint_as_float((e.shifted << 23) + 0x3f800000u);
}

// x / (1 + e^a), rounded correctly, where x and a are as in Silu, GeluTanh or ClampedSwiglu. A
// division for all numbers has branches, which keep a thread from working on several results at a
// time. Here a correction follows an estimate (Markstein, "Computation of elementary functions on
// the IBM RISC System/6000 processor", 1990). The divisor is a quarter of 1 + e^a, whose reciprocal
// is a normal number for each finite e^a.
__device__ __forceinline__ float DivideByOnePlusExp(float x, float a) {
  constexpr float kOneAlone = -80.0f;  // 1 + e^a is 1, and a quarter of e^a is a normal number
  const float divisor = 0.25f + ReducedExp<-2>(MaxOrNan(a, kOneAlone)).Scaled();
  float r = EstimateReciprocal(divisor);
  r = fmaf(r, fmaf(0.0f - divisor, r, 1.0f), r);
  float q = x * r;
  q = fmaf(fmaf(0.0f - divisor, q, x), r, q) * 0.25f;
  q = a < -32.0f ? x : q;  // 1 + e^a is 1, and x times r may be too large
  q = a > kExpMax ? x * 0.0f : q;
  // The correction loses the sign of zero.
  return __uint_as_float((__float_as_uint(q) & 0x7fffffffu) | (__float_as_uint(x) & 0x80000000u));
}

__device__ __forceinline__ float Silu(float x) { return DivideByOnePlusExp(x, 0.0f - x); }

__device__ __forceinline__ float GeluTanh(float x) {
  const float cubic = fmaf((x * x) * x, 0x1.6e4e26p-5f, x);
  return DivideByOnePlusExp(x, cubic * -0x1.988454p+0f);
}

__device__ __forceinline__ float Gelu(float x) {
  const float a = x > 0.0f - x ? x : 0.0f - x;
  const float t = 1.0f / fmaf(0x1.3p-2f, a, 1.0f);
  float p = 0x1.2000fap-5f;
  p = fmaf(p, t, -0x1.48b2e4p-3f);
  p = fmaf(p, t, 0x1.c54336p-3f);
  p = fmaf(p, t, -0x1.0ee936p-4f);
  p = fmaf(p, t, 0x1.14227ep-3f);
  p = fmaf(p, t, 0x1.8e1984p-4f);
  p = fmaf(p, t, 0x1.ea94b4p-4f);
  p = fmaf(p, t, 0x1.e4d4b4p-4f);
  const float tail = (p * t) * Exp((a * a) * -0.5f);
  return x * (x > 0.0f ? 1.0f - tail : tail);
}

__device__ __forceinline__ float Tanh(float x) { return 1.0f - 2.0f / (1.0f + Exp(x + x)); }

// x, capped: `factor` is 1 / cap, times what x is to be scaled by.
__device__ __forceinline__ float SoftCap(float x, float factor, float cap) {
  return cap * Tanh(x * factor);
}

__device__ __forceinline__ float Activate(Gate gate, float x) {
  if (gate == Gate::kSilu) return Silu(x);
  if (gate == Gate::kRelu) return x > 0.0f ? x : 0.0f;
  return gate == Gate::kGelu ? Gelu(x) : GeluTanh(x);
}

// With g at most 7 and up in [-7, 7]: g / (1 + e^(-1.702 g)) * (up + 1).
__device__ __forceinline__ float ClampedSwiglu(float g, float up) {
  g = g > 7.0f ? 7.0f : g;
  const float least = -7.0f > up ? -7.0f : up;
  up = up > 7.0f ? 7.0f : least;
  return DivideByOnePlusExp(g, g * -0x1.b3b646p+0f) * (up + 1.0f);
}

// The result of a gated product.
__device__ __forceinline__ float Gated(Gate gate, float x, float up) {
  if (gate == Gate::kClampedSwiglu) return ClampedSwiglu(x, up);
  return Activate(gate, x) * up;
}

// The sum over the 16 lanes of a row, in the order of SumOfLanes; every lane gets it. Both halves
// of a warp take part.
__device__ __forceinline__ float SumOfRowLanes(float lane) {
  for (int distance = kRowLanes / 2; distance > 0; distance /= 2) {
    lane = lane + __shfl_xor_sync(kAllLanes, lane, distance);
  }
  return lane;
}

__device__ __forceinline__ float MaxOfRowLanes(float lane) {
  for (int distance = kRowLanes / 2; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, lane, distance);
    lane = other > lane ? other : lane;
  }
  return lane;
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
