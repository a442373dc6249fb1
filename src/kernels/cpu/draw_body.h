#pragma once

// The reductions over a row of logits that sampling needs. math_body.h says how this file is used.

#include "kernels/cpu/rowwise_body.h"

namespace skein {

// Updates `max` with v. Clears the bits in `numbers` of the lanes in which v is NaN or +inf.
template <class V>
inline void TakeIn(V v, V* max, uint32_t* numbers) {
  *max = Max(v, *max);
  *numbers &= GreaterMask(V::Set(__builtin_inff()), v);
}

template <class V>
Kernels::Largest FindLargest(const float* x, int32_t n, float* group_max) {
  const V lowest = V::Set(-__builtin_inff());
  Kernels::Largest result = {-__builtin_inff(), 0, true};
  uint32_t numbers = 0xffff;
  int32_t best_group = 0;
  for (int32_t group = 0; group < n; group += kRowGroup) {
    const int32_t end = n - group < kRowGroup ? n : group + kRowGroup;
    // Four chains hide the latency of one maximum.
    V a = lowest, b = lowest, c = lowest, d = lowest;
    int32_t i = group;
    for (; i + 4 * kLanes <= end; i += 4 * kLanes) {
      TakeIn(V::Load(x + i), &a, &numbers);
      TakeIn(V::Load(x + i + kLanes), &b, &numbers);
      TakeIn(V::Load(x + i + 2 * kLanes), &c, &numbers);
      TakeIn(V::Load(x + i + 3 * kLanes), &d, &numbers);
    }
    for (; i < end; i += kLanes) TakeIn(LoadOrLowest<V>(x, i, end), &a, &numbers);
    // Adding +0 removes the sign of a zero. Otherwise the sign would depend on the order of the
    // loads.
    const float max = Max(Max(a, b), Max(c, d)).Largest() + 0.0f;
    if (group_max != nullptr) group_max[group / kRowGroup] = max;
    if (max > result.max) {
      result.max = max;
      best_group = group;
    }
  }
  for (int32_t i = best_group; i < n; ++i) {
    if (x[i] == result.max) {
      result.argmax = i;
      break;
    }
  }
  result.finite = numbers == 0xffff && result.max > -__builtin_inff();
  return result;
}

template <class V, bool kDivide>
void WeighAt(const float* x, float max, float temperature, int32_t n, float* weights,
             double* group_sums) {
  const V shift = V::Set(max), divisor = V::Set(temperature);
  for (int32_t group = 0; group < n; group += kRowGroup) {
    const int32_t end = n - group < kRowGroup ? n : group + kRowGroup;
    typename V::Doubles sum = V::Doubles::Zero();
    for (int32_t i = group; i < end; i += kLanes) {
      V v = LoadOrLowest<V>(x, i, end) - shift;
      if constexpr (kDivide) v = v / divisor;
      const V weight = Exp(v);  // +0 in lanes that hold no element
      weight.StoreFirst(weights + i, end - i < kLanes ? end - i : kLanes);
      sum.Add(weight);
    }
    group_sums[group / kRowGroup] = sum.Sum();
  }
}

template <class V>
void Weigh(const float* x, float max, float temperature, int32_t n, float* weights,
           double* group_sums) {
  // The usual temperature, 1, needs no division.
  temperature == 1.0f ? WeighAt<V, false>(x, max, temperature, n, weights, group_sums)
                      : WeighAt<V, true>(x, max, temperature, n, weights, group_sums);
}

// A bit for each of the elements i, i + 1, ... (at most 16, below n), set if the element is above
// the limit, or with kOrEqual not below it.
template <class V, bool kOrEqual>
inline uint32_t Above(const float* x, int32_t i, int32_t n, V limit) {
  const V v = LoadOrLowest<V>(x, i, n);
  const uint32_t hits = kOrEqual ? ~GreaterMask(limit, v) : GreaterMask(v, limit);
  return hits & (n - i < kLanes ? (1u << (n - i)) - 1 : 0xffffu);
}

template <class V>
int32_t FindAtLeast(const float* x, int32_t n, float floor, const float* group_max, int32_t* ids) {
  const V limit = V::Set(floor);
  int32_t count = 0;
  for (int32_t group = 0; group < n; group += kRowGroup) {
    if (group_max != nullptr && group_max[group / kRowGroup] < floor) continue;
    const int32_t end = n - group < kRowGroup ? n : group + kRowGroup;
    for (int32_t i = group; i < end; i += kLanes) {
      uint32_t hits = Above<V, true>(x, i, end, limit);
      for (; hits != 0; hits &= hits - 1) ids[count++] = i + __builtin_ctz(hits);
    }
  }
  return count;
}

template <class V, bool kOrEqual>
inline int32_t CountAbove(const float* x, int32_t n, float value) {
  const V limit = V::Set(value);
  int32_t count = 0;
  for (int32_t i = 0; i < n; i += kLanes) {
    count += __builtin_popcount(Above<V, kOrEqual>(x, i, n, limit));
  }
  return count;
}

template <class V>
int32_t RankOf(const float* x, int32_t n, int32_t index) {
  return CountAbove<V, true>(x, index, x[index]) +
         CountAbove<V, false>(x + index, n - index, x[index]);
}

}  // namespace skein
