#include "kernels/packed_weight.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "testing/random_values.h"

namespace skein {
namespace {

using testing::RandomValues;
using testing::Range;
using testing::SameBits;
using testing::TypedArray;

float ElementAt(const PackedWeight& w, int32_t panel, size_t index) {
  if (w.dtype() == DType::kF32) {
    float value;
    std::memcpy(&value, w.panel(panel) + 4 * index, 4);
    return value;
  }
  Bf16 value;
  std::memcpy(&value, w.panel(panel) + 2 * index, 2);
  return ToFloat(value);
}

// Reads the memory in the order that is drawn in the header, and checks each element.
TEST(PackedWeightTest, LiesAsTheHeaderSays) {
  RandomValues random;
  for (DType dtype : {DType::kF32, DType::kBf16}) {
    for (auto [n, k] : {std::pair{1, 1}, {16, 32}, {37, 45}, {64, 100}}) {
      const std::vector<float> src = random.Floats(size_t(n) * k, dtype, Range::kPlain);
      PackedWeight w(n, k, dtype);
      w.PackRows(0, n, src.data(), DType::kF32);
      EXPECT_EQ(w.k_padded() % 32, 0);
      const size_t panels = (n + 15) / 16;
      EXPECT_EQ(w.bytes(), panels * 16 * w.k_padded() * SizeOf(dtype));
      const int32_t group = dtype == DType::kBf16 ? 2 : 1;
      for (size_t panel = 0; panel < panels; ++panel) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(w.panel(panel)) % 64, 0u);
        size_t index = 0;
        for (int32_t i = 0; i < w.k_padded(); i += group) {
          for (int32_t column = 0; column < 16; ++column) {
            for (int32_t j = 0; j < group; ++j, ++index) {
              const int32_t row = static_cast<int32_t>(panel) * 16 + column;
              const float expected = row < n && i + j < k ? src[size_t(row) * k + i + j] : 0.0f;
              ASSERT_TRUE(SameBits(ElementAt(w, panel, index), expected)) << row << ", " << i + j;
            }
          }
        }
      }
    }
  }
}

TEST(PackedWeightTest, UnpacksWhatWasPackedInAnyOrderAndType) {
  RandomValues random;
  for (DType dtype : {DType::kF32, DType::kBf16}) {
    for (DType src_dtype : {DType::kF32, DType::kBf16}) {
      const int32_t n = random.Integer(1, 70), k = random.Integer(1, 300);
      const std::vector<float> src = random.Floats(size_t(n) * k, src_dtype, Range::kExtreme);
      const TypedArray typed(src, src_dtype);
      PackedWeight w(n, k, dtype);
      const int32_t cut = random.Integer(0, n);
      if (cut < n) w.PackRows(cut, n - cut, typed.At(size_t(cut) * k), src_dtype);
      w.PackRows(0, cut, typed.data(), src_dtype);
      std::vector<float> row(k);
      for (int32_t r = 0; r < n; ++r) {
        std::vector<float> expected(src.begin() + int64_t{r} * k, src.begin() + int64_t{r + 1} * k);
        if (dtype == DType::kBf16) expected = TypedArray(expected, dtype).Values();
        w.UnpackRow(r, row.data());
        EXPECT_TRUE(SameBits(row, expected)) << "row " << r;
      }
    }
  }
}

// A memory-mapped file guarantees no alignment.
TEST(PackedWeightTest, ReadsUnalignedSources) {
  RandomValues random;
  const std::vector<float> src = random.Floats(size_t{20} * 40, DType::kF32, Range::kPlain);
  std::vector<char> bytes(src.size() * 4 + 1);
  std::memcpy(bytes.data() + 1, src.data(), src.size() * 4);
  PackedWeight w(20, 40, DType::kF32);
  w.PackRows(0, 20, bytes.data() + 1, DType::kF32);
  std::vector<float> row(40);
  w.UnpackRow(19, row.data());
  EXPECT_TRUE(SameBits(row, {src.end() - 40, src.end()}));
}

}  // namespace
}  // namespace skein
