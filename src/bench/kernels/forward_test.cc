#include "bench/kernels/forward.h"

#include <gtest/gtest.h>

#include <chrono>

#include "runtime/cpu_runtime.h"

namespace skein {
namespace {

// A model of two layers of width 8: q has 2 heads of 4, k and v have 1 head of 4; the MLP has width
// 16; 100 tokens.
ModelConfig SmallConfig() {
  ModelConfig config;
  config.vocab_size = 100;
  config.hidden_size = 8;
  config.intermediate_size = 16;
  config.num_layers = 2;
  config.num_heads = 2;
  config.num_kv_heads = 1;
  config.head_dim = 4;
  return config;
}

TEST(WorkOfTest, CountsAPromptByHand) {
  // The parameters of a layer: q, k, v have 8 * (8 + 8), o has 8 * 8, the MLP has 3 * 8 * 16.
  const double parameters = 2 * (128 + 64 + 384);
  // Three tokens see 1, 2 and 3 keys, in 2 heads of size 4, with two products each. In the second
  // layer, which is the last, only the last token is computed further than its keys and values.
  const ForwardWork work =
      WorkOf(SmallConfig(), SmallConfig().KvBytesPerToken(DType::kBf16), 2, 1, 0, 3);
  const double first = 3 * 2 * 576 + (1 + 2 + 3) * 2 * 2 * 8;
  const double last = 3 * 2 * 64 + 2 * 512 + 3 * 2 * 2 * 8;
  EXPECT_EQ(work.flops, first + last + 2 * 800);
  // K and V of one token: 2 layers, 1 head of size 4, two bytes per element.
  EXPECT_EQ(work.bytes, (parameters + 800) * 2 + 3 * 2 * 2 * 4 * 2);
}

TEST(WorkOfTest, ABatchReadsItsWeightsOnce) {
  const ForwardWork one =
      WorkOf(SmallConfig(), SmallConfig().KvBytesPerToken(DType::kF32), 4, 1, 10, 1);
  const ForwardWork four =
      WorkOf(SmallConfig(), SmallConfig().KvBytesPerToken(DType::kF32), 4, 4, 10, 1);
  EXPECT_EQ(four.flops, 4 * one.flops);
  const double kv = 11.0 * 2 * 2 * 4 * 4;
  EXPECT_EQ(four.bytes - one.bytes, 3 * kv);
}

TEST(WorkOfTest, AMixtureReadsTheExpertsOfItsTokens) {
  ModelConfig config = SmallConfig();
  config.num_experts = 8;
  config.experts_per_token = 2;
  config.expert_size = 4;
  config.has_experts = {false, true};
  // In the second layer the MLP is a router of 8 * 8 and two experts of 3 * 8 * 4.
  const double dense = 128 + 64 + 384, rest = 128 + 64 + 64, expert = 96;
  const ForwardWork one = WorkOf(config, config.KvBytesPerToken(DType::kF32), 4, 1, 0, 1);
  EXPECT_EQ(one.flops, 2 * (dense + rest + 2 * expert + 800) + 2 * 2 * 2 * 8);
  EXPECT_EQ(one.bytes, (dense + rest + 2 * expert + 800) * 4 + 2 * 2 * 4 * 4);
  // Two tokens read 8 * (1 - (6 / 8)^2) = 3.5 experts.
  const ForwardWork two = WorkOf(config, config.KvBytesPerToken(DType::kF32), 4, 2, 0, 1);
  EXPECT_EQ(two.flops, 2 * one.flops);
  EXPECT_DOUBLE_EQ(two.bytes, (dense + rest + 3.5 * expert + 800) * 4 + 2 * 2 * 2 * 4 * 4);
  // The expert of every token has matrices of 8 * 5, and a row that is its gate.
  config.decoder.shared_expert_size = 5;
  EXPECT_DOUBLE_EQ(WorkOf(config, config.KvBytesPerToken(DType::kF32), 4, 2, 0, 1).bytes,
                   two.bytes + (3 * 40 + 8) * 4);
  EXPECT_DOUBLE_EQ(WorkOf(config, config.KvBytesPerToken(DType::kF32), 4, 2, 0, 1).flops,
                   two.flops + 2 * 2 * (3 * 40 + 8));
}

TEST(ForwardBenchTest, TimesPassesOfAModel) {
  const auto runtime =
      CpuRuntime::Load({.model_dir = SKEIN_SOURCE_DIR "/tests/data/models/qwen3-bf16",
                        .max_model_len = 64,
                        .max_num_batched_tokens = 64,
                        .num_kv_blocks = 8});
  ASSERT_TRUE(runtime.ok()) << runtime.status().message();
  ForwardBench bench(runtime.value().get(), 1);
  const auto begin = std::chrono::steady_clock::now();
  const double prefill = bench.Prefill(40);
  const DecodePoint decode = bench.Decode(4, 20, 5);
  const double all =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_GT(prefill, 0);
  EXPECT_EQ(decode.batch, 4);
  EXPECT_EQ(decode.context, 20);
  EXPECT_EQ(decode.steps, 5);
  EXPECT_GT(decode.seconds, 0);
  EXPECT_LT(prefill + decode.seconds, all);
}

}  // namespace
}  // namespace skein
