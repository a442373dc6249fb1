#include "model/config/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace skein {
namespace {

// The definitions, written out pair by pair, with wavelengths in place of angles.
constexpr double kPi = 3.14159265358979323846;

RopeConfig Base(RopeType type, double theta) {
  RopeConfig rope;
  rope.type = type;
  rope.theta = theta;
  return rope;
}

TEST(Rope, Default) {
  const RopeTable table = MakeRopeTable(Base(RopeType::kDefault, 10000), 8);
  ASSERT_EQ(table.inv_freq.size(), 4u);
  const double expected[] = {1, 0.1, 0.01, 0.001};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(table.inv_freq[i], expected[i], 1e-16);
  EXPECT_EQ(table.attention_factor, 1);
}

TEST(Rope, Linear) {
  RopeConfig rope = Base(RopeType::kLinear, 10000);
  rope.factor = 4;
  const RopeTable table = MakeRopeTable(rope, 8);
  EXPECT_NEAR(table.inv_freq[0], 0.25, 1e-16);
  EXPECT_NEAR(table.inv_freq[3], 0.00025, 1e-18);
}

// The values of Llama 3.1.
TEST(Rope, Llama3) {
  RopeConfig rope = Base(RopeType::kLlama3, 500000);
  rope.factor = 8;
  rope.low_freq_factor = 1;
  rope.high_freq_factor = 4;
  rope.original_max_position = 8192;
  const RopeTable table = MakeRopeTable(rope, 128);
  int kept = 0, slowed = 0, between = 0;
  for (int i = 0; i < 64; ++i) {
    const double wavelength = 2 * kPi * std::pow(500000.0, 2.0 * i / 128);
    double expected = 2 * kPi / wavelength;
    if (wavelength > 8192) {
      expected /= 8;
      ++slowed;
    } else if (wavelength >= 2048) {
      const double smooth = (8192 / wavelength - 1) / 3;
      expected = (1 - smooth) * expected / 8 + smooth * expected;
      ++between;
    } else {
      ++kept;
    }
    EXPECT_NEAR(table.inv_freq[i] / expected, 1, 1e-14) << i;
  }
  EXPECT_EQ(kept, 29);
  EXPECT_EQ(between, 6);
  EXPECT_EQ(slowed, 29);
}

RopeConfig Yarn() {
  RopeConfig rope = Base(RopeType::kYarn, 1e6);
  rope.factor = 4;
  rope.original_max_position = 32768;
  return rope;
}

// Qwen3 with its documented yarn setting. The ramp, computed by hand: 64 ln(32768 / (32 * 2
// pi)) / ln(1e6) = 23.59, down to 23; 64 ln(32768 / (2 pi)) / ln(1e6) = 39.65, up to 40.
TEST(Rope, YarnRamp) {
  const RopeTable table = MakeRopeTable(Yarn(), 128);
  for (int i = 0; i < 64; ++i) {
    const double plain = std::pow(1e6, -2.0 * i / 128);
    const double slowed = i <= 23 ? 0 : i >= 40 ? 1 : (i - 23) / 17.0;
    EXPECT_NEAR(table.inv_freq[i] / (plain * (1 - slowed) + plain / 4 * slowed), 1, 1e-14) << i;
  }
  EXPECT_NEAR(table.attention_factor, 0.1 * std::log(4.0) + 1, 1e-15);
}

TEST(Rope, YarnWithoutTruncation) {
  RopeConfig rope = Yarn();
  rope.truncate = false;
  const RopeTable table = MakeRopeTable(rope, 128);
  const double low = 64 * std::log(32768 / (64 * kPi)) / std::log(1e6);
  const double high = 64 * std::log(32768 / (2 * kPi)) / std::log(1e6);
  const double plain = std::pow(1e6, -2.0 * 30 / 128), slowed = (30 - low) / (high - low);
  EXPECT_NEAR(table.inv_freq[30], plain * (1 - slowed) + plain / 4 * slowed, 1e-16);
  EXPECT_NE(table.inv_freq[30], MakeRopeTable(Yarn(), 128).inv_freq[30]);
}

TEST(Rope, YarnAttentionFactor) {
  RopeConfig rope = Yarn();
  rope.mscale = 1.0;
  EXPECT_NEAR(MakeRopeTable(rope, 64).attention_factor, 1.138629436111989, 1e-15);  // alone: no use
  rope.mscale_all_dim = 0.5;
  EXPECT_NEAR(MakeRopeTable(rope, 64).attention_factor,
              (0.1 * std::log(4.0) + 1) / (0.05 * std::log(4.0) + 1), 1e-15);
  rope.mscale_all_dim = 0;  // zero counts as absent
  EXPECT_NEAR(MakeRopeTable(rope, 64).attention_factor, 1.138629436111989, 1e-15);
  rope.attention_factor = 0.75;
  EXPECT_EQ(MakeRopeTable(rope, 64).attention_factor, 0.75);
  rope = Yarn();
  rope.factor = 1;
  EXPECT_EQ(MakeRopeTable(rope, 64).attention_factor, 1);
}

// In a very short context, both ends of the ramp are at pair 0. There must be no division by zero.
TEST(Rope, YarnDegenerateRamp) {
  RopeConfig rope = Yarn();
  rope.original_max_position = 4;
  const RopeTable table = MakeRopeTable(rope, 16);
  for (int i = 0; i < 8; ++i) {
    const double plain = std::pow(1e6, -2.0 * i / 16);
    EXPECT_NEAR(table.inv_freq[i], i == 0 ? plain : plain / 4, 1e-15) << i;
  }
}

}  // namespace
}  // namespace skein
