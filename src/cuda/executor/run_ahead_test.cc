#include "cuda/executor/run_ahead.h"

#include <gtest/gtest.h>

#include <vector>

namespace skein::cuda {
namespace {

// The shapes of Qwen3-0.6B and of Qwen3-8B.
ModelConfig Small() {
  ModelConfig config;
  config.hidden_size = 1024;
  config.num_heads = 16;
  config.num_kv_heads = 8;
  config.head_dim = 128;
  config.intermediate_size = 3072;
  return config;
}
ModelConfig Large() {
  ModelConfig config = Small();
  config.hidden_size = 4096;
  config.num_heads = 32;
  config.intermediate_size = 12288;
  return config;
}

int32_t PerMark(const ModelConfig& config, int32_t begin, int32_t num_tokens,
                int64_t ahead_us = kAheadUs) {
  const std::vector<int32_t> tokens(num_tokens), blocks(begin + num_tokens);
  ForwardBatch batch;
  batch.AddRow(tokens, begin, blocks, false);
  return OperatorsPerMark(config, batch, ahead_us);
}

TEST(RunAhead, ShortOperatorsShareAMarkAndLongOnesHaveTheirOwn) {
  EXPECT_EQ(PerMark(Small(), 0, 1), kMostOperatorsPerMark);
  EXPECT_GE(PerMark(Small(), 0, 128), 20);
  EXPECT_GE(PerMark(Large(), 0, 128), 4);
  EXPECT_EQ(PerMark(Large(), 0, 16384), 1);
  EXPECT_EQ(PerMark(Small(), 0, 128, 0), 1);
}

TEST(RunAhead, OperatorsBehindManyKeysAreLonger) {
  EXPECT_LT(PerMark(Small(), 30000, 512), PerMark(Small(), 0, 512));
}

// Experts count as often as a token goes through them.
TEST(RunAhead, ExpertsCountAsOftenAsATokenUsesThem) {
  ModelConfig config = Small();
  config.num_experts = 128;
  config.experts_per_token = 4;
  config.expert_size = 768;
  EXPECT_EQ(PerMark(config, 0, 512), PerMark(Small(), 0, 512));
  config.experts_per_token = 8;
  EXPECT_LT(PerMark(config, 0, 512), PerMark(Small(), 0, 512));
}

}  // namespace
}  // namespace skein::cuda
