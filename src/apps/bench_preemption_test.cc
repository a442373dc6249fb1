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
  double estimate_s = 0;
  auto report = RunPreemptionBench(
      runtime.get(),
      {.prompt_tokens = 250, .count = 20, .per_prefill = 5, .chunk_count = 7, .chunk_tokens = 60},
      [&](double seconds) { estimate_s = seconds; });
  ASSERT_TRUE(report.ok()) << report.status().message();
  std::vector<std::string> names;
  for (const BlockingTimes& times : report->granularities) {
    names.push_back(times.granularity);
    EXPECT_EQ(times.count, times.granularity == "chunk" ? 7 : 20);
    EXPECT_GE(times.stops, 1);
    EXPECT_LE(times.stops, times.count);
    EXPECT_GE(times.mean_ms, 0);
    EXPECT_LE(times.p50_ms, times.p99_ms);
    EXPECT_LE(times.p99_ms, times.max_ms);
    EXPECT_LE(times.mean_ms, times.max_ms * (1 + 1e-9));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"op-tile", "op", "layer", "chunk"}));
  EXPECT_GT(report->checked_s, 0);
  EXPECT_GT(report->unchecked_s, 0);
  EXPECT_GT(estimate_s, 0);
}

TEST(PreemptionBench, CountsItsPrefills) {
  EXPECT_EQ(NumPrefills({.count = 1000, .per_prefill = 100, .chunk_count = 150, .repetitions = 3}),
            6 + 3 * 10 + 2);
  EXPECT_EQ(NumPrefills({.count = 0, .repetitions = 2}), 4);
}

}  // namespace
}  // namespace skein
