#include "base/block_quantizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/block_format.h"

namespace skein {
namespace {

std::vector<float> Back(const std::vector<std::byte>& row, size_t num_elements) {
  std::vector<float> back(num_elements);
  DequantizeBlocks(BlockFormat::kQ4_0, row.data(), static_cast<int64_t>(num_elements / 32),
                   back.data());
  return back;
}

TEST(QuantizeQ4RowTest, ErrorsStayBelowHalfAStep) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(512);
  for (float& e : x) e = normal(random);
  std::vector<std::byte> row(512 / 32 * 18);
  QuantizeQ4Row(x, row.data());
  const std::vector<float> back = Back(row, x.size());
  for (size_t i = 0; i < x.size(); i += 32) {
    float largest = 0.0f, error = 0.0f;
    for (size_t j = i; j < i + 32; ++j) {
      largest = std::max(largest, std::abs(x[j]));
      error = std::max(error, std::abs(x[j] - back[j]));
    }
    EXPECT_LE(error, largest / 7.0f);
  }
}

TEST(QuantizeQ4RowTest, ABlockWithANanIsNanAndNoOther) {
  std::vector<float> x(64, 1.0f);
  x[5] = std::numeric_limits<float>::quiet_NaN();
  std::vector<std::byte> row(64 / 32 * 18);
  QuantizeQ4Row(x, row.data());
  const std::vector<float> back = Back(row, x.size());
  EXPECT_TRUE(std::all_of(back.begin(), back.begin() + 32, [](float e) { return std::isnan(e); }));
  EXPECT_TRUE(std::all_of(back.begin() + 32, back.end(), [](float e) { return e == 1.0f; }));
}

}  // namespace
}  // namespace skein
