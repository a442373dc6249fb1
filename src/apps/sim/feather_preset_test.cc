// Compares the preset `feather` with first come, first served and with SGLang's order on simulated
// loads (scripts/exp_feather has more).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "apps/sim/sim_replay.h"
#include "base/random.h"

namespace skein {
namespace {

struct GroupLoad {
  int requests = 800;
  int groups = 5;
  int shared = 5120;
  int own = 20;
  int outputs = 200;
  double per_second = 100;
};

std::vector<WorkloadRequest> Requests(const GroupLoad& load, uint64_t seed = 1,
                                      double begin_us = 0) {
  Random random(seed);
  std::vector<WorkloadRequest> workload;
  double clock_us = begin_us;
  for (int i = 0; i < load.requests; ++i) {
    clock_us -= 1e6 / load.per_second * std::log(1 - random.Uniform());
    WorkloadRequest request;
    request.arrival_us = std::llround(clock_us);
    const std::string group = std::to_string(random.Between(0, load.groups - 1));
    if (load.shared > 0) request.segments.push_back({"group " + group, load.shared});
    const std::string name = "own " + std::to_string(seed) + " " + std::to_string(i);
    request.segments.push_back({name, load.own});
    request.max_tokens = load.outputs;
    workload.push_back(request);
  }
  return workload;
}

ReplayOutcome Simulated(const std::vector<WorkloadRequest>& workload, const std::string& preset,
                        KvReading reading, int32_t max_num_seqs = 500,
                        StopRule rule = StopRule::kModel) {
  ReplayOptions options;
  options.engine.scheduler.policies = FindPreset(preset)->policies;
  options.engine.scheduler.prefix_groups.stop.rule = rule;
  options.engine.scheduler.max_model_len = 16'384;
  options.engine.scheduler.max_num_batched_tokens = 32'768;
  options.engine.scheduler.max_num_seqs = max_num_seqs;
  options.kv_reading = reading;
  options.tokens.vocab = 100'000;
  const std::string devices = SKEIN_SOURCE_DIR "/devices";
  const DeviceDescription device = LoadDevice(devices + "/rtx-6000-ada.json").value();
  const SimModelShape shape = LoadShape(devices + "/models/llama-3.1-8b", "").value();
  auto outcome = Replay(device, shape, workload, options);
  EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  return std::move(outcome).value();
}

double TokensPerS(const ReplayOutcome& outcome) {
  int64_t num_tokens = 0;
  for (const LoadRecord& record : outcome.records) num_tokens += record.output_tokens;
  return 1e6 * static_cast<double>(num_tokens) / static_cast<double>(outcome.duration_us);
}

double P95TtftS(const ReplayOutcome& outcome) {
  std::vector<TimeUs> ttft_us;
  for (const LoadRecord& record : outcome.records) ttft_us.push_back(record.ttft_us);
  std::ranges::sort(ttft_us);
  return static_cast<double>(ttft_us[ttft_us.size() * 95 / 100]) / 1e6;
}

// The default load of FEATHER: 5 groups with 5,120 shared tokens each, 200 output tokens, 100
// requests a second.
TEST(FeatherPreset, GainsOnTheDefaultLoad) {
  const std::vector<WorkloadRequest> workload = Requests({});
  const ReplayOutcome feather = Simulated(workload, "feather", KvReading::kCached);
  for (const char* preset : {"chunked-fcfs", "sglang-lpm"}) {
    const ReplayOutcome other = Simulated(workload, preset, KvReading::kCached);
    EXPECT_GT(TokensPerS(feather), 1.8 * TokensPerS(other)) << preset;
    EXPECT_LT(P95TtftS(feather), P95TtftS(other)) << preset;
  }
  const ReplayOutcome fixed =
      Simulated(workload, "feather", KvReading::kCached, 500, StopRule::kHeuristic);
  EXPECT_GT(TokensPerS(feather), 0.9 * TokensPerS(fixed));
}

// Loads in which turns gain nothing or would make requests wait: a kernel that reads shared tokens
// once, no shared tokens, enough slots for all requests, and a burst after a low rate.
TEST(FeatherPreset, LosesNothingWhereNothingIsToBeGained) {
  std::vector<WorkloadRequest> burst = Requests({.requests = 60, .per_second = 2});
  const std::vector<WorkloadRequest> behind =
      Requests({.requests = 200, .groups = 20, .shared = 512, .outputs = 50}, 2, 30e6);
  burst.insert(burst.end(), behind.begin(), behind.end());
  const struct {
    const char* name;
    std::vector<WorkloadRequest> workload;
    KvReading reading;
  } loads[] = {
      {"once", Requests({.requests = 400}), KvReading::kOnce},
      {"nothing shared", Requests({.requests = 300, .shared = 0, .own = 800}), KvReading::kCached},
      {"low rate", Requests({.requests = 150, .per_second = 5}), KvReading::kCached},
      {"each", Requests({.requests = 300}), KvReading::kEachRow},
      {"burst", burst, KvReading::kCached}};
  for (const auto& [name, workload, reading] : loads) {
    const ReplayOutcome feather = Simulated(workload, "feather", reading);
    const ReplayOutcome fcfs = Simulated(workload, "chunked-fcfs", reading);
    EXPECT_GT(TokensPerS(feather), 0.98 * TokensPerS(fcfs)) << name;
    EXPECT_LT(P95TtftS(feather), 1.2 * P95TtftS(fcfs) + 0.05) << name;
  }
}

// The load has more prefixes than the cache holds, all of them cold at first, and more requests
// than slots. No request may become overdue only because the load exceeds the device's capacity.
TEST(FeatherPreset, GainsWhereColdPrefixesOutnumberTheCache) {
  const std::vector<WorkloadRequest> workload = Requests({.groups = 100});
  const ReplayOutcome feather = Simulated(workload, "feather", KvReading::kOnce);
  for (const char* preset : {"chunked-fcfs", "sglang-lpm"}) {
    const ReplayOutcome other = Simulated(workload, preset, KvReading::kOnce);
    EXPECT_GT(TokensPerS(feather), 0.98 * TokensPerS(other)) << preset;
    EXPECT_LT(P95TtftS(feather), 1.2 * P95TtftS(other)) << preset;
  }
  EXPECT_EQ(feather.totals.prefix_groups_overdue, 0u);
}

}  // namespace
}  // namespace skein
