// Products and attention of int8 with AVX-512's instruction for int8 (VNNI). avx512.cc explains the
// order of includes.

// g++ 12 warns of deliberately undefined inputs inside its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include "kernels/cpu/ops.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma")

#include "kernels/cpu/quads_avx512.h"
#include "kernels/cpu/vec_avx512.h"
// These bodies must come after the vector type that they use.
#include "kernels/cpu/attention/attention_int8_body.h"
#include "kernels/cpu/gemm_blocks_body.h"
#include "kernels/cpu/gemm_dot_body.h"

namespace skein {
namespace {

// vpdpbusd multiplies unsigned by signed bytes. Therefore 128 is added to the row's bytes, and the
// sums start from -128 times the sum of the column. Intermediate overflow wraps around and cancels.
struct Int8Product : DotOperands {
  // Rows are copied once for these panels. With 8, the copy took an eighth of the products' time.
  static constexpr int32_t kPanels = 16;
  static constexpr int32_t kChunkRows = 42;
  static constexpr int32_t kTermBytes = 1;
  static constexpr int32_t kTileTermBytes = 1;
  static constexpr int32_t kGroupTerms = 4;
  static constexpr bool kTakesRows = false;

  using Sums = __m512i;
  static Sums Zero() { return _mm512_setzero_si512(); }
  static Sums Load(const float* p) { return _mm512_loadu_si512(p); }
  static void Store(Sums sums, float* p) { _mm512_storeu_si512(p, sums); }
  static Sums Add(Sums sums, Row row, Columns columns) {
    return _mm512_dpbusd_epi32(sums, row, columns);
  }
  static void CopyRow(const std::byte* from, std::byte* to) {
    const __m512i bytes = _mm512_loadu_si512(from);
    _mm512_storeu_si512(to, _mm512_xor_si512(bytes, _mm512_set1_epi8(-128)));
  }
  static Sums Start(const PackedWeight& w, int32_t panel) {
    return _mm512_loadu_si512(w.offsets() + kPanelCols * panel);
  }
  static __m512 Finish(const GemmCall& call, int32_t row, int32_t column, Sums sums) {
    return Scaled<avx512::Vec>(call, {_mm512_cvtepi32_ps(sums)}, row, column).v;
  }
};

// The operations on quads of blocks, with the contract of scalar::Blocks. The weights are the
// unsigned operand, so 128 is added to signed weights.
struct Blocks : avx512::Quads512 {
  static constexpr int32_t kSignedZero = 128;
  static constexpr bool kSharesQuads = true;

  static Quads FromOffset(Quads quads) { return quads; }

  template <int kBits, int kCount>
  static avx512::Vec Dot(const Quads* w, const int8_t* q, int32_t start) {
    // Two sums, since one would wait for its own latency.
    __m512i sums[2] = {_mm512_set1_epi32(start), _mm512_setzero_si512()};
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) sums[i % 2] = AddProducts(sums[i % 2], w[i], q + 4 * i);
    return {_mm512_cvtepi32_ps(_mm512_add_epi32(sums[0], sums[1]))};
  }

  // The rows' sums side by side hide the latency.
  template <int kBits, int kZero, int kCount, int R>
  static inline __attribute__((always_inline)) void Dots(const std::byte* w, const int8_t* q,
                                                         int64_t stride,
                                                         const int32_t (&row_sums)[R],
                                                         avx512::Vec (&sums)[R]) {
    __m512i dots[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) dots[r] = Multiple<-kZero>(row_sums[r]);
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) {
      const Quads quads = Load(w + kQuadBytes * i);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) dots[r] = AddProducts(dots[r], quads, q + r * stride + 4 * i);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r] = {_mm512_cvtepi32_ps(dots[r])};
  }

 private:
  // Adds the products of 4 elements of a row to the sums. The instruction reads and spreads the
  // elements itself; g++ 12 would do that with an instruction of its own, which costs Intel's
  // Golden Cove a third of its products.
  static __m512i AddProducts(__m512i sums, Quads w, const int8_t* q) {
    asm("vpdpbusd %2%{1to16%}, %1, %0"
        : "+v"(sums)
        : "v"(w), "m"(*reinterpret_cast<const int8_t(*)[4]>(q)));
    return sums;
  }

  // kFactor times the sum of a row's block, which has 16 bits, in every lane. A number that is
  // multiplied outside of vectors costs more on its way into one.
  template <int kFactor>
  static __m512i Multiple(int32_t row_sum) {
    if constexpr (kFactor == 0) return _mm512_setzero_si512();
    const __m512i factor = _mm512_set1_epi32(uint16_t(kFactor));
    return _mm512_dpwssd_epi32(_mm512_setzero_si512(), factor, _mm512_set1_epi32(row_sum));
  }
};

}  // namespace

void Avx512VnniGemm(const GemmCall& call) { GemmDots<Int8Product>(call); }
void Avx512VnniGemmBlocks(const GemmCall& call) { GemmBlocks<avx512::Vec, Blocks>(call); }
void Avx512VnniAttention(const AttentionArgs& args) {
  Attention<avx512::Vec, Int8Products<avx512::Vec, Blocks>>(args);
}

}  // namespace skein
