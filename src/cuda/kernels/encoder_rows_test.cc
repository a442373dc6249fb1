#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/fp_mode.h"
#include "cuda/kernels/launches.h"
#include "kernels/reference.h"
#include "testing/cuda_launch.h"

namespace skein::cuda {
namespace {

using testing::ExpectSameInAnyOrder;
using testing::RandomValues;
using testing::Range;
using testing::SameBits;
using testing::TypedArray;

constexpr DType kNormTypes[] = {DType::kF32, DType::kBf16};
// The last one needs more than one part of a block's shared memory.
constexpr int32_t kRowWidths[] = {4, 30, 384, 1030, 4096, 5000};
constexpr float kNormEps = 1e-5f;

// Rows of x that lie apart, some of which are normed.
class Norms {
 public:
  Norms(RandomValues& random, int32_t width, Range range)
      : width_(width),
        ldx_(width + 4 * random.Integer(0, 1)),
        num_rows_(random.Integer(1, width > 1000 ? 2 : 6)),
        x_(random.Floats((num_rows_ + 1) * ldx_, DType::kF32, range)),
        weight_(random.Floats(width, DType::kF32, Range::kPlain)),
        bias_(random.Floats(width, DType::kF32, Range::kPlain)) {
    for (int32_t i = 0; i < num_rows_; ++i) rows_.push_back(random.Integer(0, num_rows_));
  }

  LayerNormArgs Args(bool chooses_rows) const {
    return {.x = x_.data(),
            .ldx = ldx_,
            .rows = chooses_rows ? rows_.data() : nullptr,
            .weight = weight_.data(),
            .bias = bias_.data(),
            .num_rows = num_rows_,
            .width = width_,
            .eps = kNormEps};
  }
  // Rows of `ld` elements, `behind` in those that are not the row's.
  std::vector<float> Expected(bool chooses_rows, int64_t ld, float behind) const {
    std::vector<float> expected(num_rows_ * ld, behind);
    for (int32_t i = 0; i < num_rows_; ++i) {
      const size_t row = chooses_rows ? rows_[i] : i;
      reference::LayerNorm({&x_[row * ldx_], size_t(width_)}, weight_.data(), bias_.data(),
                           kNormEps, &expected[i * ld]);
    }
    return expected;
  }

  int32_t width() const { return width_; }
  int32_t num_rows() const { return num_rows_; }

 private:
  int32_t width_, ldx_, num_rows_;
  std::vector<float> x_, weight_, bias_;
  std::vector<int32_t> rows_;
};

// Runs the kernel with results in f32, rounded, or both.
void CheckNorms(const Norms& norms, DType dtype, bool chooses_rows, bool keeps, bool rounds) {
  const int64_t ldo = PaddedWidth(norms.width(), dtype);
  // The results in f32, and those of `dtype` behind them.
  const size_t kept = size_t(norms.num_rows()) * norms.width() * sizeof(float);
  std::vector<std::byte> memory(kept + norms.num_rows() * ldo * SizeOf(dtype), std::byte{0x41});
  std::vector<std::byte> expected = memory;
  const auto fill = [&](const TypedArray& values, size_t at, size_t bytes) {
    std::copy_n(static_cast<const std::byte*>(values.data()), bytes, expected.begin() + at);
  };
  LayerNormArgs args = norms.Args(chooses_rows);
  if (keeps) {
    args.normed = reinterpret_cast<float*>(memory.data());
    fill({norms.Expected(chooses_rows, norms.width(), 0.0f), DType::kF32}, 0, kept);
  }
  if (rounds) {
    args.out = memory.data() + kept;
    args.ldo = ldo;
    float behind = 0.0f;
    std::fill_n(reinterpret_cast<std::byte*>(&behind), sizeof(behind), std::byte{0x41});
    fill({norms.Expected(chooses_rows, ldo, behind), dtype}, kept, memory.size() - kept);
  }
  ExpectSameInAnyOrder(LayerNormLaunch(dtype, args), std::span(memory));
  EXPECT_TRUE(memory == expected) << norms.width() << " " << NameOf(dtype) << chooses_rows << keeps
                                  << rounds << ", seed " << testing::TestSeed();
}

TEST(EncoderRows, LayerNormHasTheProcessorsBits) {
  RandomValues random;
  for (const DType dtype : kNormTypes) {
    for (const int32_t width : kRowWidths) {
      for (const Range range : {Range::kPlain, Range::kExtreme}) {
        const Norms norms(random, width, range);
        CheckNorms(norms, dtype, random.Integer(0, 1) == 1, true, false);
        CheckNorms(norms, dtype, false, false, true);
        CheckNorms(norms, dtype, true, true, true);
      }
    }
  }
}

// The result takes the place of the row, as where a norm begins the residual stream anew.
TEST(EncoderRows, LayerNormWorksInPlace) {
  RandomValues random;
  for (const int32_t width : kRowWidths) {
    const int32_t num_rows = 2;
    std::vector<float> x = random.Floats(num_rows * width, DType::kF32, Range::kPlain);
    const std::vector<float> weight = random.Floats(width, DType::kF32, Range::kPlain);
    const std::vector<float> bias = random.Floats(width, DType::kF32, Range::kPlain);
    std::vector<float> expected = x;
    for (int32_t i = 0; i < num_rows; ++i) {
      float* const row = &expected[i * width];
      reference::LayerNorm({row, size_t(width)}, weight.data(), bias.data(), kNormEps, row);
    }
    TypedArray out(std::vector<float>(num_rows * width, 7.0f), DType::kBf16);
    ExpectSameInAnyOrder(LayerNormLaunch(DType::kBf16, {.x = x.data(),
                                                        .ldx = width,
                                                        .weight = weight.data(),
                                                        .bias = bias.data(),
                                                        .num_rows = num_rows,
                                                        .width = width,
                                                        .eps = kNormEps,
                                                        .normed = x.data(),
                                                        .out = out.At(0),
                                                        .ldo = width}),
                         std::span(x));
    EXPECT_TRUE(SameBits(x, expected)) << width;
    EXPECT_TRUE(SameBits(out.Values(), TypedArray(expected, DType::kBf16).Values())) << width;
  }
}

TEST(EncoderRows, RowsOfATableAreAdded) {
  RandomValues random;
  for (const int32_t width : kRowWidths) {
    const int32_t num_rows = random.Integer(1, 6), num_of_table = random.Integer(1, 4);
    const std::vector<float> table =
        random.Floats(num_of_table * width, DType::kF32, Range::kExtreme);
    std::vector<float> x = random.Floats(num_rows * width, DType::kF32, Range::kExtreme);
    std::vector<int32_t> rows;
    for (int32_t i = 0; i < num_rows; ++i) rows.push_back(random.Integer(0, num_of_table - 1));
    std::vector<float> expected;
    {
      const ScopedFpMode fp_mode;
      for (int32_t i = 0; i < num_rows * width; ++i) {
        expected.push_back(x[i] + table[rows[i / width] * width + i % width]);
      }
    }
    ExpectSameInAnyOrder(AddTableRowsLaunch({.table = table.data(),
                                             .rows = rows.data(),
                                             .num_rows = num_rows,
                                             .width = width,
                                             .x = x.data()}),
                         std::span(x));
    EXPECT_TRUE(SameBits(x, expected)) << width;
  }
}

// Means of as many rows as a thread loads at once, of fewer, and of more.
TEST(EncoderRows, MeansAddTheirRowsInOrder) {
  RandomValues random;
  const std::vector<int32_t> counts = {1, 7, 8, 9, 100};
  for (const int32_t width : {4, 30, 127, 128, 129, 384, 1030}) {
    std::vector<RowsOfMean> rows;
    int32_t num_rows = 3;
    for (const int32_t count : counts) {
      rows.push_back({num_rows, count});
      num_rows += count + random.Integer(0, 2);
    }
    std::swap(rows[0], rows[3]);
    const Range range = width == 129 ? Range::kExtreme : Range::kPlain;
    const std::vector<float> x = random.Floats(num_rows * width, DType::kF32, range);
    std::vector<float> out((counts.size() + 1) * width, 7.0f), expected = out;
    for (size_t i = 0; i < rows.size(); ++i) {
      const ScopedFpMode fp_mode;
      for (int32_t d = 0; d < width; ++d) {
        float sum = 0.0f;
        for (int32_t row = 0; row < rows[i].count; ++row) {
          sum += x[(rows[i].first + row) * width + d];
        }
        expected[i * width + d] = sum / static_cast<float>(rows[i].count);
      }
    }
    ExpectSameInAnyOrder(MeanLaunch({.x = x.data(),
                                     .rows = rows.data(),
                                     .num_means = static_cast<int32_t>(rows.size()),
                                     .width = width,
                                     .out = out.data()}),
                         std::span(out));
    EXPECT_TRUE(SameBits(out, expected)) << width;
  }
}

}  // namespace
}  // namespace skein::cuda
