#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "cuda/kernels/launches.h"
#include "kernels/packed_weight.h"
#include "kernels/reference.h"
#include "testing/cuda_launch.h"

namespace skein::cuda {
namespace {

using testing::ExpectSameInAnyOrder;
using testing::RandomValues;
using testing::Range;
using testing::SameBits;
using testing::TypedArray;

constexpr DType kTypes[] = {DType::kF32, DType::kBf16};

TEST(RowKernels, RmsNormHasTheProcessorsBits) {
  RandomValues random;
  for (const DType dtype : kTypes) {
    for (const int32_t width : {1, 15, 16, 17, 40, 64, 333, 1024}) {
      for (const Range range : {Range::kPlain, Range::kExtreme}) {
        const int32_t num_rows = random.Integer(1, 20);
        const std::vector<float> x = random.Floats(num_rows * width, DType::kF32, range);
        const std::vector<float> weight = random.Floats(width, DType::kF32, Range::kPlain);
        std::vector<int32_t> rows;
        for (int32_t i = 0; i < num_rows; ++i) rows.push_back(random.Integer(0, num_rows - 1));
        const int64_t ldo = PaddedWidth(width, dtype);
        TypedArray out(std::vector<float>(num_rows * ldo, 7.0f), dtype);
        ExpectSameInAnyOrder(
            RmsNormLaunch(dtype, {.x = x.data(),
                                  .rows = rows.data(),
                                  .weight = weight.data(),
                                  .num_rows = num_rows,
                                  .width = width,
                                  .eps = 1e-6f,
                                  .out = out.At(0),
                                  .ldo = ldo}),
            std::span(static_cast<std::byte*>(out.At(0)), num_rows * ldo * SizeOf(dtype)));
        std::vector<float> expected(num_rows * ldo, 7.0f);
        for (int32_t i = 0; i < num_rows; ++i) {
          reference::RmsNorm({&x[rows[i] * width], size_t(width)}, weight.data(), 1e-6f,
                             &expected[i * ldo]);
        }
        EXPECT_TRUE(SameBits(out.Values(), TypedArray(expected, dtype).Values())) << width;
      }
    }
  }
}

TEST(RowKernels, QuantizeHasTheProcessorsBits) {
  RandomValues random;
  for (const DType dtype : kTypes) {
    for (const int32_t width : {1, 16, 31, 64, 100}) {
      const int32_t num_rows = 11;
      std::vector<float> x = random.Floats(num_rows * width, dtype, Range::kExtreme);
      std::fill_n(x.begin(), width, 0.0f);                         // a row of zeros
      x[width] = std::numeric_limits<float>::quiet_NaN();          // a row with a NaN
      x[3 * width - 1] = -std::numeric_limits<float>::infinity();  // and with an infinity
      for (int32_t i = 3 * width; i < 4 * width; ++i) x[i] *= 0x1p-126f;
      for (float& e : x) e = dtype == DType::kBf16 ? ToFloat(ToBf16(e)) : e;
      const int64_t ldo = PaddedWidth(width, DType::kInt8);
      TypedArray in(x, dtype);
      std::vector<int8_t> out(num_rows * ldo, 5), expected(num_rows * ldo, 5);
      std::vector<float> scales(num_rows), expected_scales;
      ExpectSameInAnyOrder(QuantizeLaunch(dtype, {.x = in.data(),
                                                  .ldx = width,
                                                  .num_rows = num_rows,
                                                  .width = width,
                                                  .out = out.data(),
                                                  .ldo = ldo,
                                                  .scales = scales.data()}),
                           std::span(out));
      for (int32_t i = 0; i < num_rows; ++i) {
        expected_scales.push_back(
            reference::Quantize({&x[i * width], size_t(width)}, &expected[i * ldo]));
      }
      EXPECT_EQ(out, expected) << width;
      EXPECT_TRUE(SameBits(scales, expected_scales)) << width;
    }
  }
}

TEST(RowKernels, EmbeddingsComeFromRowsAndFromPanels) {
  RandomValues random;
  for (const DType dtype : {DType::kF32, DType::kBf16, DType::kInt8}) {
    for (const bool panels : {false, true}) {
      if (dtype == DType::kInt8 && !panels) continue;
      const int32_t vocab = 37, hidden = random.Integer(1, 200), num_tokens = 9;
      const DType file = dtype == DType::kInt8 ? DType::kF32 : dtype;
      const std::vector<float> table = random.Floats(vocab * hidden, file, Range::kPlain);
      PackedWeight packed(vocab, hidden, dtype);
      packed.PackRows(0, vocab, TypedArray(table, file).data(), file);
      const TypedArray rows(table, file);
      std::vector<int32_t> tokens;
      std::vector<float> expected;
      const float scale = panels ? 1.0f : 1.5f;
      for (int32_t i = 0; i < num_tokens; ++i) {
        tokens.push_back(random.Integer(0, vocab - 1));
        std::vector<float> row(hidden);
        packed.UnpackRow(tokens.back(), row.data());
        for (const float e : row) expected.push_back(e * scale);
      }
      std::vector<float> x(num_tokens * hidden);
      ExpectSameInAnyOrder(
          EmbedLaunch(dtype, panels,
                      {.tokens = tokens.data(),
                       .table = panels ? packed.panel(0) : rows.data(),
                       .scales = dtype == DType::kInt8 ? packed.scales() : nullptr,
                       .num_tokens = num_tokens,
                       .hidden = hidden,
                       .words = static_cast<int32_t>(packed.k_padded() * SizeOf(dtype) / 4),
                       .scale = scale,
                       .x = x.data()}),
          std::span(x));
      EXPECT_TRUE(SameBits(x, expected)) << NameOf(dtype);
    }
  }
}

}  // namespace
}  // namespace skein::cuda
