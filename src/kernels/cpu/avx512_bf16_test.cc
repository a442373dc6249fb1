// Tests the arithmetic of vdpbf16ps: the definition by cases computed by hand, and the processor by
// the definition.

#include <gtest/gtest.h>
#include <immintrin.h>

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/dtype.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/reference.h"
#include "testing/random_values.h"

namespace skein {
namespace {

using testing::RandomValues;
using testing::Range;
using testing::SameBits;

// The product of a with one row of w, by the reference.
float Product(const std::vector<float>& a, const std::vector<float>& w) {
  float out = 0.0f;
  reference::Gemm(NumericClass::kBf16, {1, 1, static_cast<int32_t>(a.size())}, a.data(), w.data(),
                  nullptr, false, &out);
  return out;
}

TEST(Bf16ProductTest, AddsTheOddTermOfAPairFirstAndFlushesDenormals) {
  EXPECT_EQ(Product({0x1p30f, 1, -0x1p30f, 0}, {1, 1, 1, 1}), 0.0f);
  EXPECT_EQ(Product({1, 0x1p30f, 0, -0x1p30f}, {1, 1, 1, 1}), 0.0f);
  EXPECT_EQ(Product({-0x1p30f, 0x1p30f, 1, 0}, {1, 1, 1, 1}), 1.0f);
  // The odd term comes first: 2^30 - 2^30 + 1. If the even term came first, the 1 would be lost.
  EXPECT_EQ(Product({0x1p30f, 0, 1, -0x1p30f}, {1, 1, 1, 1}), 1.0f);
  EXPECT_EQ(Product({0x1p30f, 0, -0x1p30f, 1}, {1, 1, 1, 1}), 0.0f);
  EXPECT_EQ(Product({0x1p-130f, 0}, {0x1p20f, 1}), 0.0f);  // a denormal operand
  EXPECT_EQ(Product({0x1p-70f, 0}, {0x1p-70f, 1}), 0.0f);  // a denormal result
  EXPECT_EQ(Product({2, 3, 5}, {1, 10, 100}), 532.0f);
}

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bf16")

// Continues c[j] by the pair a[j], b[j], with `mode` as the control register.
void RunInstruction(const Bf16* a, const Bf16* b, unsigned mode, float* c) {
  const unsigned former = _mm_getcsr();
  _mm_setcsr(mode);
  __m512 sums = _mm512_loadu_ps(c);
  const __m512i x = _mm512_loadu_si512(a), y = _mm512_loadu_si512(b);
  __asm__ volatile("vdpbf16ps %2, %1, %0" : "+v"(sums) : "v"(x), "v"(y));
  _mm512_storeu_ps(c, sums);
  _mm_setcsr(former);
}

#pragma GCC pop_options

// Makes values of every exponent, values with exponents at which results overflow or are denormal,
// and sums that nearly cancel the first product.
class PairsOfEveryKind {
 public:
  void Next() {
    const int32_t kind = random_.Integer(0, 3);
    const int32_t min = kind == 1 ? 56 : kind == 2 ? 186 : 0;
    const int32_t max = kind == 1 ? 68 : kind == 2 ? 194 : 255;
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = Value(min, max);
      b[i] = Value(min, max);
    }
    for (size_t j = 0; j < c.size(); ++j) {
      const uint32_t bits = Bits();
      c[j] = std::bit_cast<float>(kind == 1 ? bits % (14u << 23) | (bits & 0x80000000u) : bits);
      if (kind == 3) c[j] = -(ToFloat(a[2 * j + 1]) * ToFloat(b[2 * j + 1]));
    }
  }

  std::array<Bf16, 32> a, b;
  std::array<float, 16> c;

 private:
  uint32_t Bits() {
    return static_cast<uint32_t>(
        random_.Integer(std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
  }
  // A value with an exponent in [min, max] and any sign and significand.
  Bf16 Value(int32_t min, int32_t max) {
    const uint32_t bits = Bits();
    return Bf16{static_cast<uint16_t>((bits & 0x807f) | (random_.Integer(min, max) << 7))};
  }
  RandomValues random_;
};

// Computes 1.6 million sums under each of four modes of the control register, which the instruction
// ignores.
TEST(Bf16ProductTest, TheProcessorComputesTheDefinition) {
  if (!CpuHas(Isa::kAvx512Bf16)) GTEST_SKIP() << "needs AVX512-BF16";
  // The modes are round to nearest without and with flushing, towards zero, and down; all
  // exceptions are masked.
  constexpr unsigned kModes[] = {0x1f80, 0x9fc0, 0x7f80, 0x3f80};
  PairsOfEveryKind pairs;
  for (int i = 0; i < 100'000; ++i) {
    pairs.Next();
    std::array<float, 16> expected = pairs.c, sums = pairs.c;
    RunInstruction(pairs.a.data(), pairs.b.data(), kModes[i % 4], sums.data());
    for (size_t j = 0; j < sums.size(); ++j) {
      const float a[2] = {ToFloat(pairs.a[2 * j]), ToFloat(pairs.a[2 * j + 1])};
      const float b[2] = {ToFloat(pairs.b[2 * j]), ToFloat(pairs.b[2 * j + 1])};
      expected[j] = reference::AddBf16Pairs(pairs.c[j], a, b, 2);
      ASSERT_TRUE(SameBits(sums[j], expected[j]))
          << std::hexfloat << pairs.c[j] << " + " << a[1] << " * " << b[1] << " + " << a[0] << " * "
          << b[0] << " gives " << sums[j] << ", not " << expected[j];
    }
  }
}

}  // namespace
}  // namespace skein
