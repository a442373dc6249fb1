#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/reference.h"
#include "testing/isas.h"
#include "testing/random_values.h"

namespace skein {
namespace {

using testing::RandomValues;
using testing::Range;
using testing::SameBits;
using testing::TypedArray;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr int32_t kSizes[] = {1, 7, 15, 16, 17, 31, 64, 100, 1024, 2047, 2049, 5000};

std::vector<float> Rounded(std::vector<float> values, DType dtype) {
  if (dtype == DType::kBf16) {
    for (float& x : values) x = ToFloat(ToBf16(x));
  }
  return values;
}

class RowwiseTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    auto made = MakeKernels(GetParam());
    ASSERT_TRUE(made.ok());
    kernels_ = std::move(made).value();
  }
  std::vector<float> Values(int32_t n) { return random_.Floats(n, DType::kF32, Range::kExtreme); }

  RandomValues random_;
  std::unique_ptr<Kernels> kernels_;
};

TEST_P(RowwiseTest, RmsNorm) {
  for (int32_t n : kSizes) {
    for (DType dtype : {DType::kF32, DType::kBf16}) {
      std::vector<float> x = Values(n);
      const std::vector<float> weight = Values(n);
      std::vector<float> expected(n);
      reference::RmsNorm(x, weight.data(), 1e-6f, expected.data());
      TypedArray out(x, dtype);
      kernels_->RmsNorm(x.data(), weight.data(), 1e-6f, n, out.At(0), dtype, kRowPiece);
      EXPECT_TRUE(SameBits(out.Values(), Rounded(expected, dtype))) << n;
      kernels_->RmsNorm(x.data(), weight.data(), 1e-6f, n, x.data(), DType::kF32, kRowPiece);
      EXPECT_TRUE(SameBits(x, expected)) << "in place, " << n;
    }
  }
}

// A row of a tiled matrix equals a plain row.
TEST_P(RowwiseTest, RmsNormInPieces) {
  for (int32_t n : kSizes) {
    const std::vector<float> x = Values(n), weight = Values(n);
    std::vector<Bf16> row(n), pieces(PieceIndex(n + kRowPiece, kRowTileElements));
    kernels_->RmsNorm(x.data(), weight.data(), 1e-6f, n, row.data(), DType::kBf16, kRowPiece);
    kernels_->RmsNorm(x.data(), weight.data(), 1e-6f, n, pieces.data(), DType::kBf16,
                      kRowTileElements);
    for (int32_t i = 0; i < n; ++i) {
      ASSERT_EQ(pieces[PieceIndex(i, kRowTileElements)].bits, row[i].bits) << i << " of " << n;
    }
  }
}

TEST_P(RowwiseTest, RotateInPieces) {
  constexpr int32_t kHeads = 3;
  for (const auto& [head_dim, rotary_dim] :
       {std::pair{32, 0}, {64, 0}, {96, 0}, {128, 0}, {128, 96}, {64, 32}}) {
    const std::vector<float> x = Values(kHeads * head_dim), norm = Values(head_dim);
    const std::vector<float> cos = Values(head_dim / 2), sin = Values(head_dim / 2);
    std::vector<Bf16> row(kHeads * head_dim);
    std::vector<Bf16> pieces(PieceIndex(kHeads * head_dim, kRowTileElements));
    RotateCall call = {.x = x.data(),
                       .norm = norm.data(),
                       .eps = 1e-6f,
                       .cos = cos.data(),
                       .sin = sin.data(),
                       .num_heads = kHeads,
                       .head_dim = head_dim,
                       .rotary_dim = rotary_dim,
                       .out = row.data(),
                       .dtype = DType::kBf16};
    kernels_->Rotate(call);
    call.out = pieces.data();
    call.piece_stride = kRowTileElements;
    kernels_->Rotate(call);
    for (int32_t i = 0; i < kHeads * head_dim; ++i) {
      ASSERT_EQ(pieces[PieceIndex(i, kRowTileElements)].bits, row[i].bits) << i << ", " << head_dim;
    }
  }
}

TEST_P(RowwiseTest, LayerNorm) {
  for (int32_t n : kSizes) {
    for (DType dtype : {DType::kF32, DType::kBf16}) {
      std::vector<float> x = Values(n);
      const std::vector<float> weight = Values(n), bias = Values(n);
      std::vector<float> expected(n);
      reference::LayerNorm(x, weight.data(), bias.data(), 1e-12f, expected.data());
      TypedArray out(x, dtype);
      kernels_->LayerNorm(x.data(), weight.data(), bias.data(), 1e-12f, n, out.At(0), dtype);
      EXPECT_TRUE(SameBits(out.Values(), Rounded(expected, dtype))) << n;
      kernels_->LayerNorm(x.data(), weight.data(), bias.data(), 1e-12f, n, x.data(), DType::kF32);
      EXPECT_TRUE(SameBits(x, expected)) << "in place, " << n;
    }
  }
}

constexpr Activation kActivations[] = {Activation::kNone,     Activation::kRelu, Activation::kGelu,
                                       Activation::kGeluTanh, Activation::kTanh, Activation::kSilu};

TEST_P(RowwiseTest, Activate) {
  for (const Activation activation : kActivations) {
    for (int32_t n : kSizes) {
      std::vector<float> x = Values(n);
      for (float& value : x) value *= 8;
      std::vector<float> expected;
      for (const float value : x) expected.push_back(reference::Activate(activation, value));
      for (DType dtype : {DType::kF32, DType::kBf16}) {
        TypedArray out(x, dtype);
        kernels_->Activate(activation, x.data(), n, out.At(0), dtype);
        EXPECT_TRUE(SameBits(out.Values(), Rounded(expected, dtype))) << n;
      }
    }
  }
}

TEST(ActivationTest, IsAccurate) {
  for (float x = -20; x <= 20; x += 0.0078125f) {
    const double d = x;
    const double gelu = d * 0.5 * std::erfc(-d / std::sqrt(2.0));
    const double gelu_tanh =
        0.5 * d * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (d + 0.044715 * d * d * d)));
    // The rounding of an argument y changes exp(y) by |y| 2^-24.
    EXPECT_NEAR(reference::Activate(Activation::kGelu, x), gelu,
                std::abs(gelu) * (5e-7 + d * d * 0x1p-24) + 2e-37);
    EXPECT_NEAR(reference::Activate(Activation::kGeluTanh, x), gelu_tanh, 2e-6);
    EXPECT_NEAR(reference::Activate(Activation::kTanh, x), std::tanh(d), 2e-7);
    EXPECT_EQ(reference::Activate(Activation::kRelu, x), std::max(x, 0.0f));
  }
}

TEST_P(RowwiseTest, Rotate) {
  constexpr int32_t kHeads = 3;
  // With 0, the whole head is rotated.
  for (const auto& [head_dim, rotary_dim] : {std::pair{2, 0},
                                             {8, 0},
                                             {20, 0},
                                             {32, 0},
                                             {64, 0},
                                             {80, 0},
                                             {96, 0},
                                             {128, 0},
                                             {8, 2},
                                             {20, 14},
                                             {80, 40},
                                             {96, 94},
                                             {128, 96}}) {
    for (const auto& [normed, rotated] : {std::pair{false, true}, {true, true}, {false, false}}) {
      const std::vector<float> x = Values(kHeads * head_dim), norm = Values(head_dim);
      const std::vector<float> cos = Values(head_dim / 2), sin = Values(head_dim / 2);
      const int32_t num_rotated = rotary_dim > 0 ? rotary_dim : head_dim;
      std::vector<float> expected = x;
      for (int32_t h = 0; h < kHeads; ++h) {
        const std::span head(&expected[h * head_dim], head_dim);
        if (normed) reference::RmsNorm(head, norm.data(), 1e-6f, head.data());
        if (rotated) reference::Rope(head.first(num_rotated), cos.data(), sin.data());
      }
      for (DType dtype : {DType::kF32, DType::kBf16}) {
        TypedArray out(x, dtype);
        kernels_->Rotate({.x = x.data(),
                          .norm = normed ? norm.data() : nullptr,
                          .eps = 1e-6f,
                          .cos = rotated ? cos.data() : nullptr,
                          .sin = rotated ? sin.data() : nullptr,
                          .num_heads = kHeads,
                          .head_dim = head_dim,
                          .rotary_dim = rotary_dim,
                          .out = out.At(0),
                          .dtype = dtype});
        EXPECT_TRUE(SameBits(out.Values(), Rounded(expected, dtype))) << head_dim;
      }
    }
  }
}

TEST_P(RowwiseTest, SiluMul) {
  for (int32_t n : kSizes) {
    for (DType dtype : {DType::kF32, DType::kBf16}) {
      std::vector<float> gate = Values(n);
      for (float& x : gate) x *= 8;
      const std::vector<float> up = Values(n);
      std::vector<float> expected(n);
      reference::SiluMul(gate, up.data(), expected.data());
      TypedArray out(up, dtype);
      kernels_->SiluMul(gate.data(), up.data(), n, out.At(0), dtype);
      EXPECT_TRUE(SameBits(out.Values(), Rounded(expected, dtype))) << n;
    }
  }
}

TEST_P(RowwiseTest, SoftCap) {
  for (int32_t n : kSizes) {
    for (const float cap : {0.5f, 5.0f, 30.0f}) {
      std::vector<float> x = Values(n);
      for (float& value : x) value *= 8;
      std::vector<float> expected = x, capped = x;
      reference::SoftCap(expected, cap);
      kernels_->SoftCap(capped.data(), n, cap);
      EXPECT_TRUE(SameBits(capped, expected)) << n;
      for (int32_t i = 0; i < n; ++i) {
        EXPECT_NEAR(capped[i], cap * std::tanh(double{x[i]} / cap), 3e-7 * cap) << x[i];
      }
    }
  }
}

TEST_P(RowwiseTest, ConvertRoundsToNearestEvenAndKeepsNaN) {
  for (int32_t n : kSizes) {
    std::vector<float> x = Values(n);
    for (float& value : x) {  // ties, NaN with low bits only, the largest numbers
      switch (random_.Integer(0, 5)) {
        case 0:
          value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) | 0x8000u);
          break;
        case 1:
          value = std::bit_cast<float>(0x7f800001u);
          break;
        case 2:
          value = std::numeric_limits<float>::max();
          break;
        case 3:
          value = -kInfinity;
          break;
        default:
          break;
      }
    }
    for (DType dtype : {DType::kF32, DType::kBf16}) {
      TypedArray out(std::vector<float>(n), dtype);
      kernels_->Convert(x.data(), n, out.At(0), dtype);
      const TypedArray expected(x, dtype);
      EXPECT_EQ(std::memcmp(out.data(), expected.data(), n * SizeOf(dtype)), 0) << n;
    }
  }
}

TEST_P(RowwiseTest, ExpShiftedEqualsTheReferenceAndIsZeroBelowTheNormalNumbers) {
  std::vector<float> x = {0.0f,   -0.0f,   1.0f,    -87.33654f, -87.33655f, -88.0f,
                          88.72f, 88.723f, 1e30f,   -1e30f,     kInfinity,  -kInfinity,
                          kNaN,   1e-40f,  -1e-30f, 0.34657f,   0.34658f,   -0.34658f};
  for (int i = 0; i < 5000; ++i) x.push_back(random_.Float(Range::kPlain) * 30.0f);
  std::vector<float> out(x.size()), expected(x.size());
  for (float shift : {0.0f, 3.25f}) {
    kernels_->ExpShifted(x.data(), shift, static_cast<int32_t>(x.size()), out.data());
    for (size_t i = 0; i < x.size(); ++i) expected[i] = reference::Exp(x[i] - shift);
    EXPECT_TRUE(SameBits(out, expected)) << shift;
  }
  for (float y : expected) EXPECT_FALSE(std::fpclassify(y) == FP_SUBNORMAL);
}

TEST_P(RowwiseTest, LogSumExp) {
  for (int32_t n : kSizes) {
    for (int round = 0; round < 3; ++round) {
      std::vector<float> x = random_.Floats(n, DType::kF32, Range::kPlain);
      if (round == 1 && n > 1) x[random_.Integer(0, n - 1)] = -kInfinity;
      if (round == 2) {
        for (float& value : x) value = std::round(value);
      }
      const float max = reference::FindLargest(x).max;
      EXPECT_TRUE(SameBits(kernels_->LogSumExp(x.data(), max, n), reference::LogSumExp(x, max)))
          << n << " " << round;
    }
  }
}

// Compares the reference functions with the library's in double.
TEST(RowwiseReferenceTest, ExpIsAccurate) {
  RandomValues random;
  double worst_ulp = 0;
  for (int i = 0; i < 200000; ++i) {
    const float x = static_cast<float>(random.Integer(-8733654, 8872283)) * 1e-5f;
    const double exact = std::exp(double{x});
    const double ulp = std::ldexp(1.0, std::ilogb(static_cast<float>(exact)) - 23);
    worst_ulp = std::max(worst_ulp, std::abs(reference::Exp(x) - exact) / ulp);
  }
  EXPECT_LT(worst_ulp, 1.0);
}

TEST(RowwiseReferenceTest, LogSumExpIsAccurateOverAVocabulary) {
  RandomValues random;
  const std::vector<float> x = random.Floats(151936, DType::kF32, Range::kPlain);
  double sum = 0;
  for (float value : x) sum += std::exp(double{value});
  EXPECT_NEAR(reference::LogSumExp(x, reference::FindLargest(x).max), std::log(sum), 2e-6);
}

INSTANTIATE_TEST_SUITE_P(Here, RowwiseTest, ::testing::ValuesIn(IsasHere()), testing::IsaName);

}  // namespace
}  // namespace skein
