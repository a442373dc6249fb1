#include "base/block_quantizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace skein {
namespace {

class QuantizeBlocksTest : public ::testing::TestWithParam<BlockFormat> {
 protected:
  const BlockTraits& traits() const { return TraitsOf(GetParam()); }

  // Quantizes x [k] and reads it back.
  std::vector<float> ThereAndBack(const std::vector<float>& x) const {
    const size_t num_blocks = x.size() / traits().file_elements;
    std::vector<std::byte> row(num_blocks * traits().file_bytes);
    QuantizeBlocks(GetParam(), x, row.data());
    std::vector<float> back(x.size());
    DequantizeBlocks(GetParam(), row.data(), static_cast<int64_t>(num_blocks), back.data());
    return back;
  }
};

double SquaredError(const std::vector<float>& x, const std::vector<float>& y) {
  double error = 0;
  for (size_t i = 0; i < x.size(); ++i) error += std::pow(double{x[i]} - y[i], 2);
  return error;
}

// An element may be half a step away from its value, and the scales themselves are rounded.
TEST_P(QuantizeBlocksTest, ErrorsStayBelowAStep) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(1024);
  for (const float shift : {0.0f, 2.0f, -2.0f}) {
    for (float& e : x) e = normal(random) + shift;
    const std::vector<float> back = ThereAndBack(x);
    for (size_t i = 0; i < x.size(); i += 32) {
      float largest = 0.0f, error = 0.0f;
      for (size_t j = i; j < i + 32; ++j) {
        largest = std::max(largest, std::abs(x[j]));
        error = std::max(error, std::abs(x[j] - back[j]));
      }
      EXPECT_LE(error, largest / (traits().bits == 8 ? 250.0f : 7.0f));
    }
  }
}

TEST_P(QuantizeBlocksTest, NumbersOfTheFormatStay) {
  std::vector<float> x(512);
  for (size_t i = 0; i < x.size(); ++i) {
    const auto step = static_cast<float>(i * 7 % 16) - 8.0f;
    // A block's largest number determines its scale.
    const size_t n = i % 32 == 0 ? 0 : i * 37 % 255;
    x[i] = traits().bits == 8 ? 0.5f * static_cast<float>(n) - 63.5f : 0.25f * step;
  }
  const std::vector<float> back = ThereAndBack(x);
  EXPECT_LT(SquaredError(x, back), GetParam() == BlockFormat::kQ4K ? 0.02 : 1e-12);
  EXPECT_EQ(ThereAndBack(std::vector<float>(512, 0.0f)), std::vector<float>(512, 0.0f));
}

TEST_P(QuantizeBlocksTest, ABlockWithANanIsNanAndNoOther) {
  const auto width = static_cast<size_t>(traits().file_elements);
  for (const float stranger :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    std::vector<float> x(2 * width, 1.0f);
    x[5] = stranger;
    const std::vector<float> back = ThereAndBack(x);
    const auto middle = back.begin() + static_cast<int64_t>(width);
    EXPECT_TRUE(std::all_of(back.begin(), middle, [](float e) { return std::isnan(e); }));
    EXPECT_TRUE(
        std::all_of(middle, back.end(), [](float e) { return std::abs(e - 1.0f) < 1e-3f; }));
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, QuantizeBlocksTest,
                         ::testing::Values(BlockFormat::kQ8_0, BlockFormat::kQ4_0,
                                           BlockFormat::kQ4K),
                         [](const auto& param) { return std::string(TraitsOf(param.param).name); });

TEST(QuantizeQ4KTest, MinimumsFitNumbersOfOneSign) {
  // Q4_0 spends half its values on the sign that no element has.
  std::vector<float> x(256);
  for (size_t i = 0; i < x.size(); ++i) x[i] = -1.0f - 0.01f * static_cast<float>(i * 29 % 101);
  std::vector<float> errors;
  for (const BlockFormat format : {BlockFormat::kQ4_0, BlockFormat::kQ4K}) {
    const BlockTraits& traits = TraitsOf(format);
    const int64_t num_blocks = 256 / traits.file_elements;
    std::vector<std::byte> row(static_cast<size_t>(num_blocks * traits.file_bytes));
    QuantizeBlocks(format, x, row.data());
    std::vector<float> back(x.size());
    DequantizeBlocks(format, row.data(), num_blocks, back.data());
    errors.push_back(static_cast<float>(SquaredError(x, back)));
  }
  EXPECT_LT(errors[1], errors[0] / 4);
}

}  // namespace
}  // namespace skein
