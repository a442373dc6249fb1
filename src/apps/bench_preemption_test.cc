#include "apps/bench_preemption.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace skein {
namespace {

TEST(PreemptionBench, MeasuresEachGranularity) {
  const auto runtime =
      CpuRuntime::Load({.model_dir = SKEIN_SOURCE_DIR "/tests/data/models/qwen3-bf16",
                        .threads = 2,
                        .max_model_len = 250,
                        .max_num_batched_tokens = 250,
                        .num_kv_blocks = 8})
          .value();
  const auto report = RunPreemptionBench(
      runtime.get(), {.prompt_tokens = 250, .count = 20, .per_prefill = 5, .chunk_tokens = 60});
  ASSERT_TRUE(report.ok()) << report.status().message();
  std::vector<std::string> names;
  for (const BlockingTimes& times : report->granularities) {
    names.push_back(times.granularity);
    EXPECT_EQ(times.count, 20);
    EXPECT_GT(times.mean_ms, 0);
    EXPECT_LE(times.p50_ms, times.p99_ms);
    EXPECT_LE(times.p99_ms, times.max_ms);
    EXPECT_LE(times.mean_ms, times.max_ms);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"op-tile", "op", "layer", "chunk"}));
  EXPECT_GT(report->checked_s, 0);
  EXPECT_GT(report->unchecked_s, 0);
}

}  // namespace
}  // namespace skein
