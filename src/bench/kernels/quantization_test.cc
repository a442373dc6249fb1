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
  // The weights are random, so each token is about as probable as any other.
  EXPECT_GT(report.value().perplexity, 64);
  EXPECT_EQ(report.value().perplexity, report.value().quantized_perplexity);
}

TEST(CompareQuantizationTest, AnotherModelMayHaveTheQuantizedWeights) {
  QuantizationOptions options = {.model_dir = std::string(kModels) + "qwen3",
                                 .quantized_dir = std::string(kModels) + "qwen3-tied",
                                 .quantization = Quantization::kNone};
  const auto report = CompareQuantization(options, Sequences());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_GT(report.value().mean_kl, 0.001);
  EXPECT_NE(report.value().perplexity, report.value().quantized_perplexity);
  options.quantized_dir = std::string(kModels) + "llama-linear";
  EXPECT_EQ(CompareQuantization(options, Sequences()).status().message(),
            "the models have 128 and 101 tokens; they must have the same");
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
