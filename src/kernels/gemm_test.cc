#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/fp_mode.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/kernels.h"
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

struct Case {
  reference::GemmShape shape;
  DType dtype;
  Range range = Range::kPlain;
  bool bias = false;
  bool add_to_out = false;
};

class GemmTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { kernels_ = MakeCpuKernels(GetParam()); }

  // Runs the case in a matrix with wider rows than needed. If `cut` is positive, the columns are
  // computed in two calls, divided at `cut`.
  ::testing::AssertionResult Check(const Case& c, int32_t cut = 0) {
    const auto [m, n, k] = c.shape;
    const std::vector<float> a = random_.Floats(size_t(m) * k, c.dtype, c.range);
    const std::vector<float> w = random_.Floats(size_t(n) * k, c.dtype, c.range);
    const std::vector<float> bias = random_.Floats(n, DType::kF32, c.range);
    std::vector<float> expected = random_.Floats(size_t(m) * n, DType::kF32, c.range);
    const int32_t lda = k + 5, ldo = n + 3;
    std::vector<float> a_wide(size_t(m) * lda, std::numeric_limits<float>::quiet_NaN());
    std::vector<float> out(size_t(m) * ldo, 7.0f);
    for (int32_t r = 0; r < m; ++r) {
      std::copy_n(&a[size_t(r) * k], k, &a_wide[size_t(r) * lda]);
      std::copy_n(&expected[size_t(r) * n], n, &out[size_t(r) * ldo]);
    }
    const TypedArray a_typed(a_wide, c.dtype);
    PackedWeight packed(n, k, c.dtype);
    packed.PackRows(0, n, w.data(), DType::kF32);
    GemmCall call = {.a = a_typed.data(),
                     .lda = lda,
                     .m = m,
                     .w = &packed,
                     .n_begin = 0,
                     .n_end = n,
                     .bias = c.bias ? bias.data() : nullptr,
                     .add_to_out = c.add_to_out,
                     .out = out.data(),
                     .ldo = ldo};
    if (cut > 0 && cut < n) {
      call.n_end = cut;
      kernels_->Gemm(call);
      call.n_begin = cut;
      call.n_end = n;
      // The same address, expressed differently.
      if (random_.Integer(0, 1) == 1) {
        call.out = out.data() + cut;
        call.out_begin = cut;
      }
    }
    kernels_->Gemm(call);
    reference::Gemm(NumericClassOf(GetParam(), c.dtype), c.shape, a.data(), w.data(), call.bias,
                    c.add_to_out, expected.data());
    std::vector<float> dense;
    for (int32_t r = 0; r < m; ++r) {
      const float* row = &out[size_t(r) * ldo];
      dense.insert(dense.end(), row, row + n);
      for (int32_t i = n; i < ldo; ++i) {
        if (row[i] != 7.0f) return ::testing::AssertionFailure() << "wrote beyond row " << r;
      }
    }
    return SameBits(dense, expected)
           << " (m " << m << ", n " << n << ", k " << k << ", " << NameOf(c.dtype) << ")";
  }

  const testing::IsaEmulation emulation_{GetParam()};
  RandomValues random_;
  std::unique_ptr<Kernels> kernels_;
};

TEST_P(GemmTest, EqualsTheReferenceForOddShapes) {
  for (DType dtype : {DType::kF32, DType::kBf16}) {
    for (int32_t m : {1, 2, 7, 17, 50}) {
      for (int32_t n : {1, 16, 31, 80, 144}) {
        for (int32_t k : {1, 2, 31, 33, 170}) {
          EXPECT_TRUE(Check({{m, n, k}, dtype}));
        }
      }
    }
    EXPECT_TRUE(Check({{5, 65, 2500}, dtype}));
    EXPECT_TRUE(Check({{1, 130, 2501}, dtype}));
    EXPECT_TRUE(Check({{2, 130, 2501}, dtype}));
  }
}

// The shape of a tile depends on the number of rows, and no bit on the shape.
TEST_P(GemmTest, EqualsTheReferenceForAnyNumberOfRows) {
  const int32_t most = emulation_.active() ? 18 : 50;
  for (DType dtype : {DType::kF32, DType::kBf16}) {
    for (int32_t m = 1; m <= most; ++m) EXPECT_TRUE(Check({{m, 150, 37}, dtype}));
  }
}

TEST_P(GemmTest, EqualsTheReferenceForRandomCases) {
  for (int i = 0; i < 40; ++i) {
    const reference::GemmShape shape = {random_.Integer(1, 40), random_.Integer(1, 100),
                                        random_.Integer(1, 300)};
    const int32_t cut = random_.Integer(0, shape.n / kPanelCols) * kPanelCols;
    EXPECT_TRUE(Check({shape, random_.Integer(0, 1) ? DType::kF32 : DType::kBf16, Range::kExtreme,
                       random_.Integer(0, 1) == 1, random_.Integer(0, 1) == 1},
                      cut));
  }
}

// A promise of docs/numerics.md: the bits of a row do not depend on the other rows of the call.
TEST_P(GemmTest, ARowAloneEqualsTheRowAmongOthers) {
  const int32_t m = 37, n = 90, k = 333;
  for (DType dtype : {DType::kF32, DType::kBf16}) {
    const TypedArray a(random_.Floats(size_t(m) * k, dtype, Range::kPlain), dtype);
    PackedWeight w(n, k, dtype);
    w.PackRows(0, n, random_.Floats(size_t(n) * k, dtype, Range::kPlain).data(), DType::kF32);
    std::vector<float> all(size_t(m) * n), one(n);
    kernels_->Gemm(
        {.a = a.data(), .lda = k, .m = m, .w = &w, .n_end = n, .out = all.data(), .ldo = n});
    for (int32_t r = 0; r < m; ++r) {
      kernels_->Gemm({.a = a.At(size_t(r) * k),
                      .lda = k,
                      .m = 1,
                      .w = &w,
                      .n_end = n,
                      .out = one.data(),
                      .ldo = n});
      EXPECT_TRUE(SameBits(one, {all.begin() + r * n, all.begin() + (r + 1) * n})) << "row " << r;
    }
  }
}

// More rows than the kernels take at a time, and a k that exceeds their caches.
TEST_P(GemmTest, EqualsTheReferenceForLargeShapes) {
  if (GetParam() == Isa::kScalar || emulation_.active()) GTEST_SKIP() << "takes too long";
  EXPECT_TRUE(Check({{290, 47, 100}, DType::kBf16, Range::kExtreme, true, true}));
  EXPECT_TRUE(Check({{150, 70, 2500}, DType::kBf16, Range::kExtreme}));
  EXPECT_TRUE(Check({{150, 70, 2500}, DType::kBf16, Range::kExtreme, true, true}));
  EXPECT_TRUE(Check({{33, 16, 9000}, DType::kBf16}));
  EXPECT_TRUE(Check({{260, 600, 1100}, DType::kBf16, Range::kPlain, true, false}, 528));
  EXPECT_TRUE(Check({{20, 33, 9000}, DType::kBf16}));
}

// Whole tiles, aligned to cache lines: the kernels may read the rows in place.
TEST_P(GemmTest, EqualsTheReferenceForAlignedShapes) {
  for (const auto& [m, n, k] : {reference::GemmShape{288, 96, 576}, {64, 48, 1120}, {97, 64, 64}}) {
    const std::vector<float> a = random_.Floats(size_t(m) * k, DType::kBf16, Range::kPlain);
    const std::vector<float> w = random_.Floats(size_t(n) * k, DType::kBf16, Range::kPlain);
    const TypedArray a_typed(a, DType::kBf16);
    PackedWeight packed(n, k, DType::kBf16);
    packed.PackRows(0, n, w.data(), DType::kF32);
    AlignedBuffer out(size_t(m) * n * sizeof(float));
    kernels_->Gemm({.a = a_typed.data(),
                    .lda = k,
                    .m = m,
                    .w = &packed,
                    .n_end = n,
                    .out = out.data(),
                    .ldo = n});
    std::vector<float> expected(size_t(m) * n), result(size_t(m) * n);
    std::memcpy(result.data(), out.data(), out.size());
    reference::Gemm(NumericClassOf(GetParam(), DType::kBf16), {m, n, k}, a.data(), w.data(),
                    nullptr, false, expected.data());
    EXPECT_TRUE(SameBits(result, expected)) << "m " << m << " n " << n << " k " << k;
  }
}

// Tiled activations give the same bits as rows, whatever the tiles hold after the last row.
TEST_P(GemmTest, TilesOfRowsHaveTheBitsOfRows) {
  const Bf16 nan = ToBf16(std::numeric_limits<float>::quiet_NaN());
  for (const auto& [m, half, k] : {std::tuple{1, 32, 64},
                                   {16, 80, 96},
                                   {17, 48, 70},
                                   {33, 80, 1120},
                                   {49, 32, 9000},
                                   {288, 48, 2080}}) {
    if (m * k > 100000 && (GetParam() == Isa::kScalar || emulation_.active())) continue;
    const int32_t width = (k + 31) / 32 * 32, out_width = (half + 31) / 32 * 32;
    const int32_t tile_rows = (m + 15) / 16 * 16;
    const std::vector<float> values = random_.Floats(size_t(m) * k, DType::kBf16, Range::kPlain);
    std::vector<Bf16> rows, tiles(size_t(tile_rows) * width, nan);
    for (int32_t r = 0; r < m; ++r) {
      for (int32_t i = 0; i < width; ++i) {
        const Bf16 x = ToBf16(i < k ? values[size_t(r) * k + i] : 5.0f);
        if (i < k) rows.push_back(x);
        tiles[RowTileIndex(r, i, width)] = x;
      }
    }
    PackedWeight w(2 * half, k, DType::kBf16);
    w.PackRows(0, 2 * half,
               random_.Floats(size_t(2) * half * k, DType::kBf16, Range::kPlain).data(),
               DType::kF32);
    for (const int32_t up_begin : {0, half}) {
      std::vector<Bf16> expected(size_t(m) * half), out(size_t(tile_rows) * out_width, nan);
      GemmCall call = {.a = rows.data(),
                       .lda = k,
                       .m = m,
                       .w = &w,
                       .n_end = half,
                       .up_begin = up_begin,
                       .activation = Activation::kSilu,
                       .out = expected.data(),
                       .ldo = half,
                       .out_dtype = DType::kBf16};
      kernels_->Gemm(call);
      if (GetParam() == Isa::kAmx) {
        call.a = tiles.data();
        call.lda = width;
        call.a_tiles = true;
      }
      call.out = out.data();
      call.ldo = out_width;
      call.out_tiles = true;
      for (const int32_t begin : {0, 16}) {
        call.n_begin = begin;
        call.n_end = begin == 0 ? 16 : half;
        kernels_->Gemm(call);
      }
      for (int32_t r = 0; r < m; ++r) {
        for (int32_t i = 0; i < half; ++i) {
          ASSERT_EQ(out[RowTileIndex(r, i, out_width)].bits, expected[size_t(r) * half + i].bits)
              << "m " << m << " k " << k << " up " << up_begin << " at " << r << ", " << i;
        }
      }
    }
  }
}

// The output projections of attention and of the MLP add to the residual stream in this way.
TEST_P(GemmTest, TilesOfRowsAreAddedToWhatIsThere) {
  if (GetParam() != Isa::kAmx) GTEST_SKIP() << "takes rows alone";
  constexpr int32_t kN = 48, kK = 96;
  for (const int32_t m : {1, 16, 17, 32, 33, 70}) {
    const int32_t tile_rows = (m + 15) / 16 * 16;
    const std::vector<float> a = random_.Floats(size_t(m) * kK, DType::kBf16, Range::kPlain);
    const std::vector<float> w = random_.Floats(size_t{kN} * kK, DType::kBf16, Range::kPlain);
    std::vector<float> expected = random_.Floats(size_t(m) * kN, DType::kF32, Range::kPlain);
    std::vector<float> out = expected;
    std::vector<Bf16> tiles(size_t(tile_rows) * kK);
    for (int32_t r = 0; r < m; ++r) {
      for (int32_t i = 0; i < kK; ++i) {
        tiles[RowTileIndex(r, i, kK)] = ToBf16(a[size_t(r) * kK + i]);
      }
    }
    PackedWeight packed(kN, kK, DType::kBf16);
    packed.PackRows(0, kN, w.data(), DType::kF32);
    kernels_->Gemm({.a = tiles.data(),
                    .lda = kK,
                    .m = m,
                    .w = &packed,
                    .n_end = kN,
                    .add_to_out = true,
                    .out = out.data(),
                    .ldo = kN,
                    .a_tiles = true});
    reference::Gemm(NumericClass::kAmx, {m, kN, kK}, a.data(), w.data(), nullptr, true,
                    expected.data());
    EXPECT_TRUE(SameBits(out, expected)) << "m " << m;
  }
}

// One call for gate and up equals the two products, then SiluMul and then the rounding.
TEST_P(GemmTest, SwiGluIsTheProductsAndThenSiluMul) {
  for (const auto& [dtype, m, half, k] : {std::tuple{DType::kBf16, 1, 32, 70},
                                          {DType::kBf16, 19, 48, 64},
                                          {DType::kBf16, 77, 80, 300},
                                          {DType::kBf16, 77, 80, 1100},
                                          {DType::kF32, 7, 32, 50}}) {
    for (const bool biased : {false, true}) {
      const TypedArray a(random_.Floats(size_t(m) * k, dtype, Range::kPlain), dtype);
      PackedWeight w(2 * half, k, dtype);
      w.PackRows(0, 2 * half, random_.Floats(size_t(2) * half * k, dtype, Range::kPlain).data(),
                 DType::kF32);
      const std::vector<float> bias = random_.Floats(2 * half, DType::kF32, Range::kPlain);
      std::vector<float> both(size_t(m) * 2 * half);
      GemmCall call = {.a = a.data(),
                       .lda = k,
                       .m = m,
                       .w = &w,
                       .n_end = 2 * half,
                       .bias = biased ? bias.data() : nullptr,
                       .out = both.data(),
                       .ldo = 2 * half};
      kernels_->Gemm(call);
      for (const DType out_dtype : {DType::kF32, DType::kBf16}) {
        const size_t row_bytes = half * SizeOf(out_dtype);
        std::vector<char> expected(m * row_bytes), out(m * row_bytes);
        for (int32_t r = 0; r < m; ++r) {
          const float* gate = &both[size_t(r) * 2 * half];
          kernels_->SiluMul(gate, gate + half, half, &expected[r * row_bytes], out_dtype);
        }
        call.up_begin = half;
        call.activation = Activation::kSilu;
        call.out = out.data();
        call.ldo = half;
        call.out_dtype = out_dtype;
        for (int32_t begin : {0, 16}) {
          call.n_begin = begin;
          call.n_end = begin == 0 ? 16 : half;
          kernels_->Gemm(call);
        }
        EXPECT_EQ(out, expected) << NameOf(dtype) << " m " << m;
      }
    }
  }
}

TEST_P(GemmTest, GatesHaveAnyActivation) {
  constexpr int32_t kRows = 21, kHalf = 48, kTerms = 70;
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    const TypedArray a(random_.Floats(size_t{kRows} * kTerms, dtype, Range::kPlain), dtype);
    PackedWeight w(2 * kHalf, kTerms, dtype);
    w.PackRows(0, 2 * kHalf,
               random_.Floats(size_t{2} * kHalf * kTerms, dtype, Range::kPlain).data(),
               DType::kF32);
    std::vector<float> sums(size_t{kRows} * 2 * kHalf), out(size_t{kRows} * kHalf);
    GemmCall call = {.a = a.data(),
                     .lda = kTerms,
                     .m = kRows,
                     .w = &w,
                     .n_end = 2 * kHalf,
                     .out = sums.data(),
                     .ldo = 2 * kHalf};
    kernels_->Gemm(call);
    call.n_end = call.up_begin = call.ldo = kHalf;
    call.out = out.data();
    for (const Activation activation :
         {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
          Activation::kSilu, Activation::kClampedSwiglu}) {
      call.activation = activation;
      kernels_->Gemm(call);
      std::vector<float> expected(out.size());
      const ScopedFpMode fp_mode;
      for (int32_t i = 0; i < kRows * kHalf; ++i) {
        const float* gate = &sums[i / kHalf * 2 * kHalf + i % kHalf];
        expected[i] = reference::Gated(activation, *gate, gate[kHalf]);
      }
      EXPECT_TRUE(SameBits(out, expected)) << NameOf(dtype) << ' ' << static_cast<int>(activation);
    }
  }
}

TEST_P(GemmTest, ResultsHaveAnyActivation) {
  constexpr int32_t kRows = 21, kCols = 41, kTerms = 70;
  const std::vector<float> bias = random_.Floats(kCols, DType::kF32, Range::kPlain);
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    const TypedArray a(random_.Floats(size_t{kRows} * kTerms, dtype, Range::kPlain), dtype);
    PackedWeight w(kCols, kTerms, dtype);
    w.PackRows(0, kCols, random_.Floats(size_t{kCols} * kTerms, dtype, Range::kPlain).data(),
               DType::kF32);
    std::vector<float> sums(size_t{kRows} * kCols), expected(sums.size());
    GemmCall call = {.a = a.data(),
                     .lda = kTerms,
                     .m = kRows,
                     .w = &w,
                     .n_end = kCols,
                     .bias = bias.data(),
                     .out = sums.data(),
                     .ldo = kCols};
    kernels_->Gemm(call);
    for (const Activation activation :
         {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh, Activation::kSilu}) {
      const ScopedFpMode fp_mode;
      for (size_t i = 0; i < sums.size(); ++i) {
        expected[i] = reference::Activate(activation, sums[i]);
      }
      for (const DType out_dtype : {DType::kF32, DType::kBf16}) {
        const TypedArray typed(expected, out_dtype);
        std::vector<std::byte> out(sums.size() * SizeOf(out_dtype));
        call.activation = activation;
        call.out = out.data();
        call.out_dtype = out_dtype;
        kernels_->Gemm(call);
        EXPECT_EQ(std::memcmp(out.data(), typed.data(), out.size()), 0)
            << NameOf(dtype) << ' ' << NameOf(out_dtype) << ' ' << static_cast<int>(activation);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Here, GemmTest, ::testing::ValuesIn(testing::IsasHereOrEmulated()),
                         testing::IsaName);

}  // namespace
}  // namespace skein
