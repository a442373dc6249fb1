#pragma once

// The operations of linear attention with a state. math_body.h says how this file is used.

#include "kernels/cpu/math_body.h"
#include "kernels/cpu/rowwise_body.h"

namespace skein {

template <class V>
void SigmoidMul(const float* gate, int32_t n, void* x, DType dtype) {
  const V one = V::Set(1.0f);
  for (int32_t i = 0; i < n; i += kLanes) {
    const int count = n - i < kLanes ? n - i : kLanes;
    const V e = Exp(V::Set(0.0f) - V::LoadFirst(gate + i, count));
    StoreAs(LoadAs<V>(x, dtype, i, n) * (one / (one + e)), x, dtype, i, count);
  }
}

template <class V>
void Conv(const ConvCall& call) {
  for (int32_t i = 0; i < call.n; i += kLanes) {
    const int count = call.n - i < kLanes ? call.n - i : kLanes;
    V weight[kConvWidth], old[kConvWidth - 1];
    for (int j = 0; j < kConvWidth; ++j) {
      weight[j] = V::LoadFirst(call.weight + j * call.ldw + i, count);
    }
    for (int j = 0; j < kConvWidth - 1; ++j) {
      old[j] = V::LoadFirst(call.state + int64_t{j} * call.n + i, count);
    }
    float* x = call.x + i;
    for (int32_t t = 0; t < call.num_tokens; ++t, x += call.ldx) {
      const V now = V::LoadFirst(x, count);
      V sum = old[0] * weight[0];
      sum = Fma(old[1], weight[1], sum);
      sum = Fma(old[2], weight[2], sum);
      sum = Fma(now, weight[3], sum);
      Silu(sum).StoreFirst(x, count);
      old[0] = old[1];
      old[1] = old[2];
      old[2] = now;
    }
    for (int j = 0; j < kConvWidth - 1; ++j) {
      old[j].StoreFirst(call.state + int64_t{j} * call.n + i, count);
    }
  }
}

// Four partial sums, each of every fourth term (i, i + 4, ...), hide the latency of an addition.
template <class V>
struct DeltaSums {
  V part[4];

  static DeltaSums Zero() {
    DeltaSums sums;
    for (V& p : sums.part) p = V::Set(0.0f);
    return sums;
  }
  V Total() const { return (part[0] + part[1]) + (part[2] + part[3]); }
};

// Computes one token: DeltaCall for 16 columns in each of the two halves of kDeltaCols.
template <class V>
inline void DeltaToken(float* state, const float* q, const float* k, float* v, float decay,
                       float beta, int32_t k_dim) {
  DeltaSums<V> low = DeltaSums<V>::Zero(), high = DeltaSums<V>::Zero();
  for (int32_t i = 0; i < k_dim; i += 4) {
    for (int j = 0; j < 4; ++j) {
      const float* s = state + int64_t{i + j} * kDeltaCols;
      const V ki = V::Set(k[i + j]);
      low.part[j] = Fma(ki, V::Load(s), low.part[j]);
      high.part[j] = Fma(ki, V::Load(s + kLanes), high.part[j]);
    }
  }
  const V d = V::Set(decay), b = V::Set(beta);
  const V u_low = (V::Load(v) - d * low.Total()) * b;
  const V u_high = (V::Load(v + kLanes) - d * high.Total()) * b;
  low = high = DeltaSums<V>::Zero();
  for (int32_t i = 0; i < k_dim; i += 4) {
    for (int j = 0; j < 4; ++j) {
      float* s = state + int64_t{i + j} * kDeltaCols;
      const V ki = V::Set(k[i + j]), qi = V::Set(q[i + j]);
      const V s_low = Fma(ki, u_low, d * V::Load(s));
      const V s_high = Fma(ki, u_high, d * V::Load(s + kLanes));
      s_low.Store(s);
      s_high.Store(s + kLanes);
      low.part[j] = Fma(qi, s_low, low.part[j]);
      high.part[j] = Fma(qi, s_high, high.part[j]);
    }
  }
  low.Total().Store(v);
  high.Total().Store(v + kLanes);
}

template <class V>
void Delta(const DeltaCall& call) {
  static_assert(kDeltaCols == 2 * kLanes);
  for (int64_t t = 0; t < call.num_tokens; ++t) {
    const int64_t at = t * call.ld;
    DeltaToken<V>(call.state, call.q + at, call.k + at, call.v + at, call.decay[at], call.beta[at],
                  call.k_dim);
  }
}

}  // namespace skein
