#include "base/blocks/quantize_q4.h"

#include <cmath>
#include <cstring>

#include "base/blocks/block_format.h"
#include "base/check.h"
#include "base/dtype.h"

namespace skein {
namespace {

constexpr int32_t kCandidates = 9;

// Lane b of a vector belongs to block b.
template <int32_t kLanes>
struct Lanes {
  typedef float Floats [[gnu::vector_size(4 * kLanes)]];
  typedef int32_t Ints [[gnu::vector_size(4 * kLanes)]];
};

// The nearest steps, ties to even: the sum has no room for fraction bits. They reach from -8 to 7.
template <typename Floats>
[[gnu::always_inline]] inline void GetSteps(const Floats& x, const Floats& inverse, Floats* steps) {
  constexpr float kMagic = 0x1.8p23f;
  const Floats least = Floats{} - 8.0f, most = Floats{} + 7.0f, scaled = x * inverse;
  const Floats bounded = scaled < least ? least : scaled;
  *steps = ((bounded > most ? most : bounded) + kMagic) - kMagic;
}

// Whether every candidate for a scale is a normal number of F16: from 2^-14 to 65504.
bool HasNormalScales(float extreme) {
  const float magnitude = std::abs(extreme);
  return magnitude > 10 * 0x1p-14f && magnitude < 0x1p18f;
}

// Rounds to the nearest numbers of F16, ties to even. `normal`: all of them are normal numbers.
template <typename Floats, typename Ints>
[[gnu::always_inline]] inline void RoundToHalf(bool normal, Floats* x) {
  if (normal) {
    Ints bits = (Ints)*x;
    bits += 0xfff + (bits >> 13 & 1);
    *x = (Floats)(bits & ~0x1fff);
    return;
  }
  for (size_t b = 0; b < sizeof(Floats) / sizeof(float); ++b) (*x)[b] = ToFloat(ToF16((*x)[b]));
}

template <int32_t kLanes>
[[gnu::always_inline]] inline void QuantizeLanes(const BlocksQ4& blocks) {
  using Floats = typename Lanes<kLanes>::Floats;
  using Ints = typename Lanes<kLanes>::Ints;
  constexpr int32_t kTogether = 3, kHalf = kBlockTerms / 2;
  Floats x[kBlockTerms];
  for (int32_t b = 0; b < kLanes; ++b) {
    const float* from = blocks.x[b < blocks.count ? b : 0];
    for (int32_t i = 0; i < kBlockTerms; ++i) x[i][b] = from[i];
  }
  Floats extreme = x[0];
  for (const Floats& e : x) {
    extreme = ((Ints)e & 0x7fffffff) > ((Ints)extreme & 0x7fffffff) ? e : extreme;
  }
  bool normal = true;
  for (int32_t b = 0; b < kLanes; ++b) normal = normal && HasNormalScales(extreme[b]);
  Floats scales[kCandidates], inverses[kCandidates], errors[kCandidates] = {};
  for (int32_t candidate = 0; candidate < kCandidates; ++candidate) {
    // The largest element gets the sign of the step -8.
    scales[candidate] = extreme / -(7.0f + 0.25f * static_cast<float>(candidate));
    RoundToHalf<Floats, Ints>(normal, &scales[candidate]);
    inverses[candidate] = scales[candidate] == 0.0f ? Floats{} : 1.0f / scales[candidate];
  }
  for (int32_t first = 0; first < kCandidates; first += kTogether) {
    for (const Floats& e : x) {
#pragma GCC unroll 3
      for (int32_t i = first; i < first + kTogether; ++i) {
        Floats steps;
        GetSteps(e, inverses[i], &steps);
        const Floats miss = e - scales[i] * steps;
        errors[i] += miss * miss;
      }
    }
  }
  Floats scale = scales[0], inverse = inverses[0], least_error = errors[0];
  for (int32_t candidate = 1; candidate < kCandidates; ++candidate) {
    const Ints better = errors[candidate] < least_error;
    scale = better ? scales[candidate] : scale;
    inverse = better ? inverses[candidate] : inverse;
    least_error = better ? errors[candidate] : least_error;
  }
  for (int32_t b = 0; b < blocks.count; ++b) {
    const F16 half = ToF16(scale[b]);
    std::memcpy(blocks.out[b], &half.bits, sizeof(half.bits));
  }
  for (int32_t i = 0; i < kHalf; ++i) {
    Floats low, high;
    GetSteps(x[i], inverse, &low);
    GetSteps(x[i + kHalf], inverse, &high);
    const auto both = __builtin_convertvector((low + 8.0f) + 16.0f * (high + 8.0f), Ints);
    for (int32_t b = 0; b < blocks.count; ++b) {
      blocks.out[b][2 + i] = static_cast<std::byte>(both[b]);
    }
  }
}

void QuantizeWith4(const BlocksQ4& blocks) { QuantizeLanes<4>(blocks); }
[[gnu::target("avx2")]] void QuantizeWith8(const BlocksQ4& blocks) { QuantizeLanes<8>(blocks); }
[[gnu::target("avx512f,avx512dq")]] void QuantizeWith16(const BlocksQ4& blocks) {
  QuantizeLanes<16>(blocks);
}

}  // namespace

int32_t LanesQ4() {
  static const int32_t lanes =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") ? 16
      : __builtin_cpu_supports("avx2")                                        ? 8
                                                                              : 4;
  return lanes;
}

void QuantizeQ4(const BlocksQ4& blocks, int32_t lanes) {
  SKEIN_CHECK(lanes <= LanesQ4() && blocks.count >= 1 && blocks.count <= lanes);
  return lanes == 16  ? QuantizeWith16(blocks)
         : lanes == 8 ? QuantizeWith8(blocks)
                      : QuantizeWith4(blocks);
}

}  // namespace skein
