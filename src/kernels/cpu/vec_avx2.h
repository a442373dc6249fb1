#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace skein::avx2 {

// 16 f32 lanes in two registers, with the contract of scalar::Vec, bit for bit.
struct Vec {
  static constexpr int kTileRows = 6;
  static constexpr int kTilePanels = 1;
  static constexpr int kStreamPanels = 4;
  static constexpr int kStreamRows = 2;
  static constexpr int kStreamAhead = 384;
  static constexpr int kBlockRows = 5;
  static constexpr int kDirectByteRows = 1;
  static constexpr int kDirectRows = 1;
  static constexpr int kBlockStreams = 4;

  struct Doubles;

  __m256 lo, hi;

  static Vec Set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static Vec Load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static Vec LoadFirst(const float* p, int n) {
    if (n >= 16) return Load(p);
    return {_mm256_maskload_ps(p, First(n)), _mm256_maskload_ps(p + 8, First(n - 8))};
  }
  void Store(float* p) const {
    _mm256_storeu_ps(p, lo);
    _mm256_storeu_ps(p + 8, hi);
  }
  void StoreFirst(float* p, int n) const {
    // Some processors take twelve times as long for a store with a mask.
    if (n >= 16) return Store(p);
    _mm256_maskstore_ps(p, First(n), lo);
    _mm256_maskstore_ps(p + 8, First(n - 8), hi);
  }

  static Vec LoadBf16First(const uint16_t* p, int n) {
    if (n >= 16) return Widen(p);
    alignas(32) uint16_t padded[16] = {};
    for (int i = 0; i < n; ++i) padded[i] = p[i];
    return Widen(padded);
  }
  void StoreBf16First(uint16_t* p, int n) const {
    // The pack instruction works within 128-bit halves; the permutation restores the order of the
    // quarters.
    const __m256i packed = _mm256_permute4x64_epi64(
        _mm256_packus_epi32(_mm256_srli_epi32(Rounded(lo), 16), _mm256_srli_epi32(Rounded(hi), 16)),
        0xd8);
    if (n >= 16) return _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), packed);
    alignas(32) uint16_t all[16];
    _mm256_store_si256(reinterpret_cast<__m256i*>(all), packed);
    for (int i = 0; i < n; ++i) p[i] = all[i];
  }
  static Vec LoadEven(const std::byte* p) {
    return FromBits(_mm256_slli_epi32(LoadBits(p), 16), _mm256_slli_epi32(LoadBits(p + 32), 16));
  }
  // Reads memory anew, so that LoadEven's registers are free for the sums of a tile of 6 rows.
  static Vec LoadOdd(const std::byte* p) {
    asm("" : "+r"(p));
    const __m256i upper = _mm256_set1_epi32(int(0xffff0000u));
    return FromBits(_mm256_and_si256(LoadBits(p), upper),
                    _mm256_and_si256(LoadBits(p + 32), upper));
  }
  static Vec LoadHalves(const std::byte* p) {
    const auto* halves = reinterpret_cast<const __m128i*>(p);
    return {_mm256_cvtph_ps(_mm_loadu_si128(halves)), _mm256_cvtph_ps(_mm_loadu_si128(halves + 1))};
  }
  static Vec LoadBytes(const std::byte* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
            _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)))};
  }
  static Vec LoadSignedBytes(const std::byte* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
  }
  static void Prefetch(const std::byte* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
  }

  float Sum() const {
    const __m256 eight = _mm256_add_ps(lo, hi);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  float Largest() const {
    const __m256 least = _mm256_set1_ps(-__builtin_inff());
    // A NaN becomes the second operand.
    const __m256 eight = _mm256_max_ps(_mm256_max_ps(lo, least), _mm256_max_ps(hi, least));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
  Vec RoundToBf16() const {
    const __m256i upper = _mm256_set1_epi32(int(0xffff0000u));
    return FromBits(_mm256_and_si256(Rounded(lo), upper), _mm256_and_si256(Rounded(hi), upper));
  }

  static Vec LoadInts(const void* p) {
    const auto* ints = static_cast<const std::byte*>(p);
    return {_mm256_cvtepi32_ps(LoadBits(ints)), _mm256_cvtepi32_ps(LoadBits(ints + 32))};
  }
  void StoreInt8First(int8_t* p, int n) const {
    // The pack instruction works within 128-bit halves; the permutation restores the order of the
    // quarters.
    const __m256i words = _mm256_permute4x64_epi64(
        _mm256_packs_epi32(_mm256_cvtps_epi32(lo), _mm256_cvtps_epi32(hi)), 0xd8);
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    if (n >= 16) return _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
    alignas(16) int8_t all[16];
    _mm_store_si128(reinterpret_cast<__m128i*>(all), bytes);
    for (int i = 0; i < n; ++i) p[i] = all[i];
  }
  static int32_t SumOfBytes(const int8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i unsigned_bytes = _mm_xor_si128(bytes, _mm_set1_epi8(-128));
    const __m128i halves = _mm_sad_epu8(unsigned_bytes, _mm_setzero_si128());
    return _mm_cvtsi128_si32(halves) + _mm_extract_epi32(halves, 2) - 16 * 128;
  }
  uint32_t LargestMagnitude() const {
    const __m256i eight = _mm256_max_epi32(Bits(lo), Bits(hi));
    const __m128i four =
        _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
  }

  // Used only by the operators below.
  static __m256i First(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static __m256i LoadBits(const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
  }
  static __m256i Bits(__m256 x) { return _mm256_castps_si256(x); }
  static Vec FromBits(__m256i lo, __m256i hi) {
    return {_mm256_castsi256_ps(lo), _mm256_castsi256_ps(hi)};
  }
  static Vec Widen(const uint16_t* p) {
    const __m256i bits = LoadBits(p);
    return FromBits(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(bits)), 16),
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm256_extracti128_si256(bits, 1)), 16));
  }
  // The rounded bf16 is in the upper half of each lane; the lower half is undefined.
  static __m256i Rounded(__m256 x) {
    const __m256i bits = Bits(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    return _mm256_blendv_epi8(rounded, quiet, Bits(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
  }
};

struct Vec::Doubles {
  __m256d quarter[4];  // lanes 0 to 3, 4 to 7, ...

  static Doubles Zero() {
    const __m256d zero = _mm256_setzero_pd();
    return {{zero, zero, zero, zero}};
  }
  void Add(Vec x) {
    quarter[0] = _mm256_add_pd(quarter[0], _mm256_cvtps_pd(_mm256_castps256_ps128(x.lo)));
    quarter[1] = _mm256_add_pd(quarter[1], _mm256_cvtps_pd(_mm256_extractf128_ps(x.lo, 1)));
    quarter[2] = _mm256_add_pd(quarter[2], _mm256_cvtps_pd(_mm256_castps256_ps128(x.hi)));
    quarter[3] = _mm256_add_pd(quarter[3], _mm256_cvtps_pd(_mm256_extractf128_ps(x.hi, 1)));
  }
  double Sum() const {
    const __m256d four =
        _mm256_add_pd(_mm256_add_pd(quarter[0], quarter[2]), _mm256_add_pd(quarter[1], quarter[3]));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
};

// These operators are not friends inside the class: g++ 12 would compile friends for the baseline,
// despite the pragma.
inline Vec operator+(Vec a, Vec b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
inline Vec operator-(Vec a, Vec b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
inline Vec operator*(Vec a, Vec b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
inline Vec operator/(Vec a, Vec b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
// Written as assembly to keep the sum in its register. With the intrinsic, g++ 12 moves the sums of
// a register tile between registers and the stack, which costs a sixth of a product's speed.
inline Vec Fma(Vec a, Vec b, Vec c) {
  asm("vfmadd231ps %2, %1, %0" : "+x"(c.lo) : "x"(a.lo), "x"(b.lo));
  asm("vfmadd231ps %2, %1, %0" : "+x"(c.hi) : "x"(a.hi), "x"(b.hi));
  return c;
}
inline Vec IfGreater(Vec a, Vec b, Vec x, Vec y) {
  return {_mm256_blendv_ps(y.lo, x.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_GT_OQ)),
          _mm256_blendv_ps(y.hi, x.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_GT_OQ))};
}
inline uint32_t GreaterMask(Vec a, Vec b) {
  const auto lo = static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a.lo, b.lo, _CMP_GT_OQ)));
  const auto hi = static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a.hi, b.hi, _CMP_GT_OQ)));
  return lo | hi << 8;
}
inline Vec MaxMagnitude(Vec a, Vec b) {
  const __m256i all = _mm256_set1_epi32(0x7fffffff);
  return Vec::FromBits(_mm256_max_epi32(Vec::Bits(a.lo), _mm256_and_si256(Vec::Bits(b.lo), all)),
                       _mm256_max_epi32(Vec::Bits(a.hi), _mm256_and_si256(Vec::Bits(b.hi), all)));
}
inline Vec AddExponent(Vec p, Vec n) {
  return Vec::FromBits(_mm256_add_epi32(Vec::Bits(p.lo), _mm256_slli_epi32(Vec::Bits(n.lo), 23)),
                       _mm256_add_epi32(Vec::Bits(p.hi), _mm256_slli_epi32(Vec::Bits(n.hi), 23)));
}

// 16 sums of int8 products, with the contract of scalar::Sums.
struct Sums {
  static constexpr int kRows = 5;
  static constexpr bool kStartsFromOffsets = false;
  __m256i lo, hi;

  struct Quads {
    __m256i lo, hi, lo_magnitude, hi_magnitude;
  };
  static Quads LoadQuads(const std::byte* p) {
    const __m256i lo = Vec::LoadBits(p), hi = Vec::LoadBits(p + 32);
    return {lo, hi, _mm256_abs_epi8(lo), _mm256_abs_epi8(hi)};
  }
  using Row = __m256i;
  static Row Broadcast(int32_t quad) { return _mm256_set1_epi32(quad); }
  static Sums Load(const int32_t* p) { return {Vec::LoadBits(p), Vec::LoadBits(p + 8)}; }
  void Store(int32_t* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), lo);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), hi);
  }
};

// The sum of two products of magnitudes up to 127 fits 16 bits, so that nothing saturates. Assembly
// for the reason that Fma has: it is faster by an eighth.
inline __m256i Dot8(__m256i sums, __m256i a, __m256i w, __m256i magnitude, __m256i ones) {
  __m256i pairs;
  asm("vpsignb %3, %2, %1\n\tvpmaddubsw %1, %4, %1\n\tvpmaddwd %5, %1, %1\n\tvpaddd %1, %0, %0"
      : "+x"(sums), "=&x"(pairs)
      : "x"(a), "x"(w), "x"(magnitude), "x"(ones));
  return sums;
}
inline Sums Dot(Sums sums, __m256i a, const Sums::Quads& w) {
  const __m256i ones = _mm256_set1_epi16(1);
  return {Dot8(sums.lo, a, w.lo, w.lo_magnitude, ones),
          Dot8(sums.hi, a, w.hi, w.hi_magnitude, ones)};
}

// The operations on quads of blocks, with the contract of scalar::Blocks.
struct Blocks {
  static constexpr int32_t kSignedZero = 0;
  static constexpr bool kSharesQuads = true;

  struct Quads {
    __m256i lo, hi;
  };
  static Quads Load(const std::byte* p) { return {Vec::LoadBits(p), Vec::LoadBits(p + 32)}; }
  static void Store(Quads quads, std::byte* p) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), quads.lo);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 32), quads.hi);
  }
  static Quads And(Quads quads, int8_t mask) {
    const __m256i all = _mm256_set1_epi8(mask);
    return {_mm256_and_si256(quads.lo, all), _mm256_and_si256(quads.hi, all)};
  }
  static Quads LowHalves(Quads quads) { return And(quads, 15); }
  static Quads HighHalves(Quads quads) { return UpperBits<-4, 15>(quads); }
  template <int kShift, int kMask>
  static Quads UpperBits(Quads quads) {
    if constexpr (kShift >= 0) {
      return And({_mm256_slli_epi16(quads.lo, kShift), _mm256_slli_epi16(quads.hi, kShift)}, kMask);
    } else {
      return And({_mm256_srli_epi16(quads.lo, -kShift), _mm256_srli_epi16(quads.hi, -kShift)},
                 kMask);
    }
  }
  static Quads Or(Quads a, Quads b) {
    return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
  }
  template <Codebook kCodebook, int kOffset>
  static Quads LookUp(Quads quads) {
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kCodebook));
    const __m256i table =
        _mm256_broadcastsi128_si256(_mm_add_epi8(codes, _mm_set1_epi8(int8_t(kOffset))));
    return {_mm256_shuffle_epi8(table, quads.lo), _mm256_shuffle_epi8(table, quads.hi)};
  }
  static Quads FromOffset(Quads quads) {
    const __m256i offset = _mm256_set1_epi8(int8_t(-128));
    return {_mm256_xor_si256(quads.lo, offset), _mm256_xor_si256(quads.hi, offset)};
  }
  // Sums of two products are 16 bits wide. As many quads as fit into 16 bits are added before the
  // sums are widened.
  template <int kBits>
  static constexpr int kFitting = kBits == 4   ? 8
                                  : kBits == 5 ? 4
                                  : kBits == 6 ? 2
                                               : 1;

  template <int kBits, int kCount>
  static Vec Dot(const Quads* w, const int8_t* q, int32_t start) {
    constexpr int kGroup = kFitting<kBits> < kCount ? kFitting<kBits> : kCount;
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i lo = _mm256_set1_epi32(start), hi = lo;
#pragma GCC unroll 8
    for (int first = 0; first < kCount; first += kGroup) {
      __m256i lo_pairs = _mm256_setzero_si256(), hi_pairs = lo_pairs;
#pragma GCC unroll 8
      for (int i = first; i < first + kGroup; ++i) {
        const __m256i row = Row(q + 4 * i);
        lo_pairs = _mm256_add_epi16(lo_pairs, Pairs<kBits>(w[i].lo, row));
        hi_pairs = _mm256_add_epi16(hi_pairs, Pairs<kBits>(w[i].hi, row));
      }
      lo = _mm256_add_epi32(lo, _mm256_madd_epi16(lo_pairs, ones));
      hi = _mm256_add_epi32(hi, _mm256_madd_epi16(hi_pairs, ones));
    }
    return {_mm256_cvtepi32_ps(lo), _mm256_cvtepi32_ps(hi)};
  }
  // Dot of R rows, q[r] at q + r * stride, with the quads at `w`. Subtracts kZero times
  // row_sums[r], which is the sum of the elements q[r]. Not inlined, it would keep its sums in
  // memory.
  template <int kBits, int kZero, int kCount, int R>
  static inline __attribute__((always_inline)) void Dots(const std::byte* w, const int8_t* q,
                                                         int64_t stride,
                                                         const int32_t (&row_sums)[R],
                                                         Vec (&sums)[R]) {
    constexpr int kGroup = kFitting<kBits> < kCount ? kFitting<kBits> : kCount;
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i lo[R], hi[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) lo[r] = hi[r] = _mm256_setzero_si256();
    if constexpr (kGroup == 1) {
#pragma GCC unroll 8
      for (int i = 0; i < kCount; ++i, w += 64) {
        const Sums::Quads quads = Sums::LoadQuads(w);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          const __m256i row = Row(q + r * stride + 4 * i);
          lo[r] = Dot8(lo[r], row, quads.lo, quads.lo_magnitude, ones);
          hi[r] = Dot8(hi[r], row, quads.hi, quads.hi_magnitude, ones);
        }
      }
    } else {
#pragma GCC unroll 8
      for (int first = 0; first < kCount; first += kGroup) {
        __m256i lo_pairs[R], hi_pairs[R];
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) lo_pairs[r] = hi_pairs[r] = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int i = first; i < first + kGroup; ++i, w += 64) {
          const Quads quads = Load(w);
#pragma GCC unroll 8
          for (int r = 0; r < R; ++r) {
            const __m256i row = Row(q + r * stride + 4 * i);
            lo_pairs[r] = AddPairs(lo_pairs[r], quads.lo, row);
            hi_pairs[r] = AddPairs(hi_pairs[r], quads.hi, row);
          }
        }
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          lo[r] = _mm256_add_epi32(lo[r], _mm256_madd_epi16(lo_pairs[r], ones));
          hi[r] = _mm256_add_epi32(hi[r], _mm256_madd_epi16(hi_pairs[r], ones));
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      if constexpr (kZero != 0) {
        constexpr int kShift = __builtin_ctz(kZero);
        static_assert(kZero == 1 << kShift);
        const __m256i zeros = _mm256_slli_epi32(_mm256_set1_epi32(row_sums[r]), kShift);
        lo[r] = _mm256_sub_epi32(lo[r], zeros);
        hi[r] = _mm256_sub_epi32(hi[r], zeros);
      }
      sums[r] = {_mm256_cvtepi32_ps(lo[r]), _mm256_cvtepi32_ps(hi[r])};
    }
  }
  static __m256i Row(const int8_t* q) {
    int32_t quad;
    __builtin_memcpy(&quad, q, sizeof(quad));
    return Sums::Broadcast(quad);
  }
  // Assembly for the reason that Fma has.
  static __m256i AddPairs(__m256i sums, __m256i w, __m256i row) {
    __m256i pairs;
    asm("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0" : "+x"(sums), "=&x"(pairs) : "x"(w), "x"(row));
    return sums;
  }
  // The instruction multiplies unsigned by signed bytes. For signed weights, their sign is moved to
  // the row's bytes.
  template <int kBits>
  static __m256i Pairs(__m256i w, __m256i row) {
    if constexpr (kBits < 8) return _mm256_maddubs_epi16(w, row);
    return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(row, w));
  }
};

}  // namespace skein::avx2
