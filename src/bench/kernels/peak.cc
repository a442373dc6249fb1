#include "bench/kernels/peak.h"

#include <immintrin.h>

#include "kernels/cpu/amx_tile.h"
#include "kernels/cpu/cpu_features.h"

namespace skein {

namespace {

// Returns the number of products of tiles.
template <bool kInt8>
double MultiplyTiles(const std::byte* operands, int64_t steps) {
  constexpr int64_t kTileBytes = 1024;
  constexpr int64_t kSetBytes = 4 * kTileBytes;
  amx::TileConfig config;
  for (int t = 0; t < 8; ++t) {
    config.rows[t] = 16;
    config.row_bytes[t] = 64;
  }
  amx::LoadTileConfig(config);
  for (int64_t i = 0; i < steps; ++i) {
    const std::byte* set = operands + i * kSetBytes % static_cast<int64_t>(kPeakOperandBytes);
    amx::LoadTileSpaced<4>(set, 64);
    amx::LoadTileSpaced<6>(set + kTileBytes, 64);
    amx::LoadTileSpaced<7>(set + 2 * kTileBytes, 64);
    amx::LoadTileSpaced<5>(set + 3 * kTileBytes, 64);
    amx::DotSpaced<kInt8, 0, 4, 6>();
    amx::DotSpaced<kInt8, 1, 4, 7>();
    amx::DotSpaced<kInt8, 2, 5, 6>();
    amx::DotSpaced<kInt8, 3, 5, 7>();
  }
  amx::ReleaseTiles();
  return static_cast<double>(steps) * 4;
}

__attribute__((target("avx512f"))) double RunAvx512Peak(const float* operands, int64_t steps,
                                                        float* result) {
  const __m512 factor = _mm512_loadu_ps(operands);
  __m512 sums[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) sums[i] = _mm512_loadu_ps(operands + 16 * i);
  const __m512 term = sums[1];
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) sums[i] = _mm512_fmadd_ps(sums[i], factor, term);
  }
#pragma GCC unroll 16
  for (int i = 1; i < 16; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  _mm512_storeu_ps(result, sums[0]);
  return static_cast<double>(steps) * 16 * 2 * 16;
}

__attribute__((target("avx512f,avx512vnni"))) double RunVnniPeak(const std::byte* operands,
                                                                 int64_t steps, int32_t* result) {
  constexpr int kSums = 24;
  const __m512i x = _mm512_loadu_si512(operands);
  const __m512i even = _mm512_loadu_si512(operands + 64);
  const __m512i odd = _mm512_loadu_si512(operands + 128);
  __m512i sums[kSums];
  // The sums differ, so that the compiler does not merge them.
#pragma GCC unroll 24
  for (int i = 0; i < kSums; ++i) sums[i] = _mm512_loadu_si512(operands + 64 * (i + 3));
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 24
    for (int i = 0; i < kSums; ++i) {
      sums[i] = _mm512_dpbusd_epi32(sums[i], x, i % 2 == 0 ? even : odd);
    }
  }
#pragma GCC unroll 24
  for (int i = 1; i < kSums; ++i) sums[0] = _mm512_add_epi32(sums[0], sums[i]);
  _mm512_storeu_si512(result, sums[0]);
  return static_cast<double>(steps) * kSums * 2 * 64;
}

__attribute__((target("avx2"))) double RunAvxVnniPeak(const std::byte* operands, int64_t steps,
                                                      int32_t* result) {
  constexpr int kSums = 12;
  const auto load = [operands](int i) __attribute__((target("avx2"))) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(operands + 32 * i));
  };
  const __m256i x = load(0), even = load(1), odd = load(2);
  __m256i sums[kSums];
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sums[i] = load(i + 3);
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) {
      asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums[i]) : "x"(x), "x"(i % 2 == 0 ? even : odd));
    }
  }
#pragma GCC unroll 12
  for (int i = 1; i < kSums; ++i) sums[0] = _mm256_add_epi32(sums[0], sums[i]);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(result), sums[0]);
  return static_cast<double>(steps) * kSums * 2 * 32;
}

// The instructions of Winograd's inner product (kernels/cpu/gemm_int8_winograd_body.h).
__attribute__((target("avx2"))) double RunAvx2Int8Peak(const std::byte* operands, int64_t steps,
                                                       int32_t* result) {
  constexpr int kSums = 10;
  const auto load = [operands](int i) __attribute__((target("avx2"))) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(operands + 32 * i));
  };
  const __m256i w = load(0), even = load(1), odd = load(2);
  __m256i sums[kSums];
#pragma GCC unroll 16
  for (int i = 0; i < kSums; ++i) sums[i] = load(i + 3);
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 16
    for (int i = 0; i < kSums; ++i) {
      // Assembly, since g++ 12 would move the sums of intrinsics between registers and the stack,
      // which takes a third of the rate. It is volatile, so that nothing leaves the loop.
      __m256i a, b;
      asm volatile(
          "vpaddw %4, %3, %1\n\tvpaddw %5, %3, %2\n\tvpmaddwd %1, %2, %1\n\tvpaddd %1, %0, %0"
          : "+x"(sums[i]), "=&x"(a), "=&x"(b)
          : "x"(w), "x"(even), "x"(odd));
    }
  }
#pragma GCC unroll 16
  for (int i = 1; i < kSums; ++i) sums[0] = _mm256_add_epi32(sums[0], sums[i]);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(result), sums[0]);
  return static_cast<double>(steps) * kSums * 2 * 32;
}

__attribute__((target("avx2,fma"))) double RunAvx2Peak(const float* operands, int64_t steps,
                                                       float* result) {
  constexpr int kSums = 12;
  const __m256 factor = _mm256_loadu_ps(operands);
  __m256 sums[kSums];
#pragma GCC unroll 16
  for (int i = 0; i < kSums; ++i) sums[i] = _mm256_loadu_ps(operands + 8 * i);
  const __m256 term = sums[1];
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 16
    for (int i = 0; i < kSums; ++i) sums[i] = _mm256_fmadd_ps(sums[i], factor, term);
  }
#pragma GCC unroll 16
  for (int i = 1; i < kSums; ++i) sums[0] = _mm256_add_ps(sums[0], sums[i]);
  _mm256_storeu_ps(result, sums[0]);
  return static_cast<double>(steps) * kSums * 2 * 8;
}

}  // namespace

double RunAmxPeak(const std::byte* operands, int64_t steps) {
  return MultiplyTiles<false>(operands, steps) * 2 * 16 * 16 * 32;
}

double RunAmxInt8Peak(const std::byte* operands, int64_t steps) {
  return MultiplyTiles<true>(operands, steps) * 2 * 16 * 16 * 64;
}

__attribute__((target("avx512f,avx512bf16"))) double RunAvx512Bf16Peak(const std::byte* operands,
                                                                       int64_t steps,
                                                                       float* result) {
  constexpr int kSums = 24;
  const auto x = (__m512bh)_mm512_loadu_si512(operands);
  const auto even = (__m512bh)_mm512_loadu_si512(operands + 64);
  const auto odd = (__m512bh)_mm512_loadu_si512(operands + 128);
  __m512 sums[kSums];
  // The sums differ, so that the compiler does not merge them.
#pragma GCC unroll 24
  for (int i = 0; i < kSums; ++i) sums[i] = _mm512_loadu_ps(operands + 64 * (i + 3));
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 24
    for (int i = 0; i < kSums; ++i) sums[i] = _mm512_dpbf16_ps(sums[i], x, i % 2 == 0 ? even : odd);
  }
#pragma GCC unroll 24
  for (int i = 1; i < kSums; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  _mm512_storeu_ps(result, sums[0]);
  return static_cast<double>(steps) * kSums * 2 * 32;
}

// Whether the set's vectors are AVX2's although the machine may have wider ones.
bool HasVectorsOfAvx2(Isa isa) { return isa == Isa::kAvxVnni || isa == Isa::kAvx2; }

double RunInt8Peak(Isa isa, const std::byte* operands, int64_t steps, int32_t* result) {
  const bool wide = !HasVectorsOfAvx2(isa) && CpuHas(Isa::kAvx512) && CpuHasVnni();
  if (wide) return RunVnniPeak(operands, steps, result);
  if (isa != Isa::kAvx2 && CpuHas(Isa::kAvxVnni)) return RunAvxVnniPeak(operands, steps, result);
  return RunAvx2Int8Peak(operands, steps, result);
}

double RunFmaPeak(Isa isa, const float* operands, int64_t steps, float* result) {
  const bool wide = !HasVectorsOfAvx2(isa) && CpuHas(Isa::kAvx512);
  return wide ? RunAvx512Peak(operands, steps, result) : RunAvx2Peak(operands, steps, result);
}

uint64_t ReadAll(const std::byte* data, size_t bytes) {
  constexpr size_t kAheadBytes = 4096;
  __m128i sums[4] = {};
  for (size_t i = 0; i < bytes; i += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(data + i + kAheadBytes), _MM_HINT_T0);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const auto* line = reinterpret_cast<const __m128i*>(data + i) + j;
      sums[j] = _mm_add_epi64(sums[j], _mm_loadu_si128(line));
    }
  }
  const __m128i sum =
      _mm_add_epi64(_mm_add_epi64(sums[0], sums[1]), _mm_add_epi64(sums[2], sums[3]));
  return static_cast<uint64_t>(_mm_cvtsi128_si64(sum)) +
         static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(sum, sum)));
}

}  // namespace skein
