#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/kernels.h"
#include "kernels/quantize.h"
#include "kernels/reference.h"
#include "testing/isa_emulation.h"
#include "testing/isas.h"
#include "testing/random_values.h"

namespace skein {
namespace {

using testing::RandomValues;
using testing::Range;
using testing::SameBits;
using testing::TypedArray;

// All instruction sets form one class, so each is compared with the same reference.
class GemmInt8Test : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { kernels_ = MakeCpuKernels(GetParam()); }

  struct Rows {
    std::vector<int8_t> q;  // [m, lda]
    std::vector<float> scales;
  };
  // Quantizes a [m, k] to rows of lda elements. The elements behind each row are -128, which no row
  // contains.
  Rows Quantize(const std::vector<float>& a, int32_t m, int32_t k, int32_t lda) const {
    Rows rows = {std::vector<int8_t>(size_t(m) * lda, int8_t{-128}), std::vector<float>(m)};
    for (int32_t r = 0; r < m; ++r) {
      rows.scales[r] =
          kernels_->Quantize(&a[size_t(r) * k], DType::kF32, k, &rows.q[size_t(r) * lda]);
    }
    return rows;
  }

  ::testing::AssertionResult Check(reference::GemmShape shape, Range range = Range::kPlain,
                                   bool biased = false, bool add_to_out = false, int32_t cut = 0) {
    const auto [m, n, k] = shape;
    return CheckProduct(shape, random_.Floats(size_t(m) * k, DType::kF32, range),
                        random_.Floats(size_t(n) * k, DType::kF32, range), biased, add_to_out, cut);
  }

  ::testing::AssertionResult CheckProduct(reference::GemmShape shape, const std::vector<float>& a,
                                          const std::vector<float>& w, bool biased, bool add_to_out,
                                          int32_t cut) {
    const auto [m, n, k] = shape;
    const std::vector<float> bias = random_.Floats(n, DType::kF32, Range::kPlain);
    std::vector<float> expected = random_.Floats(size_t(m) * n, DType::kF32, Range::kPlain);
    std::vector<float> out = expected;
    PackedWeight packed(n, k, DType::kInt8);
    packed.PackRows(0, n, w.data(), DType::kF32);
    const Rows rows = Quantize(a, m, k, k + 5);
    GemmCall call = {.a = rows.q.data(),
                     .lda = k + 5,
                     .a_scales = rows.scales.data(),
                     .m = m,
                     .w = &packed,
                     .n_begin = 0,
                     .n_end = n,
                     .bias = biased ? bias.data() : nullptr,
                     .add_to_out = add_to_out,
                     .out = out.data(),
                     .ldo = n};
    if (cut > 0 && cut < n) {
      call.n_end = cut;
      kernels_->Gemm(call);
      call.n_begin = cut;
      call.n_end = n;
    }
    kernels_->Gemm(call);
    reference::GemmInt8(shape, a.data(), w.data(), call.bias, add_to_out, expected.data());
    return SameBits(out, expected) << " (m " << m << ", n " << n << ", k " << k << ")";
  }

  const testing::IsaEmulation emulation_{GetParam()};
  RandomValues random_;
  std::unique_ptr<Kernels> kernels_;
};

TEST_P(GemmInt8Test, EqualsTheReferenceForOddShapes) {
  for (int32_t m : {1, 2, 7, 17, 50, 98}) {
    for (int32_t n : {1, 16, 31, 80, 144}) {
      for (int32_t k : {1, 2, 31, 33, 63, 65, 170}) EXPECT_TRUE(Check({m, n, k}));
    }
  }
  EXPECT_TRUE(Check({5, 65, 2500}));
  EXPECT_TRUE(Check({1, 130, 2501}));
}

// The instructions and the shape of a tile depend on the number of rows, and no bit on them.
TEST_P(GemmInt8Test, EqualsTheReferenceForAnyNumberOfRows) {
  const int32_t most = emulation_.active() ? 18 : 50;
  for (int32_t m = 1; m <= most; ++m) EXPECT_TRUE(Check({m, 150, 39}));
}

TEST_P(GemmInt8Test, EqualsTheReferenceForRandomCases) {
  for (int i = 0; i < 40; ++i) {
    const reference::GemmShape shape = {random_.Integer(1, 40), random_.Integer(1, 100),
                                        random_.Integer(1, 300)};
    const int32_t cut = random_.Integer(0, shape.n / kPanelCols) * kPanelCols;
    EXPECT_TRUE(
        Check(shape, Range::kExtreme, random_.Integer(0, 1) == 1, random_.Integer(0, 1) == 1, cut));
  }
}

TEST_P(GemmInt8Test, EqualsTheReferenceForLargeShapes) {
  if (GetParam() == Isa::kScalar || emulation_.active()) GTEST_SKIP() << "takes too long";
  EXPECT_TRUE(Check({290, 47, 100}, Range::kExtreme, true, true));
  EXPECT_TRUE(Check({150, 70, 5000}, Range::kExtreme));
  EXPECT_TRUE(Check({33, 16, 18000}));
  EXPECT_TRUE(Check({260, 600, 2200}, Range::kPlain, true, false, 528));
  EXPECT_TRUE(Check({288, 96, 576}));
}

// Tests the largest sums that are possible, of either sign.
TEST_P(GemmInt8Test, NoSumOverflows) {
  if (GetParam() == Isa::kAmx && emulation_.active()) GTEST_SKIP() << "takes too long";
  constexpr int32_t kCols = 3;
  const int32_t rows = emulation_.active() ? 2 : 26;
  const std::vector<float> a(size_t(rows) * kMaxInt8Terms, 1.0f);
  std::vector<float> w(size_t(kCols) * kMaxInt8Terms, 1.0f);
  std::fill_n(w.begin(), kMaxInt8Terms, -1.0f);
  for (const int32_t m : {2, rows}) {
    EXPECT_TRUE(CheckProduct({m, kCols, kMaxInt8Terms}, a, w, false, false, 0));
  }
}

// A NaN or an infinity in a row reaches all results of that row, and no others.
TEST_P(GemmInt8Test, RowsThatAreNoNumbersStaySo) {
  const int32_t m = 29, n = 20, k = 70;
  std::vector<float> a = random_.Floats(size_t(m) * k, DType::kF32, Range::kPlain);
  std::vector<float> w = random_.Floats(size_t(n) * k, DType::kF32, Range::kPlain);
  a[1 * k + 3] = std::numeric_limits<float>::quiet_NaN();
  a[3 * k + 69] = -std::numeric_limits<float>::infinity();
  w[18 * k + 7] = std::numeric_limits<float>::infinity();
  std::fill_n(&a[4 * k], k, 1e-38f);  // tiny values become zeros
  for (const int32_t rows : {13, m}) EXPECT_TRUE(CheckProduct({rows, n, k}, a, w, true, false, 0));
}

TEST_P(GemmInt8Test, ARowAloneEqualsTheRowAmongOthers) {
  const int32_t m = 37, n = 90, k = 333;
  const Rows rows = Quantize(random_.Floats(size_t(m) * k, DType::kF32, Range::kPlain), m, k, k);
  PackedWeight w(n, k, DType::kInt8);
  w.PackRows(0, n, random_.Floats(size_t(n) * k, DType::kF32, Range::kPlain).data(), DType::kF32);
  std::vector<float> all(size_t(m) * n), one(n);
  GemmCall call = {.a = rows.q.data(),
                   .lda = k,
                   .a_scales = rows.scales.data(),
                   .m = m,
                   .w = &w,
                   .n_end = n,
                   .out = all.data(),
                   .ldo = n};
  kernels_->Gemm(call);
  for (int32_t r = 0; r < m; ++r) {
    call.a = &rows.q[size_t(r) * k];
    call.a_scales = &rows.scales[r];
    call.m = 1;
    call.out = one.data();
    kernels_->Gemm(call);
    EXPECT_TRUE(SameBits(one, {all.begin() + r * n, all.begin() + (r + 1) * n})) << "row " << r;
  }
}

TEST_P(GemmInt8Test, SwiGluIsTheProductsAndThenSiluMul) {
  for (const auto& [m, half, k] :
       {std::tuple{1, 32, 70}, {19, 48, 64}, {77, 80, 300}, {98, 112, 301}}) {
    for (const bool biased : {false, true}) {
      const Rows rows =
          Quantize(random_.Floats(size_t(m) * k, DType::kF32, Range::kPlain), m, k, k);
      PackedWeight w(2 * half, k, DType::kInt8);
      w.PackRows(0, 2 * half,
                 random_.Floats(size_t(2) * half * k, DType::kF32, Range::kPlain).data(),
                 DType::kF32);
      const std::vector<float> bias = random_.Floats(2 * half, DType::kF32, Range::kPlain);
      std::vector<float> both(size_t(m) * 2 * half);
      GemmCall call = {.a = rows.q.data(),
                       .lda = k,
                       .a_scales = rows.scales.data(),
                       .m = m,
                       .w = &w,
                       .n_end = 2 * half,
                       .bias = biased ? bias.data() : nullptr,
                       .out = both.data(),
                       .ldo = 2 * half};
      kernels_->Gemm(call);
      std::vector<Bf16> expected(size_t(m) * half), out(size_t(m) * half);
      for (int32_t r = 0; r < m; ++r) {
        const float* gate = &both[size_t(r) * 2 * half];
        kernels_->SiluMul(gate, gate + half, half, &expected[size_t(r) * half], DType::kBf16);
      }
      call.up_begin = half;
      call.activation = Activation::kSilu;
      call.out = out.data();
      call.ldo = half;
      call.out_dtype = DType::kBf16;
      const int32_t cut = m < 98 ? 16 : half;
      for (int32_t begin = 0, end = cut; begin < half; begin = end, end = half) {
        call.n_begin = begin;
        call.n_end = end;
        kernels_->Gemm(call);
      }
      for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i].bits, expected[i].bits) << i;
    }
  }
}

TEST_P(GemmInt8Test, QuantizeEqualsTheReference) {
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    for (const int32_t n : {1, 15, 16, 17, 100, 1024}) {
      for (int i = 0; i < 6; ++i) {
        std::vector<float> x =
            random_.Floats(n, dtype, i % 2 == 0 ? Range::kPlain : Range::kExtreme);
        if (i == 4) x[n / 2] = std::numeric_limits<float>::quiet_NaN();
        if (i == 5) std::fill(x.begin(), x.end(), -1e-39f);
        std::vector<int8_t> q(n + 1, 77), plain(n), expected(n);
        const float scale = kernels_->Quantize(TypedArray(x, dtype).data(), dtype, n, q.data());
        const float expected_scale =
            reference::Quantize(TypedArray(x, dtype).Values(), expected.data());
        EXPECT_TRUE(SameBits(scale, expected_scale));
        EXPECT_EQ(q.back(), 77);
        q.pop_back();
        EXPECT_EQ(q, expected) << NameOf(dtype) << " n " << n;
        EXPECT_TRUE(SameBits(QuantizeRow(x.data(), n, plain.data()), expected_scale));
        EXPECT_EQ(plain, expected);
        for (int32_t j = 0; j < n && std::isfinite(scale); ++j) {
          EXPECT_LE(std::abs(q[j] * double{scale} - x[j]), 0.500001 * scale + 0x1p-100);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Here, GemmInt8Test,
                         ::testing::ValuesIn(testing::IntegerIsasHereOrEmulated()),
                         testing::IsaName);

}  // namespace
}  // namespace skein
