// See kernels/cpu/avx512.cc for the order of includes and for the pragmas.

#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include "ablation_avx512.h"

#include <immintrin.h>

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")

namespace skein::ablation {
namespace {

constexpr int32_t kLineBytes = 64;  // 16 columns, two of k
constexpr int32_t kBlockKeys = 32;
constexpr int32_t kPanels = kHeadDim / 16;                           // of V
constexpr int64_t kGroupBytes = int64_t{kGroupKeys} * kHeadDim * 2;  // of K
constexpr int64_t kPanelBytes = int64_t{kBlockKeys} * 16 * 2;        // of V
constexpr int64_t kKeyBytes = int64_t{kBlockKeys} * kHeadDim * 2;    // of K of a block
static_assert(kGroup == 2, "the walk keeps two rows in registers");

__m512bh Line(const std::byte* at) {
  return (__m512bh)_mm512_load_si512(reinterpret_cast<const __m512i*>(at));
}
// The pair number i of `values` in every lane.
__m512bh Pair(const uint16_t* values, int32_t i) {
  int32_t pair;
  __builtin_memcpy(&pair, values + 2 * i, sizeof(pair));
  return (__m512bh)_mm512_set1_epi32(pair);
}

// 2^x for x <= 0, with a relative error of 1e-4, as the engine's.
__m512 PowerOfTwo(__m512 x) {
  const __m512 clamped = _mm512_max_ps(x, _mm512_set1_ps(-127.0f));
  const __m512 n = _mm512_roundscale_ps(clamped, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 r = _mm512_sub_ps(clamped, n);
  __m512 y = _mm512_set1_ps(0x1.c2a218p-5f);
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(0x1.f00c4ep-3f));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(0x1.62f5fap-1f));
  return _mm512_scalef_ps(_mm512_fmadd_ps(y, r, _mm512_set1_ps(1.0f)), n);
}

float PowerOfTwo(float x) { return _mm512_cvtss_f32(PowerOfTwo(_mm512_set1_ps(x))); }

// The weights of a group of keys for one row, against the row's maximum, which moves.
struct Weighed {
  __m512i pairs;  // bf16, two keys in each of the first 8 lanes
  float factor;   // of what is there already
};

Weighed Weigh(__m512 scores, float scale2, __mmask16 visible, float* max, float* sum) {
  const __m512 scaled = _mm512_mul_ps(scores, _mm512_set1_ps(scale2));
  const float largest = _mm512_mask_reduce_max_ps(visible, scaled);
  const float old_max = *max;
  if (largest > old_max) *max = largest;
  const __m512 weights =
      _mm512_maskz_mov_ps(visible, PowerOfTwo(_mm512_sub_ps(scaled, _mm512_set1_ps(*max))));
  const float factor = PowerOfTwo(old_max - *max);
  *sum = *sum * factor + _mm512_reduce_add_ps(weights);
  const __m256i rounded = (__m256i)_mm512_cvtneps_pbh(weights);
  return {_mm512_castsi256_si512(rounded), factor};
}

}  // namespace

void OneRowProduct(const uint16_t* a, const std::byte* panels, int32_t num_panels, int32_t k_padded,
                   float* out) {
  const int32_t num_pairs = k_padded / 2;  // a multiple of 16
  for (int32_t panel = 0; panel < num_panels; ++panel) {
    __m512 sums[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                      _mm512_setzero_ps()};
    for (int32_t i = 0; i < num_pairs; i += 4, panels += 4 * kLineBytes) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        sums[j] = _mm512_dpbf16_ps(sums[j], Pair(a, i + j), Line(panels + j * kLineBytes));
      }
    }
    _mm512_storeu_ps(out + 16 * panel, _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]),
                                                     _mm512_add_ps(sums[2], sums[3])));
  }
}

void Walk(const Walked& walked, int32_t first, int32_t last, WalkState* state) {
  float max[kGroup] = {-__builtin_inff(), -__builtin_inff()}, sum[kGroup] = {0, 0};
  __m512 acc[kGroup][kPanels];
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) acc[0][p] = acc[1][p] = _mm512_setzero_ps();
  for (int32_t group = first; group < last && group * kGroupKeys < walked.num_keys; ++group) {
    const int32_t key = group * kGroupKeys;
    const std::byte* block =
        walked.kv + walked.block_table[key / kBlockKeys] * int64_t(walked.block_stride);
    const std::byte* k = block + key % kBlockKeys / kGroupKeys * kGroupBytes;
    // Two chains for each row, so that four products are in flight.
    __m512 scores[kGroup][2] = {{_mm512_setzero_ps(), _mm512_setzero_ps()},
                                {_mm512_setzero_ps(), _mm512_setzero_ps()}};
    for (int32_t i = 0; i < kHeadDim / 2; i += 2) {
#pragma GCC unroll 2
      for (int j = 0; j < 2; ++j) {
        const __m512bh line = Line(k + (i + j) * kLineBytes);
        scores[0][j] = _mm512_dpbf16_ps(scores[0][j], Pair(walked.q, i + j), line);
        scores[1][j] = _mm512_dpbf16_ps(scores[1][j], Pair(walked.q + kHeadDim, i + j), line);
      }
    }
    const int32_t left = walked.num_keys - key;
    const auto visible = static_cast<__mmask16>(left >= 16 ? 0xffff : (1 << left) - 1);
    alignas(64) uint16_t pairs[kGroup][32];
#pragma GCC unroll 2
    for (int r = 0; r < kGroup; ++r) {
      const Weighed weighed = Weigh(_mm512_add_ps(scores[r][0], scores[r][1]), walked.scale2,
                                    visible, &max[r], &sum[r]);
      _mm512_store_si512(pairs[r], weighed.pairs);
      if (weighed.factor == 1.0f) continue;
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) {
        acc[r][p] = _mm512_mul_ps(acc[r][p], _mm512_set1_ps(weighed.factor));
      }
    }
    const std::byte* v = block + kKeyBytes + key % kBlockKeys / 2 * kLineBytes;
    for (int32_t i = 0; i < kGroupKeys / 2; ++i, v += kLineBytes) {
      const __m512bh p0 = Pair(pairs[0], i), p1 = Pair(pairs[1], i);
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) {
        const __m512bh line = Line(v + p * kPanelBytes);
        acc[0][p] = _mm512_dpbf16_ps(acc[0][p], p0, line);
        acc[1][p] = _mm512_dpbf16_ps(acc[1][p], p1, line);
      }
    }
  }
  for (int r = 0; r < kGroup; ++r) {
    state->max[r] = max[r];
    state->sum[r] = sum[r];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) _mm512_store_ps(state->acc[r] + 16 * p, acc[r][p]);
  }
}

void Merge(const WalkState& part, WalkState* total) {
  for (int r = 0; r < kGroup; ++r) {
    const float max = part.max[r] > total->max[r] ? part.max[r] : total->max[r];
    const float f = PowerOfTwo(total->max[r] - max), g = PowerOfTwo(part.max[r] - max);
    total->max[r] = max;
    total->sum[r] = total->sum[r] * f + part.sum[r] * g;
    for (int d = 0; d < kHeadDim; d += 16) {
      float* to = total->acc[r] + d;
      const __m512 scaled = _mm512_mul_ps(_mm512_load_ps(part.acc[r] + d), _mm512_set1_ps(g));
      _mm512_store_ps(to, _mm512_fmadd_ps(_mm512_load_ps(to), _mm512_set1_ps(f), scaled));
    }
  }
}

void Finish(const WalkState& state, uint16_t* out) {
  for (int r = 0; r < kGroup; ++r) {
    const __m512 inverse = _mm512_set1_ps(1.0f / state.sum[r]);
    for (int d = 0; d < kHeadDim; d += 16) {
      const __m512 value = _mm512_mul_ps(_mm512_load_ps(state.acc[r] + d), inverse);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + r * kHeadDim + d),
                          (__m256i)_mm512_cvtneps_pbh(value));
    }
  }
}

}  // namespace skein::ablation
