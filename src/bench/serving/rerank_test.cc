#include "bench/serving/rerank.h"

#include <gtest/gtest.h>

#include "bench/kernels/forward.h"

namespace skein {
namespace {

TEST(RerankFlopsTest, CountsTheQueryOnce) {
  ModelConfig config;
  config.vocab_size = 100;
  config.hidden_size = 8;
  config.intermediate_size = 16;
  config.num_layers = 2;
  config.num_heads = 2;
  config.num_kv_heads = 1;
  config.head_dim = 4;
  // The query has three tokens; the two documents have two tokens each, which see 4 and 5 keys. In
  // the last layer, only the last tokens of the documents are computed further than their keys and
  // values.
  const double keys = 1 + 2 + 3 + 2 * (4 + 5);
  const double first = (3 + 4) * 2 * 576 + keys * 2 * 2 * 8;
  const double last = (3 + 4) * 2 * 64 + 2 * 2 * 512 + 2 * 5 * 2 * 2 * 8;
  EXPECT_EQ(RerankFlops(config, {3, 2, 2}), first + last + 2 * 2 * 2 * 8);
}

TEST(RerankBenchTest, ComputesTheQueryOnce) {
  const auto runtime =
      CpuRuntime::Load({.model_dir = SKEIN_SOURCE_DIR "/tests/data/models/qwen3-bf16",
                        .max_model_len = 120,
                        .max_num_batched_tokens = 64,
                        .num_kv_blocks = 40});
  ASSERT_TRUE(runtime.ok()) << runtime.status().message();
  RerankBench bench(runtime.value().get(), 64, 1);
  // The second round must find nothing that the first cached.
  for (int round = 0; round < 2; ++round) {
    Result<RerankTime> time = bench.Rerank({70, 9, 20});
    ASSERT_TRUE(time.ok()) << time.status().message();
    EXPECT_EQ(time->computed_tokens, 70 + 9 * 20);
    EXPECT_EQ(time->shared_tokens, 9 * 70);
    EXPECT_GT(time->seconds, 0);
  }
  EXPECT_GT(bench.Prefill(3, 40).value(), 0);
  EXPECT_EQ(bench.Prefill(1, 121).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace skein
