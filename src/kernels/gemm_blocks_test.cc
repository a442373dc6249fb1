#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <tuple>
#include <vector>

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

constexpr BlockFormat kFormats[] = {BlockFormat::kQ4_0,  BlockFormat::kQ4_1, BlockFormat::kQ5_0,
                                    BlockFormat::kQ5_1,  BlockFormat::kQ8_0, BlockFormat::kQ4K,
                                    BlockFormat::kQ5K,   BlockFormat::kQ6K,  BlockFormat::kIq4Nl,
                                    BlockFormat::kIq4Xs, BlockFormat::kInt4, BlockFormat::kMxfp4};

class GemmBlocksTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { kernels_ = MakeCpuKernels(GetParam()); }

  // Makes rows of blocks as in a file. All bytes are random except the scales. These are usual
  // numbers; with an extreme range, also denormals, zeros, infinities and NaN.
  std::vector<std::byte> FileRows(BlockFormat format, int32_t n, int32_t k, Range range) {
    const BlockTraits& traits = TraitsOf(format);
    std::vector<std::byte> rows(size_t(n) * (k / traits.file_elements) * traits.file_bytes);
    for (std::byte& byte : rows) byte = static_cast<std::byte>(random_.Integer(0, 255));
    for (size_t at = 0; at < rows.size(); at += traits.file_bytes) {
      if (format == BlockFormat::kMxfp4) {
        const bool plain = range == Range::kPlain;
        rows[at] = static_cast<std::byte>(random_.Integer(plain ? 118 : 0, plain ? 128 : 255));
        continue;
      }
      PutHalf(range, &rows[at + (format == BlockFormat::kQ6K ? 208 : 0)]);
      if (traits.has_minimum()) PutHalf(range, &rows[at + 2]);
    }
    return rows;
  }

  PackedWeight Packed(const std::vector<BlockFormat>& formats, int32_t n, int32_t k,
                      Range range = Range::kPlain) {
    PackedWeight weight(n, k, formats);
    for (int32_t row = 0; row < n; row += kPanelCols) {
      const int32_t count = std::min(kPanelCols, n - row);
      const BlockFormat format = formats[row / kPanelCols];
      weight.PackBlocks(row, count, FileRows(format, count, k, range).data(), format);
    }
    return weight;
  }
  PackedWeight Packed(BlockFormat format, int32_t n, int32_t k, Range range = Range::kPlain) {
    return Packed(std::vector<BlockFormat>((n + kPanelCols - 1) / kPanelCols, format), n, k, range);
  }

  struct Rows {
    std::vector<int8_t> q;  // [m, lda]
    std::vector<RowBlock> blocks;
    int64_t lda;
  };
  // Quantizes a [m, k] to rows of k + 32 elements. The elements behind each row are -128, which no
  // row contains.
  Rows Quantize(const std::vector<float>& a, int32_t m, int32_t k) const {
    const int64_t lda = k + kBlockTerms;
    Rows rows = {std::vector<int8_t>(m * lda, int8_t{-128}),
                 std::vector<RowBlock>(m * lda / kBlockTerms), lda};
    for (int32_t r = 0; r < m; ++r) {
      kernels_->QuantizeBlocks(&a[size_t(r) * k], DType::kF32, k, &rows.q[r * lda],
                               &rows.blocks[r * lda / kBlockTerms]);
    }
    return rows;
  }

  ::testing::AssertionResult Check(const PackedWeight& w, int32_t m, Range range = Range::kPlain,
                                   bool biased = false, bool add_to_out = false, int32_t cut = 0) {
    return CheckRows(w, m, random_.Floats(size_t(m) * w.k(), DType::kF32, range), biased,
                     add_to_out, cut);
  }

  ::testing::AssertionResult CheckRows(const PackedWeight& w, int32_t m,
                                       const std::vector<float>& a, bool biased = false,
                                       bool add_to_out = false, int32_t cut = 0) {
    const std::vector<float> bias = random_.Floats(w.n(), DType::kF32, Range::kPlain);
    std::vector<float> expected = random_.Floats(size_t(m) * w.n(), DType::kF32, Range::kPlain);
    std::vector<float> out = expected;
    const Rows rows = Quantize(a, m, w.k());
    GemmCall call = {.a = rows.q.data(),
                     .lda = rows.lda,
                     .a_blocks = rows.blocks.data(),
                     .m = m,
                     .w = &w,
                     .n_end = w.n(),
                     .bias = biased ? bias.data() : nullptr,
                     .add_to_out = add_to_out,
                     .out = out.data(),
                     .ldo = w.n()};
    if (cut > 0 && cut < w.n()) {
      call.n_end = cut;
      kernels_->Gemm(call);
      call.n_begin = cut;
      call.n_end = w.n();
    }
    kernels_->Gemm(call);
    reference::GemmBlocks({m, w.n(), w.k()}, a.data(), w, call.bias, add_to_out, expected.data());
    return SameBits(out, expected) << " (m " << m << ", n " << w.n() << ", k " << w.k() << ")";
  }

  const testing::IsaEmulation emulation_{GetParam()};
  RandomValues random_;
  std::unique_ptr<Kernels> kernels_;

 private:
  void PutHalf(Range range, std::byte* to) {
    F16 half = ToF16(random_.Float(Range::kPlain) * 0.01f);
    if (range == Range::kExtreme && random_.Integer(0, 7) == 0) {
      half.bits = static_cast<uint16_t>(random_.Integer(0, 0xffff));
    }
    std::memcpy(to, &half, sizeof(half));
  }
};

TEST_P(GemmBlocksTest, EveryFormatEqualsTheReference) {
  for (const BlockFormat format : kFormats) {
    SCOPED_TRACE(TraitsOf(format).name);
    const int32_t unit = TraitsOf(format).file_elements;
    for (int32_t m : {1, 2, 3, 4, 5, 6, 9, 10, 11, 17}) {
      for (int32_t n : {1, 16, 31}) {
        for (int32_t k : {unit, 3 * unit}) EXPECT_TRUE(Check(Packed(format, n, k), m));
      }
    }
    EXPECT_TRUE(Check(Packed(format, 20, 1280), 4));
  }
}

TEST_P(GemmBlocksTest, ExtremeScalesAndRows) {
  for (const BlockFormat format : kFormats) {
    SCOPED_TRACE(TraitsOf(format).name);
    for (int i = 0; i < 6; ++i) {
      const int32_t n = random_.Integer(1, 70), k = 256 * random_.Integer(1, 3);
      const int32_t cut = random_.Integer(0, n / kPanelCols) * kPanelCols;
      const PackedWeight w = Packed(format, n, k, Range::kExtreme);
      EXPECT_TRUE(Check(w, random_.Integer(1, 20), Range::kExtreme, random_.Integer(0, 1) == 1,
                        random_.Integer(0, 1) == 1, cut));
    }
  }
}

TEST_P(GemmBlocksTest, PanelsOfOneMatrixMayDiffer) {
  const std::vector<BlockFormat> formats(std::begin(kFormats), std::end(kFormats));
  const auto n = static_cast<int32_t>(formats.size()) * kPanelCols;
  for (int32_t m : {1, 6, 12, 20}) {
    EXPECT_TRUE(Check(Packed(formats, n, 512), m, Range::kPlain, true));
  }
}

// AVX2 has special kernels for panels with signed values, and for a single row of Q8_0.
TEST_P(GemmBlocksTest, PanelsOfSignedValuesMayDiffer) {
  using enum BlockFormat;
  const std::vector<BlockFormat> formats = {kQ8_0,  kQ8_0, kQ8_0, kQ8_0,  kQ8_0, kQ8_0, kIq4Nl,
                                            kIq4Nl, kQ8_0, kQ8_0, kIq4Xs, kQ8_0, kQ8_0};
  const int32_t n = static_cast<int32_t>(formats.size()) * kPanelCols - 3;
  for (int32_t m : {1, 8, 11, 99}) {
    EXPECT_TRUE(Check(Packed(formats, n, 768), m, Range::kPlain, true, true, 2 * kPanelCols));
  }
  EXPECT_TRUE(Check(Packed(kQ8_0, 61, 256), 1, Range::kExtreme, true));
}

// The blocks of k are whole chunks or tiles of the kernels and a part of one.
TEST_P(GemmBlocksTest, AnyNumberOfBlocks) {
  for (const BlockFormat format : kFormats) {
    if (TraitsOf(format).file_elements != kBlockTerms) continue;
    SCOPED_TRACE(TraitsOf(format).name);
    for (int32_t m : {1, 3, 13, 18, 97}) {
      for (int32_t blocks : {11, 21}) {
        EXPECT_TRUE(Check(Packed(format, 70, blocks * kBlockTerms), m));
      }
    }
  }
}

TEST_P(GemmBlocksTest, ManyRows) {
  if (GetParam() == Isa::kScalar || emulation_.active()) GTEST_SKIP() << "takes too long";
  for (const BlockFormat format : kFormats) {
    EXPECT_TRUE(Check(Packed(format, 40, 512), 299, Range::kPlain, true, true));
  }
  EXPECT_TRUE(Check(Packed(BlockFormat::kQ4K, 20, 9728), 90));
  EXPECT_TRUE(Check(Packed(BlockFormat::kQ8_0, 3, 41216), 17));
}

// Tests the largest integer sums that a format can give, of either sign.
TEST_P(GemmBlocksTest, NoSumOverflows) {
  for (const BlockFormat format : kFormats) {
    SCOPED_TRACE(TraitsOf(format).name);
    for (const int fill : {0x00, 0x7f, 0x80, 0xff}) {
      const int32_t n = 4 * kPanelCols;
      std::vector<std::byte> rows = FileRows(format, n, 256, Range::kPlain);
      const BlockTraits& traits = TraitsOf(format);
      for (size_t at = 0; at < rows.size(); ++at) {
        const auto in_block = static_cast<int32_t>(at % traits.file_bytes);
        const bool is_half = format == BlockFormat::kQ6K ? in_block >= 208 : in_block < 4;
        if (!is_half) rows[at] = static_cast<std::byte>(fill);
      }
      PackedWeight w(n, 256, std::vector<BlockFormat>(4, format));
      w.PackBlocks(0, n, rows.data(), format);
      for (const float sign : {1.0f, -1.0f}) {
        for (const int32_t m : {1, 5, 9, 16}) {
          EXPECT_TRUE(CheckRows(w, m, std::vector<float>(size_t(m) * 256, sign)));
        }
      }
    }
  }
}

// A NaN or an infinity in a row reaches all results of that row, and no others.
TEST_P(GemmBlocksTest, RowsThatAreNoNumbersStaySo) {
  const int32_t k = 256;
  for (const int32_t m : {5, 9, 17}) {
    std::vector<float> a = random_.Floats(size_t(m) * k, DType::kF32, Range::kPlain);
    a[1 * k + 3] = std::numeric_limits<float>::quiet_NaN();
    a[3 * k + 255] = -std::numeric_limits<float>::infinity();
    std::fill_n(&a[4 * k], k, 1e-38f);  // tiny values become zeros
    for (const BlockFormat format : kFormats) {
      EXPECT_TRUE(CheckRows(Packed(format, 20, k), m, a, true));
    }
  }
}

TEST_P(GemmBlocksTest, ARowAloneEqualsTheRowAmongOthers) {
  const int32_t m = 37, n = 90, k = 512;
  for (const BlockFormat format : kFormats) {
    const Rows rows = Quantize(random_.Floats(size_t(m) * k, DType::kF32, Range::kPlain), m, k);
    const PackedWeight w = Packed(format, n, k);
    std::vector<float> all(size_t(m) * n), one(n);
    GemmCall call = {.a = rows.q.data(),
                     .lda = rows.lda,
                     .a_blocks = rows.blocks.data(),
                     .m = m,
                     .w = &w,
                     .n_end = n,
                     .out = all.data(),
                     .ldo = n};
    kernels_->Gemm(call);
    for (int32_t r = 0; r < m; ++r) {
      call.a = &rows.q[r * rows.lda];
      call.a_blocks = &rows.blocks[r * rows.lda / kBlockTerms];
      call.m = 1;
      call.out = one.data();
      kernels_->Gemm(call);
      EXPECT_TRUE(SameBits(one, {all.begin() + r * n, all.begin() + (r + 1) * n})) << "row " << r;
    }
  }
}

TEST_P(GemmBlocksTest, SwiGluIsTheProductsAndThenSiluMul) {
  const int32_t half = 80, k = 256;
  for (const BlockFormat format : {BlockFormat::kQ4K, BlockFormat::kQ8_0}) {
    for (const int32_t m : {1, 19}) {
      SCOPED_TRACE(::testing::Message() << TraitsOf(format).name << ", " << m << " rows");
      const Rows rows = Quantize(random_.Floats(size_t(m) * k, DType::kF32, Range::kPlain), m, k);
      const PackedWeight w = Packed(format, 2 * half, k);
      std::vector<float> both(size_t(m) * 2 * half), expected(size_t(m) * half), out(expected);
      GemmCall call = {.a = rows.q.data(),
                       .lda = rows.lda,
                       .a_blocks = rows.blocks.data(),
                       .m = m,
                       .w = &w,
                       .n_end = 2 * half,
                       .out = both.data(),
                       .ldo = 2 * half};
      kernels_->Gemm(call);
      for (int32_t r = 0; r < m; ++r) {
        const float* gate = &both[size_t(r) * 2 * half];
        kernels_->SiluMul(gate, gate + half, half, &expected[size_t(r) * half], DType::kF32);
      }
      call.up_begin = half;
      call.activation = Activation::kSilu;
      call.n_end = half;
      call.out = out.data();
      call.ldo = half;
      kernels_->Gemm(call);
      EXPECT_TRUE(SameBits(out, expected));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Here, GemmBlocksTest,
                         ::testing::ValuesIn(testing::IntegerIsasHereOrEmulated()),
                         testing::IsaName);

}  // namespace
}  // namespace skein
