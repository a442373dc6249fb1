#include "kernels/block_panel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kernels/packed_weight.h"
#include "testing/random_values.h"

namespace skein {
namespace {

using testing::RandomValues;

class BlockPanelTest : public ::testing::TestWithParam<BlockFormat> {
 protected:
  const BlockTraits& traits() const { return TraitsOf(GetParam()); }
  size_t RowBytes(int32_t k) const {
    return size_t(k / traits().file_elements) * traits().file_bytes;
  }

  // Random bytes, in scales too: packing must keep all bits.
  std::vector<std::byte> FileRows(int32_t n, int32_t k) {
    std::vector<std::byte> rows(n * RowBytes(k));
    for (std::byte& byte : rows) byte = static_cast<std::byte>(random_.Integer(0, 255));
    return rows;
  }

  RandomValues random_;
};

TEST_P(BlockPanelTest, RowsAreThoseOfTheFile) {
  const int32_t n = 37, k = 3 * traits().file_elements;
  const std::vector<std::byte> rows = FileRows(n, k);
  PackedWeight weight(n, k, std::vector<BlockFormat>(3, GetParam()));
  weight.PackBlocks(0, n, rows.data(), GetParam());
  std::vector<float> expected(k), found(k);
  for (int32_t row = 0; row < n; ++row) {
    DequantizeBlocks(GetParam(), &rows[row * RowBytes(k)], k / traits().file_elements,
                     expected.data());
    weight.UnpackRow(row, found.data());
    EXPECT_EQ(std::memcmp(expected.data(), found.data(), k * sizeof(float)), 0) << "row " << row;
  }
}

// A panel holds whole columns apart from each other, so rows may come in any groups and any order,
// over rows that were packed before.
TEST_P(BlockPanelTest, GroupsAndOrderOfRowsDoNotMatter) {
  constexpr int32_t kRows = 16;
  const int32_t k = 2 * traits().file_elements;
  const std::vector<std::byte> rows = FileRows(kRows, k), others = FileRows(kRows, k);
  const auto make = [&] { return std::vector<std::byte>(PanelValueBytes(GetParam(), k)); };
  std::vector<std::byte> values = make(), expected = make();
  std::vector<std::byte> scales(PanelScaleBytes(GetParam(), k)), expected_scales = scales;
  PackBlockRows(GetParam(), rows.data(), kRows, k, 0, expected.data(), expected_scales.data());
  PackBlockRows(GetParam(), others.data(), kRows, k, 0, values.data(), scales.data());
  for (const auto& [first, count] : {std::pair{9, 7}, {0, 1}, {4, 5}, {1, 3}}) {
    PackBlockRows(GetParam(), &rows[first * RowBytes(k)], count, k, first, values.data(),
                  scales.data());
  }
  EXPECT_EQ(values, expected);
  EXPECT_EQ(scales, expected_scales);
}

INSTANTIATE_TEST_SUITE_P(Formats, BlockPanelTest,
                         ::testing::Values(BlockFormat::kQ4_0, BlockFormat::kQ4_1,
                                           BlockFormat::kQ5_0, BlockFormat::kQ5_1,
                                           BlockFormat::kQ8_0, BlockFormat::kQ4K, BlockFormat::kQ5K,
                                           BlockFormat::kQ6K, BlockFormat::kIq4Nl,
                                           BlockFormat::kIq4Xs, BlockFormat::kInt4,
                                           BlockFormat::kMxfp4),
                         [](const auto& param) { return std::string(TraitsOf(param.param).name); });

}  // namespace
}  // namespace skein
