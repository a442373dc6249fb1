#include "base/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

#include "base/fp_mode.h"
#include "base/random.h"

namespace skein {
namespace {

// All 16-bit patterns, from an odd address; so whole vectors and the rest see each of them.
template <typename Half>
void ExpectWidens(DType dtype) {
  constexpr int64_t kRow = 19;
  for (uint32_t first = 0; first < 0x10000; first += kRow) {
    std::byte from[1 + 2 * kRow];
    for (int64_t i = 0; i < kRow; ++i) {
      const auto bits = static_cast<uint16_t>(first + i);
      std::memcpy(from + 1 + 2 * i, &bits, sizeof(bits));
    }
    for (const int64_t count : {kRow, int64_t{7}, int64_t{0}}) {
      float to[kRow + 1] = {};
      Widen(from + 1, dtype, count, to);
      for (int64_t i = 0; i < count; ++i) {
        const Half half{static_cast<uint16_t>(first + i)};
        ASSERT_EQ(std::bit_cast<uint32_t>(to[i]), std::bit_cast<uint32_t>(ToFloat(half)))
            << half.bits;
      }
      ASSERT_EQ(to[count], 0);
    }
  }
}

TEST(Convert, WidensEveryF16) { ExpectWidens<F16>(DType::kF16); }
TEST(Convert, WidensEveryBf16) { ExpectWidens<Bf16>(DType::kBf16); }

TEST(Convert, WidensDenormalsWhereverDenormalsAreZero) {
  const ScopedFpMode mode;
  ExpectWidens<Bf16>(DType::kBf16);
  const uint16_t halves[8] = {1, 0x8001, 0x3ff};
  float to[8];
  Widen(reinterpret_cast<const std::byte*>(halves), DType::kF16, 8, to);
  EXPECT_EQ(to[0], 0x1p-24f);
  EXPECT_EQ(to[1], -0x1p-24f);
  EXPECT_EQ(to[2], 1023 * 0x1p-24f);
}

TEST(Convert, KeepsTheBitsOfF32) {
  const uint32_t words[3] = {0x7f800001, 1, 0x80000000};
  float to[3];
  Widen(reinterpret_cast<const std::byte*>(words), DType::kF32, 3, to);
  EXPECT_EQ(std::memcmp(to, words, sizeof(words)), 0);
}

// The patterns around all that differs: ties, the carry into the exponent, infinity, NaN with a
// payload in either half, denormals, both signs.
TEST(Convert, RoundsAsToBf16Does) {
  std::vector<uint32_t> words;
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      words.push_back(upper << 16 | lower);
    }
  }
  Random random(1);
  for (int i = 0; i < 100'003; ++i) {
    words.push_back(static_cast<uint32_t>(random.Between(0, 0xffffffffll)));
  }
  for (const size_t skipped : {0, 1, 5}) {  // the rest behind whole vectors differs
    std::vector<std::byte> from(4 * (words.size() - skipped) + 1);
    std::memcpy(from.data() + 1, words.data() + skipped, from.size() - 1);
    std::vector<Bf16> to(words.size() - skipped);
    RoundToBf16(from.data() + 1, std::ssize(to), to.data());
    for (size_t i = 0; i < to.size(); ++i) {
      const uint32_t word = words[skipped + i];
      ASSERT_EQ(to[i].bits, ToBf16(std::bit_cast<float>(word)).bits) << word;
    }
  }
}

}  // namespace
}  // namespace skein
