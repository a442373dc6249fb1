#include "bench/sched/preemption.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/cpu_runtime.h"

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

// Other programs read these names.
TEST(PreemptionBench, TellsEachGranularityInJson) {
  const PreemptionReport report = {
      .granularities = {{.granularity = "op-tile",
                         .count = 1000,
                         .stops = 900,
                         .mean_ms = 0.5,
                         .p50_ms = 0.25,
                         .p99_ms = 2,
                         .max_ms = 3,
                         .wake_mean_ms = 0.125,
                         .wake_p99_ms = 0.75},
                        {.granularity = "chunk", .count = 100, .stops = 4, .mean_ms = 500}},
      .checked_s = 4,
      .unchecked_s = 2};
  const nlohmann::ordered_json json =
      PreemptionToJson({.prompt_tokens = 2048, .count = 1000, .chunk_count = 100}, report);
  EXPECT_EQ(json["prompt_tokens"], 2048);
  EXPECT_EQ(json["count"], 1000);
  EXPECT_EQ(json["chunk_count"], 100);
  EXPECT_EQ(json["chunk_tokens"], 512);
  EXPECT_EQ(json["checked_tokens_per_s"], 512.0);
  EXPECT_EQ(json["unchecked_tokens_per_s"], 1024.0);
  EXPECT_EQ(json["lost"], 0.5);
  ASSERT_TRUE(json["granularities"].is_array());
  ASSERT_EQ(json["granularities"].size(), 2u);
  const nlohmann::ordered_json& first = json["granularities"][0];
  EXPECT_EQ(first["granularity"], "op-tile");
  EXPECT_EQ(first["count"], 1000);
  EXPECT_EQ(first["stops"], 900);
  EXPECT_EQ(first["mean_ms"], 0.5);
  EXPECT_EQ(first["p50_ms"], 0.25);
  EXPECT_EQ(first["p99_ms"], 2.0);
  EXPECT_EQ(first["max_ms"], 3.0);
  EXPECT_EQ(first["wake_mean_ms"], 0.125);
  EXPECT_EQ(first["wake_p99_ms"], 0.75);
  EXPECT_EQ(json["granularities"][1]["granularity"], "chunk");
  EXPECT_EQ(json["granularities"][1]["mean_ms"], 500.0);
}

TEST(PreemptionBench, NoSignalsAreAnEmptyList) {
  const nlohmann::ordered_json json =
      PreemptionToJson({.count = 0}, {.checked_s = 1, .unchecked_s = 1});
  EXPECT_EQ(json["granularities"], nlohmann::ordered_json::array());
}

TEST(PreemptionBench, CountsItsPrefills) {
  EXPECT_EQ(NumPrefills({.count = 1000, .per_prefill = 100, .chunk_count = 150, .repetitions = 3}),
            6 + 3 * 10 + 2);
  EXPECT_EQ(NumPrefills({.count = 0, .repetitions = 2}), 4);
}

}  // namespace
}  // namespace skein
