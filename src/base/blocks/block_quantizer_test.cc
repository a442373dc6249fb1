#include "base/blocks/block_quantizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/blocks/quantize_q4.h"
#include "base/dtype.h"
#include "base/random.h"

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

TEST_P(QuantizeBlocksTest, ABlockHasTheSameBytesInAnyRow) {
  const auto width = static_cast<size_t>(traits().file_elements);
  const auto bytes = static_cast<size_t>(traits().file_bytes);
  constexpr size_t kBlocks = 11;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> x(kBlocks * width);
  for (float& e : x) e = normal(random);
  x[6 * width] = std::numeric_limits<float>::infinity();
  std::vector<std::byte> row(kBlocks * bytes), block(bytes);
  QuantizeBlocks(GetParam(), x, row.data());
  for (size_t i = 0; i < kBlocks; ++i) {
    QuantizeBlocks(GetParam(), std::span(x).subspan(i * width, width), block.data());
    EXPECT_TRUE(std::equal(block.begin(), block.end(), &row[i * bytes])) << "block " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, QuantizeBlocksTest,
                         ::testing::Values(BlockFormat::kQ8_0, BlockFormat::kQ4_0,
                                           BlockFormat::kQ4K),
                         [](const auto& param) { return std::string(TraitsOf(param.param).name); });

// The block of the best of nine scales, by one scalar at a time.
std::vector<std::byte> ReferenceQ4(std::span<const float> x) {
  const float extreme =
      *std::ranges::max_element(x, [](float a, float b) { return std::abs(a) < std::abs(b); });
  std::vector<std::byte> best(18);
  float least_error = 0;
  for (int candidate = 0; candidate < 9; ++candidate) {
    const F16 half = ToF16(extreme / -(7.0f + 0.25f * static_cast<float>(candidate)));
    const float scale = ToFloat(half), inverse = scale == 0 ? 0 : 1 / scale;
    std::vector<std::byte> block(18);
    std::memcpy(block.data(), &half, 2);
    float error = 0;
    for (int i = 0; i < 32; ++i) {
      const float step = std::nearbyint(std::clamp(x[i] * inverse, -8.0f, 7.0f));
      const float miss = x[i] - scale * step;
      error += miss * miss;
      block[2 + i % 16] |= static_cast<std::byte>(static_cast<int>(step) + 8) << i / 16 * 4;
    }
    if (candidate > 0 && !(error < least_error)) continue;
    least_error = error;
    best = block;
  }
  return best;
}

TEST(QuantizeQ4Test, TheBestOfNineScalesIsUsed) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> x(32);
  std::vector<std::byte> block(18);
  // Scales of F16: denormal, normal, rounded to infinity; and equal magnitudes of both signs.
  for (const float size : {1e-8f, 1e-5f, 3e-4f, 0.02f, 1.0f, 1e5f, 2e5f, 1e8f, 0.0f, -0.0f}) {
    for (int round = 0; round < 50; ++round) {
      for (float& e : x) e = size * (round % 2 ? normal(random) : std::round(normal(random)));
      QuantizeBlocks(BlockFormat::kQ4_0, x, block.data());
      EXPECT_EQ(block, ReferenceQ4(x)) << size << ", round " << round;
    }
  }
}

// Vectors of every width that this processor has write the same bytes, for blocks of ordinary
// elements, of zeros, and with scales that are denormal or infinite in F16.
TEST(QuantizeQ4Test, VectorsOfAnyWidthGiveTheSameBytes) {
  constexpr int32_t kBytes = 18;
  Random random(3);
  for (int32_t count = 1; count <= kMostQ4Lanes; ++count) {
    std::vector<float> x(size_t(count) * kBlockTerms);
    for (size_t i = 0; i < x.size(); ++i) {
      const int64_t kind = count % 2 == 0 ? 0 : static_cast<int64_t>(i / kBlockTerms) % 4;
      const float size = kind == 0 ? 0.1f : kind == 1 ? 0.0f : kind == 2 ? 1e-6f : 1e6f;
      x[i] = size * static_cast<float>(2 * random.Uniform() - 1);
    }
    const auto quantize = [&](int32_t lanes) {
      std::vector<std::byte> bytes(size_t(count) * kBytes);
      for (int32_t first = 0; first < count; first += lanes) {
        BlocksQ4 blocks;
        for (; blocks.count < std::min(lanes, count - first); ++blocks.count) {
          blocks.x[blocks.count] = &x[size_t(first + blocks.count) * kBlockTerms];
          blocks.out[blocks.count] = &bytes[size_t(first + blocks.count) * kBytes];
        }
        QuantizeQ4(blocks, lanes);
      }
      return bytes;
    };
    const std::vector<std::byte> narrow = quantize(4);
    for (int32_t lanes = 8; lanes <= LanesQ4(); lanes *= 2) {
      EXPECT_EQ(quantize(lanes), narrow) << lanes << " lanes, " << count << " blocks";
    }
  }
}

TEST(QuantizeQ8Test, ElementsAreTheNearestMultiplesOfTheScale) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> x(32);
  std::vector<std::byte> block(34), expected(34);
  // Scales of F16: 0, denormal (some of which are too small for the largest element), normal,
  // infinite.
  for (const float size : {1e-8f, 2e-6f, 1e-5f, 3e-4f, 1.0f, 2e6f, 1e8f}) {
    for (int round = 0; round < 50; ++round) {
      for (float& e : x) e = size * (round % 2 ? normal(random) : std::round(normal(random)));
      float largest = 0.0f;
      for (const float e : x) largest = std::max(largest, std::abs(e));
      const F16 half = ToF16(largest / 127.0f);
      const float scale = ToFloat(half), inverse = scale == 0.0f ? 0.0f : 1.0f / scale;
      std::memcpy(expected.data(), &half, sizeof(half));
      for (int32_t i = 0; i < kBlockTerms; ++i) {
        const float q = std::clamp(std::nearbyint(x[i] * inverse), -127.0f, 127.0f);
        expected[2 + i] = static_cast<std::byte>(static_cast<int8_t>(q));
      }
      QuantizeBlocks(BlockFormat::kQ8_0, x, block.data());
      EXPECT_EQ(block, expected) << size << ", round " << round;
    }
  }
}

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
