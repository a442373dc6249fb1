#include "bench/kernels/quantization.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

constexpr const char* kModels = SKEIN_SOURCE_DIR "/tests/data/models/";

std::vector<std::vector<int32_t>> Sequences() {
  std::vector<std::vector<int32_t>> sequences(2);
  for (int32_t i = 0; i < 70; ++i) sequences[0].push_back(i * 37 % 128);
  for (int32_t i = 0; i < 9; ++i) sequences[1].push_back(i * 11 % 128);
  return sequences;
}

TEST(CompareQuantizationTest, AModelDoesNotDifferFromItself) {
  const auto report = CompareQuantization(
      {.model_dir = std::string(kModels) + "qwen3-bf16", .quantization = Quantization::kNone},
      Sequences());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report.value().num_positions, 79);
  EXPECT_EQ(report.value().max_difference, 0);
  EXPECT_NEAR(report.value().mean_kl, 0, 1e-12);
  EXPECT_EQ(report.value().top1_agreement, 1);
  EXPECT_EQ(report.value().weight_bytes, report.value().quantized_weight_bytes);
}

TEST(CompareQuantizationTest, Int8DiffersALittle) {
  const auto report =
      CompareQuantization({.model_dir = std::string(kModels) + "qwen3-bf16"}, Sequences());
  ASSERT_TRUE(report.ok()) << report.status().message();
  const QuantizationReport& r = report.value();
  EXPECT_GT(r.mean_difference, 0);
  EXPECT_GT(r.expected_difference, 0);
  EXPECT_GE(r.max_difference, r.mean_difference);
  EXPECT_GT(r.mean_kl, 0);
  EXPECT_GE(r.max_kl, r.mean_kl);
  EXPECT_LT(r.mean_kl, 0.1);
  EXPECT_GT(r.top1_agreement, 0.5);
  EXPECT_LT(r.quantized_weight_bytes, r.weight_bytes);
}

TEST(CompareQuantizationTest, RefusesWhatHasNoTokensToPredict) {
  const auto report =
      CompareQuantization({.model_dir = SKEIN_SOURCE_DIR "/tests/data/heads/qwen3-classifier"}, {});
  EXPECT_EQ(report.status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace skein
