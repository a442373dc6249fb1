#include "apps/sim/sim_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "skein/choice_names.h"

namespace skein {
namespace {

using ::testing::HasSubstr;

const std::string kDevices = SKEIN_SOURCE_DIR "/devices";

TEST(Devices, EveryDescriptionAndShapeIsReadable) {
  int num_devices = 0, num_shapes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kDevices)) {
    if (entry.path().extension() != ".json") continue;
    const auto device = LoadDevice(entry.path().string());
    ASSERT_TRUE(device.ok()) << device.status().message();
    for (const auto& model : std::filesystem::directory_iterator(kDevices + "/models")) {
      const auto shape = LoadShape(model.path().string(), "");
      ASSERT_TRUE(shape.ok()) << shape.status().message();
      EXPECT_TRUE(StepCost::Make(device.value(), shape.value(), {.tensor = 2}).ok());
      ++num_shapes;
    }
    ++num_devices;
  }
  EXPECT_GE(num_devices, 9);
  EXPECT_GE(num_shapes, 4 * num_devices);
}

TEST(LoadShape, CountsTheBytesOfItsWeightType) {
  const SimModelShape llama = LoadShape(kDevices + "/models/llama-3.1-8b", "").value();
  EXPECT_NEAR(static_cast<double>(llama.num_layer_parameters()), 6.98e9, 0.01e9);
  EXPECT_NEAR(static_cast<double>(llama.weight_bytes()), 16.06e9, 0.01e9);
  EXPECT_EQ(llama.kv_bytes_per_token(), 131072);
  const SimModelShape fp8 = LoadShape(kDevices + "/models/llama-70b-fp8", "").value();
  EXPECT_EQ(fp8.weight_type, "fp8");
  EXPECT_NEAR(static_cast<double>(fp8.weight_bytes()), 72.7e9, 0.1e9);
  EXPECT_EQ(LoadShape(kDevices + "/models/llama-70b-fp8", "bf16").value().weight_type, "bf16");
}

std::vector<WorkloadRequest> Posts(int users, int posts) {
  std::vector<WorkloadRequest> workload;
  for (int post = 0; post < posts; ++post) {
    for (int user = 0; user < users; ++user) {
      WorkloadRequest request;
      request.user = "user" + std::to_string(user);
      request.segments = {{request.user, 5000}, {std::to_string(post * users + user), 150}};
      request.max_tokens = 1;
      workload.push_back(request);
    }
  }
  return workload;
}

ReplayOptions Options(const std::string& preset) {
  ReplayOptions options;
  options.engine.scheduler.policies = FindPreset(preset)->policies;
  options.engine.scheduler.max_model_len = 20000;
  options.engine.scheduler.max_num_batched_tokens = 20000;
  options.tokens.vocab = 100000;
  return options;
}

ReplayOutcome Simulate(const std::vector<WorkloadRequest>& workload, const ReplayOptions& options) {
  const DeviceDescription device = LoadDevice(kDevices + "/l4.json").value();
  const SimModelShape shape = LoadShape(kDevices + "/models/llama-3.1-8b", "").value();
  auto outcome = Replay(device, shape, workload, options);
  EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  return std::move(outcome).value();
}

int64_t CachedTokens(const ReplayOutcome& outcome) {
  int64_t sum = 0;
  for (const LoadRecord& record : outcome.records) sum += record.cached_tokens;
  return sum;
}

TEST(Replay, CalibrationFindsTheHitsThatArrivalOrderMisses) {
  const std::vector<WorkloadRequest> workload = Posts(20, 5);  // requests of the users alternate
  const ReplayOutcome fcfs = Simulate(workload, Options("paged-fcfs"));
  const ReplayOutcome calibrated = Simulate(workload, Options("prefill-only"));
  EXPECT_GT(CachedTokens(calibrated), 2 * CachedTokens(fcfs));
  EXPECT_LT(calibrated.duration_us, fcfs.duration_us);
  for (const LoadRecord& record : calibrated.records) {
    EXPECT_TRUE(record.ok);
    EXPECT_EQ(record.prompt_tokens, 5150);
    EXPECT_EQ(record.output_tokens, 1);
  }
}

TEST(Replay, ReplicasKeepAUserTogether) {
  const std::vector<WorkloadRequest> workload = Posts(8, 10);
  ReplayOptions options = Options("prefill-only");
  const ReplayOutcome one = Simulate(workload, options);
  options.replicas = 2;
  const ReplayOutcome two = Simulate(workload, options);
  EXPECT_GE(CachedTokens(two), CachedTokens(one));
  EXPECT_NEAR(static_cast<double>(two.duration_us) / static_cast<double>(one.duration_us), 0.5,
              0.1);
}

TEST(Replay, TotalsAreOfAllReplicas) {
  const std::vector<WorkloadRequest> workload = Posts(4, 5);
  ReplayOptions options = Options("prefill-only");
  uint64_t step_us = 0;
  for (size_t half = 0; half < 2; ++half) {  // users are assigned to the replicas in turn
    std::vector<WorkloadRequest> part;
    for (size_t i = half; i < workload.size(); i += 2) part.push_back(workload[i]);
    step_us += Simulate(part, options).totals.step_us;
  }
  options.replicas = 2;
  EXPECT_EQ(Simulate(workload, options).totals.step_us, step_us);
}

TEST(ReplayTotals, AddUp) {
  EngineStats stats;
  stats.prefill_us = 1;
  stats.decode_us = 10;
  stats.mixed_us = 100;
  stats.num_preemptions = 2;
  stats.prefix_groups_joined = 3;
  stats.prefix_groups_overdue = 4;
  stats.prefix_groups_stops = 5;
  ReplayTotals totals;
  for (int replica = 0; replica < 2; ++replica) totals.Add(stats);
  EXPECT_EQ(totals.step_us, 222u);
  EXPECT_EQ(totals.num_preemptions, 4u);
  EXPECT_EQ(totals.prefix_groups_joined, 6u);
  EXPECT_EQ(totals.prefix_groups_overdue, 8u);
  EXPECT_EQ(totals.prefix_groups_stops, 10u);
}

TEST(Replay, HybridExecutionLeavesMoreMemoryForTheCache) {
  ReplayOptions options = Options("prefill-only");
  const int32_t hybrid = Simulate(Posts(1, 1), options).num_kv_blocks;
  options.engine.scheduler.policies.execution = Execution::kPlain;
  const int32_t plain = Simulate(Posts(1, 1), options).num_kv_blocks;
  EXPECT_GT(hybrid, plain);
}

// Hybrid execution is slower: its products have only the efficiency of a chunk's rows.
TEST(Replay, HybridExecutionPaysForItsChunks) {
  ReplayOptions options = Options("prefill-only");
  const auto hybrid_us = static_cast<double>(Simulate(Posts(1, 1), options).duration_us);
  options.engine.scheduler.policies.execution = Execution::kPlain;
  const auto plain_us = static_cast<double>(Simulate(Posts(1, 1), options).duration_us);
  EXPECT_GT(hybrid_us, 1.05 * plain_us);
  EXPECT_LT(hybrid_us, 1.3 * plain_us);
}

// As in the runtime, memory is set aside for the state of each step that may be suspended, and a
// smaller one for a step of decodes alone.
TEST(Replay, SuspendedStepsLeaveLessMemoryForTheCache) {
  const auto num_blocks = [](const std::string& preset, int32_t max_suspended_steps,
                             std::optional<Granularity> granularity) {
    ReplayOptions options = Options(preset);
    options.engine.scheduler.max_num_batched_tokens = 4096;
    options.engine.scheduler.max_num_seqs = 1024;
    options.engine.scheduler.preemption.max_suspended_steps = max_suspended_steps;
    if (granularity) options.engine.scheduler.policies.granularity = *granularity;
    return Simulate(Posts(1, 1), options).num_kv_blocks;
  };
  const int32_t none = num_blocks("flow-prefill", 2, Granularity::kNone);
  const int32_t one = num_blocks("flow-prefill", 1, {});
  const int32_t two = num_blocks("flow-prefill", 2, {});
  const int32_t step = one - two;  // blocks that the state of one step replaces
  EXPECT_GT(step, 50);
  EXPECT_NEAR(none - one, step * (1 + 1024.0 / 4096), 3);
  EXPECT_EQ(num_blocks("layer-level", 2, {}), two);
  EXPECT_EQ(num_blocks("distserve", 2, {}), none);
}

// Short prompts with tight deadlines, long ones with wide deadlines, and answers with a deadline
// for each token: more of them than the device can compute in time.
std::vector<WorkloadRequest> Chats(int count, double per_second) {
  Random random(11);
  std::vector<WorkloadRequest> workload;
  double clock_us = 0;
  for (int i = 0; i < count; ++i) {
    clock_us -= 1e6 / per_second * std::log(1 - random.Uniform());
    const bool is_long = random.OneIn(4);
    const int64_t length = is_long ? random.Between(1000, 12'000) : random.Between(100, 1100);
    WorkloadRequest request;
    request.arrival_us = std::llround(clock_us);
    request.segments = {{std::to_string(i), length}};
    request.max_tokens = 64;
    request.slo_ttft_us = is_long ? 12'000'000 : 750'000;
    request.slo_tpot_us = is_long ? 200'000 : 100'000;
    workload.push_back(request);
  }
  return workload;
}

TEST(Replay, DecodeStepsByCostMeetAboutAsManyDeadlinesAsTheBetterWay) {
  const DeviceDescription device = LoadDevice(kDevices + "/a800-80-sxm.json").value();
  const SimModelShape shape = LoadShape(kDevices + "/models/llama-3.1-8b", "").value();
  const std::vector<WorkloadRequest> workload = Chats(300, 12);
  std::map<std::string, double> met;
  for (const char* steps : {"own", "mixed", "by-cost"}) {
    ReplayOptions options = Options("flow-prefill");
    options.engine.scheduler.max_num_seqs = 256;
    options.engine.scheduler.preemption.decode_steps = ChoiceOf<DecodeSteps>(steps).value();
    const ReplayOutcome outcome = Replay(device, shape, workload, options).value();
    const LoadReport report = MakeLoadReport(outcome.records, outcome.duration_us, {});
    met[steps] = report.total.slo_attainment.value();
  }
  EXPECT_NE(met["own"], met["mixed"]);
  EXPECT_GE(met["by-cost"], 0.97 * std::max(met["own"], met["mixed"]));
}

TEST(Replay, WhatDoesNotFitFailsAlone) {
  std::vector<WorkloadRequest> workload = Posts(2, 1);
  workload[0].segments[0].length = 30000;
  const ReplayOutcome outcome = Simulate(workload, Options("paged-fcfs"));
  EXPECT_FALSE(outcome.records[0].ok);
  EXPECT_THAT(outcome.records[0].error, HasSubstr("30150 tokens"));
  EXPECT_TRUE(outcome.records[1].ok);
}

TEST(Replay, TextAndMissingMemoryAreRefused) {
  const DeviceDescription device = LoadDevice(kDevices + "/rtx-3060.json").value();
  const SimModelShape shape = LoadShape(kDevices + "/models/llama-3.1-8b", "").value();
  EXPECT_THAT(Replay(device, shape, Posts(1, 1), Options("paged-fcfs")).status().message(),
              HasSubstr("leave no memory"));
  WorkloadRequest text;
  text.prompt = "words";
  EXPECT_THAT(Replay(device, shape, {text}, Options("paged-fcfs")).status().message(),
              HasSubstr("tokenizer"));
}

}  // namespace
}  // namespace skein
