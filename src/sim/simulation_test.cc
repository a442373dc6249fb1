#include "sim/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "engine/cost_profile.h"
#include "sim/device.h"
#include "sim/sim_executor.h"
#include "skein/choice_names.h"

namespace skein {
namespace {

using ::testing::HasSubstr;

constexpr const char* kDevice = R"({"name": "test", "tflops": {"bf16": 100, "fp8": 200},
    "bandwidth_gbps": 1000, "memory_gb": 20, "launch_us": 5, "step_us": 100, "row_us": 2,
    "matmul_efficiency": [[1, 0.1], [100, 0.5]], "attention_efficiency": [[1, 0.2]],
    "link_gbps": 50, "link_us": 10, "host_gbps": 25})";

SimModelShape SmallShape() {
  SimModelShape shape;
  shape.num_layers = 4;
  shape.hidden_size = 1024;
  shape.intermediate_size = 4096;
  shape.vocab_size = 32000;
  shape.head_dim = 64;
  shape.q_width = 1024;
  shape.kv_width = 512;
  shape.max_position = 8192;
  return shape;
}

StepCost Cost(const Parallelism& parallelism = {}, const SimModelShape& shape = SmallShape()) {
  return StepCost::Make(ParseDevice(kDevice).value(), shape, parallelism).value();
}

SchedulerConfig Config(const std::string& preset) {
  EngineConfig config;
  config.scheduler.policies = FindPreset(preset)->policies;
  config.vocab_size = 32000;
  config.scheduler.max_model_len = 8192;
  config.scheduler.num_kv_blocks = 1000;
  config.scheduler.max_num_seqs = 8;
  config.scheduler.max_num_batched_tokens = 2048;
  return MakeSchedulerConfig(config).value();
}

StepPlan OneRow(const std::vector<TokenId>& tokens, int32_t begin) {
  OneShotPlan plan;
  plan.rows.push_back({.begin = begin, .tokens = tokens});
  return plan;
}

TEST(Device, EfficiencyIsInterpolatedOverTheLogarithm) {
  const DeviceDescription device = ParseDevice(kDevice).value();
  EXPECT_DOUBLE_EQ(EfficiencyAt(device.matmul_efficiency, 0.5), 0.1);
  EXPECT_DOUBLE_EQ(EfficiencyAt(device.matmul_efficiency, 10), 0.3);
  EXPECT_DOUBLE_EQ(EfficiencyAt(device.matmul_efficiency, 5000), 0.5);
}

TEST(Device, WhatIsWrittenIsRead) {
  const DeviceDescription device = ParseDevice(kDevice).value();
  const DeviceDescription again = ParseDevice(DeviceToJson(device)).value();
  EXPECT_EQ(DeviceToJson(again), DeviceToJson(device));
  EXPECT_EQ(again.memory_bytes, 20'000'000'000);
}

TEST(Device, ErrorsNameTheField) {
  const auto error = [](const std::string& from, const std::string& to) {
    std::string text = kDevice;
    text.replace(text.find(from), from.size(), to);
    const auto device = ParseDevice(text);
    return device.ok() ? std::string("ok") : device.status().param();
  };
  EXPECT_EQ(error("\"bf16\": 100", "\"bf16\": 0"), "tflops");
  EXPECT_EQ(error("bf16", "int3"), "tflops");
  EXPECT_EQ(error("\"bandwidth_gbps\": 1000", "\"bandwidth_gbps\": \"1\""), "bandwidth_gbps");
  EXPECT_EQ(error("[[1, 0.1], [100, 0.5]]", "[[100, 0.1], [1, 0.5]]"), "matmul_efficiency");
  EXPECT_EQ(error("\"launch_us\": 5", "\"launch_us\": -5"), "launch_us");
}

TEST(StepCost, AddsUpItsTerms) {
  const std::vector<TokenId> tokens(100, 1);
  // The time per layer: four products at half of 100 TFLOP/s, attention at a fifth, five launches.
  const double products = 2.0 * 100 * 1024 * (1536 + 1024 + 2 * 4096 + 4096) / 50e6;
  const double pairs = 100 * (50 + 50.5);
  const double attention = 4 * pairs * 1024 / 20e6;
  const double expected = 100 + 2 + 4 * (products + attention + 25);
  EXPECT_NEAR(Cost().StepUs(OneRow(tokens, 50)), expected, 1e-6 * expected);
}

TEST(StepCost, FewRowsWaitForMemory) {
  const std::vector<TokenId> tokens(1, 1);
  SimModelShape shape = SmallShape();
  const double bf16_us = Cost({}, shape).StepUs(OneRow(tokens, 0));
  const double weights_us = 2.0 * static_cast<double>(shape.num_layer_parameters()) / 1e6;
  EXPECT_GT(bf16_us, weights_us);
  shape.weight_type = "fp8";
  EXPECT_NEAR(bf16_us - Cost({}, shape).StepUs(OneRow(tokens, 0)), weights_us / 2, 1);
}

// A single token reads the weights of its own experts only; many tokens read the weights of all
// experts.
TEST(StepCost, ExpertsAreReadOnce) {
  SimModelShape shape = SmallShape();
  shape.num_expert_layers = shape.num_layers;
  shape.num_experts = 16;
  shape.experts_per_token = 2;
  shape.expert_size = 512;
  const double expert_us = 4 * 3.0 * 1024 * 512 * 2 / 1e6;  // one expert's weights in all layers
  const std::vector<TokenId> tokens(64, 1);
  const auto step_us = [&](size_t count, const SimModelShape& of) {
    return Cost({}, of).StepUs(OneRow({tokens.begin(), tokens.begin() + count}, 0));
  };
  SimModelShape two = shape;
  two.num_experts = 2;
  // The router's columns and the tokens' own rows take a little more time.
  EXPECT_NEAR(step_us(1, shape), step_us(1, two), 1);
  EXPECT_NEAR(step_us(64, shape) - step_us(64, two), 14 * expert_us, 0.1 * 14 * expert_us);
  const int64_t experts = int64_t{16} * 1024 * (3 * 512 + 1);
  const int64_t parameters = 4 * (int64_t{1024} * 1536 + int64_t{1024} * 1024 + experts);
  EXPECT_EQ(shape.num_layer_parameters(), parameters);
  // An expert of every token is read by each step.
  SimModelShape shared = shape;
  shared.shared_expert_size = 512;
  EXPECT_EQ(shared.num_layer_parameters(), parameters + 4 * int64_t{1024} * (3 * 512 + 1));
  constexpr double kLaunchesUs = 4 * 3 * 5;  // gate and up, down, and its own gate, in each layer
  EXPECT_NEAR(step_us(1, shared) - step_us(1, shape), expert_us + kLaunchesUs, 0.1 * expert_us);
  EXPECT_GT(step_us(64, shared) - step_us(64, shape), expert_us + kLaunchesUs);
}

TEST(StepCost, HybridExecutionPaysForEachChunk) {
  const DeviceDescription device = ParseDevice(kDevice).value();
  const auto cost = [&](int32_t chunk_tokens) {
    return StepCost::Make(device, SmallShape(), {}, KvReading::kEachRow, chunk_tokens).value();
  };
  const auto product = [&](double rows, double in, double out) {
    const double flops_us =
        2 * rows * in * out / (100e6 * EfficiencyAt(device.matmul_efficiency, rows));
    return 5 + std::max(flops_us, 2 * (in * out + rows * (in + out)) / 1e6);
  };
  const auto products = [&](double rows) {
    return product(rows, 1024, 1536) + product(rows, 1024, 1024) + product(rows, 1024, 2 * 4096) +
           product(rows, 4096, 1024);
  };
  const std::vector<TokenId> tokens(105, 1);
  const double attention = 4 * 105.0 * 53 * 1024 / 20e6 + 5;
  const auto expected = [&](double operators) { return 102 + 4 * (operators + attention); };
  const double plain = expected(products(105));
  EXPECT_NEAR(cost(0).StepUs(OneRow(tokens, 0)), plain, 1e-6 * plain);
  EXPECT_EQ(cost(105).StepUs(OneRow(tokens, 0)), cost(0).StepUs(OneRow(tokens, 0)));
  const double hybrid = expected(10 * products(10) + products(5));
  EXPECT_GT(hybrid, 1.5 * plain);
  EXPECT_NEAR(cost(10).StepUs(OneRow(tokens, 0)), hybrid, 1e-6 * hybrid);
}

TEST(StepCost, ParallelismPaysForTheLink) {
  const std::vector<TokenId> tokens(4096, 1);
  const double alone = Cost().StepUs(OneRow(tokens, 0));
  const double tensor = Cost({.tensor = 2}).StepUs(OneRow(tokens, 0));
  const double all_reduce = 10 + 4096 * 1024 * 2 / 50e3;
  EXPECT_NEAR(tensor, 102 + (alone - 102 - 4 * 25) / 2 + 4 * (25 + 2 * all_reduce), 1);
  // Two micro-batches go through two stages: three turns, each with half of the layers.
  const double pipeline = Cost({.pipeline = 2}).StepUs(OneRow(tokens, 0));
  const double half = (alone - 102 - 4 * 25) / 2 + 4 * 25;
  EXPECT_NEAR(pipeline, 102 + half * 3 / 2 + 10 + 2048 * 1024 * 2 / 50e3, 1);
}

// A stage reads its weights again for each micro-batch, so few rows are best computed together.
TEST(StepCost, MoreRowsAreNotFasterInAPipeline) {
  const std::vector<TokenId> token(1, 1);
  for (const int32_t stages : {2, 4}) {
    double before = Cost().StepUs(OneRow(token, 100));
    for (int num_rows = 1; num_rows <= 16; ++num_rows) {
      OneShotPlan plan;
      for (int i = 0; i < num_rows; ++i) plan.rows.push_back({.begin = 100, .tokens = token});
      const double us = Cost({.pipeline = stages}).StepUs(plan);
      EXPECT_GE(us, before) << stages << " stages, " << num_rows << " rows";
      before = us;
    }
  }
}

// A block of 32 tokens has 4 layers of 32 KB: 1.31072 us each at 25 GB/s, behind one launch of 5
// us.
TEST(StepCost, CopiesToAndFromTheHostTakeTime) {
  const std::vector<TokenId> tokens(100);
  const auto copies_us = [&](const Parallelism& parallelism, size_t num_copies) {
    StepPlan plan = OneRow(tokens, 0);
    const double without = Cost(parallelism).StepUs(plan);
    std::get<OneShotPlan>(plan).host_copies.resize(num_copies);
    return Cost(parallelism).StepUs(plan) - without;
  };
  EXPECT_EQ(copies_us({}, 0), 0);
  EXPECT_NEAR(copies_us({}, 1), 5 + 4 * 1.31072, 1e-6);
  EXPECT_NEAR(copies_us({}, 3), 3 * copies_us({}, 1), 1e-6);
  EXPECT_NEAR(copies_us({.tensor = 2}, 1), 5 + 4 * 1.31072 / 2, 1e-6);
  EXPECT_NEAR(copies_us({.pipeline = 2}, 1), 5 + 2 * 1.31072, 1e-6);
}

TEST(StepCost, RefusesWhatCannotBeDivided) {
  const DeviceDescription device = ParseDevice(kDevice).value();
  SimModelShape shape = SmallShape();
  EXPECT_THAT(StepCost::Make(device, shape, {.tensor = 3}).status().message(),
              HasSubstr("tp is 3"));
  EXPECT_THAT(StepCost::Make(device, shape, {.tensor = 8}).status().message(),
              HasSubstr("16 heads and 4 KV heads"));
  EXPECT_THAT(StepCost::Make(device, shape, {.pipeline = 5}).status().message(),
              HasSubstr("[1, 4]"));
  DeviceDescription alone = device;
  alone.link_gbps = 0;
  EXPECT_EQ(StepCost::Make(alone, shape, {.tensor = 2}).status().param(), "tp");
  EXPECT_EQ(StepCost::Make(alone, shape, {.pipeline = 2}).status().param(), "pp");
  shape.weight_type = "f32";
  EXPECT_THAT(StepCost::Make(device, shape, {}).status().message(), HasSubstr("no peak"));
}

// A profile of the simulated device finds the linear part of its costs.
TEST(SimExecutor, CanBeProfiled) {
  VirtualClock clock;
  SimExecutor executor(Cost(), &clock, 32000);
  StepProfiler profiler(&executor, &clock, 32000, 1000, GenerateSpec{});
  const std::vector<CostSample> samples =
      ProfileCosts(profiler, clock, {.max_step_tokens = 4096, .max_model_len = 8192});
  EXPECT_GE(samples.size(), 10u);
  const CostFit fit = FitCosts(samples);
  const std::vector<ProfileRow> row = {{3000, 2000}};
  const double measured = profiler.MeasureUs(row);
  EXPECT_NEAR(PredictUs(fit, WorkOf(3000, 2000)) / measured, 1, 0.2);
  EXPECT_EQ(profiler.MedianUs(row, 3), measured);  // the device is always equally fast
  EXPECT_EQ(profiler.LeastUs(row, 3), measured);
}

// A slow device is profiled within the time limit, up to prompts that are long enough to
// extrapolate.
TEST(SimExecutor, CanBeProfiledInLittleTime) {
  std::string text = kDevice;
  text.replace(text.find("\"bf16\": 100"), 11, "\"bf16\": 0.1");
  const StepCost cost = StepCost::Make(ParseDevice(text).value(), SmallShape(), {}).value();
  VirtualClock clock;
  SimExecutor executor(cost, &clock, 32000);
  StepProfiler profiler(&executor, &clock, 32000, 1000, GenerateSpec{});
  const double whole_us = profiler.MeasureUs(std::vector<ProfileRow>{{4096, 0}});
  EXPECT_GT(whole_us, 8e6);
  const TimeUs begin_us = clock.NowUs();
  const CostFit fit =
      FitCosts(ProfileCosts(profiler, clock, {.max_step_tokens = 4096, .max_model_len = 8192}));
  EXPECT_LT(clock.NowUs() - begin_us, 5e6);
  EXPECT_GT(clock.NowUs() - begin_us, 2e6);
  EXPECT_NEAR(PredictUs(fit, WorkOf(4096, 0)) / whole_us, 1, 0.2);
}

// If prompts run whole, the profile measures the longest prompt, else the largest step.
TEST(SimExecutor, IsProfiledUpToTheLongestStep) {
  const auto longest = [](const std::string& preset) {
    VirtualClock clock;
    SimExecutor executor(Cost(), &clock, 32000);
    StepProfiler profiler(&executor, &clock, 32000, 1000, GenerateSpec{});
    double tokens = 0;
    for (const CostSample& sample :
         ProfileCosts(profiler, clock, ProfileLimitsOf(Config(preset)))) {
      tokens = std::max(tokens, sample.work.num_tokens);
    }
    return tokens;
  };
  EXPECT_EQ(longest("prefill-only"), 8191);  // one less than the context
  EXPECT_EQ(longest("paged-fcfs"), 2048);
}

// Prompts longer than the blocks are not tried, even if the model allows longer prompts.
TEST(SimExecutor, CanBeProfiledInFewBlocks) {
  VirtualClock clock;
  SimExecutor executor(Cost(), &clock, 32000);
  const CostProfileLimits limits = {.max_step_tokens = 4096, .max_model_len = 8192};
  StepProfiler four(&executor, &clock, 32000, 4, GenerateSpec{});
  const std::vector<CostSample> samples = ProfileCosts(four, clock, limits);
  EXPECT_GE(samples.size(), 3u);
  EXPECT_GT(PredictUs(FitCosts(samples), WorkOf(10, 0)), 0);
  StepProfiler one(&executor, &clock, 32000, 1, GenerateSpec{});
  EXPECT_TRUE(ProfileCosts(one, clock, limits).empty());
  // If not all keys and values are retained, prompts may be longer than the blocks.
  StepProfiler none(&executor, &clock, 32000, 0, GenerateSpec{}, Retention::kPrefix);
  double longest = 0;
  for (const CostSample& sample : ProfileCosts(none, clock, limits)) {
    longest = std::max(longest, sample.work.num_tokens);
  }
  EXPECT_EQ(longest, 4096);
  EXPECT_EQ(PredictUs(FitCosts({}), WorkOf(10, 0)), 0);
}

struct Load {
  std::vector<TimeUs> arrivals_us;
  std::vector<int32_t> prompt_lens;
  int32_t max_tokens = 1;
};

std::map<int64_t, RequestTimes> Simulate(const Load& load, const std::string& preset,
                                         int32_t concurrency = 0) {
  VirtualClock clock;
  SimExecutor executor(Cost(), &clock, 32000);
  Simulation simulation(Config(preset), &executor, &clock);
  size_t next = 0;
  std::map<int64_t, RequestTimes> times;
  int64_t num_refused = 0;
  simulation.Run(
      [&]() -> std::optional<SimArrival> {
        if (next == load.arrivals_us.size()) return std::nullopt;
        SimArrival arrival;
        arrival.arrival_us = load.arrivals_us[next];
        arrival.request.prompt.assign(load.prompt_lens[next], static_cast<TokenId>(next));
        arrival.request.generate().max_tokens = load.max_tokens;
        ++next;
        return arrival;
      },
      {.on_output =
           [&](int64_t index, const RequestOutput& output) {
             if (output.finish) times[index] = output.times;
           },
       .on_refused = [&](int64_t, const Status&) { ++num_refused; }},
      concurrency);
  EXPECT_EQ(times.size() + num_refused, load.arrivals_us.size());
  return times;
}

TEST(Simulation, ARequestAloneTakesItsSteps) {
  const std::map<int64_t, RequestTimes> times = Simulate({{1000}, {500}}, "paged-fcfs");
  OneShotPlan plan;
  const std::vector<TokenId> tokens(500, 1);
  const DrawSpec draw;
  plan.rows.push_back({.tokens = tokens, .draws = std::span(&draw, 1)});
  EXPECT_EQ(times.at(0).arrival_us, 1000);
  EXPECT_NEAR(static_cast<double>(times.at(0).finished_us - 1000), Cost().StepUs(plan), 1);
}

TEST(Simulation, TheSameLoadGivesTheSameTimes) {
  Load load;
  for (int i = 0; i < 200; ++i) {
    load.arrivals_us.push_back(i * 700);
    load.prompt_lens.push_back(50 + (i * 37) % 1500);
  }
  load.max_tokens = 5;
  const auto first = Simulate(load, "chunked-fcfs");
  const auto second = Simulate(load, "chunked-fcfs");
  for (const auto& [index, times] : first) {
    EXPECT_EQ(times.finished_us, second.at(index).finished_us);
    EXPECT_GE(times.first_token_us, times.arrival_us);
  }
}

TEST(Simulation, ShortJobsOvertakeUnderPrefillOnly) {
  const Load load = {{0, 1, 2}, {2000, 1900, 50}};
  const auto fcfs = Simulate(load, "paged-fcfs");
  const auto srjf = Simulate(load, "prefill-only");
  EXPECT_LE(fcfs.at(1).finished_us, fcfs.at(2).finished_us);
  EXPECT_GT(srjf.at(1).finished_us, srjf.at(2).finished_us);
}

TEST(Simulation, AClosedLoopRunsSoManyAtATime) {
  const Load load = {{0, 0, 0, 0}, {100, 100, 100, 100}};
  const auto times = Simulate(load, "paged-fcfs", 1);
  for (int64_t i = 1; i < 4; ++i) EXPECT_EQ(times.at(i).arrival_us, times.at(i - 1).finished_us);
}

TEST(Simulation, WhatDoesNotFitIsRefused) {
  const auto times = Simulate({{0, 1}, {9000, 10}}, "paged-fcfs");
  EXPECT_EQ(times.size(), 1u);
}

// A short urgent request behind a long one waits for the next boundary, not for the end of the long
// request. Together they take the sum of their times.
TEST(SimulationTest, TheUrgentStopsALongPrefill) {
  std::map<std::string, std::vector<TimeUs>> ttft_us;
  for (const char* sharing : {"whole", "preempt-layer", "preempt-op"}) {
    EngineConfig engine;
    engine.scheduler.policies = FindPreset("paged-fcfs")->policies;
    engine.scheduler.policies.sharing = ChoiceOf<Sharing>(sharing).value();
    engine.scheduler.policies.granularity = GranularityOf(engine.scheduler.policies.sharing);
    engine.scheduler.max_model_len = 8192;
    engine.scheduler.num_kv_blocks = 1000;
    engine.scheduler.max_num_batched_tokens = 8192;
    VirtualClock clock;
    SimExecutor executor(Cost(), &clock, 32000);
    Simulation simulation(MakeSchedulerConfig(engine).value(), &executor, &clock);
    int number = 0;
    const auto source = [&]() -> std::optional<SimArrival> {
      if (number == 2) return std::nullopt;
      SimArrival arrival;
      arrival.arrival_us = number == 0 ? 0 : 1000;
      arrival.request.prompt.assign(number == 0 ? 8000 : 100, number);
      arrival.request.generate().max_tokens = 1;
      arrival.request.priority = -number++;
      return arrival;
    };
    std::vector<TimeUs>& ttft = ttft_us[sharing];
    ttft.resize(2);
    const SimOutcome outcome =
        simulation.Run(source, {.on_output = [&](int64_t i, const RequestOutput& output) {
                         ttft[i] = output.times.first_token_us - output.times.arrival_us;
                       }});
    EXPECT_EQ(outcome.stats.steps_resumed, sharing == std::string("whole") ? 0u : 1u);
  }
  const auto& whole = ttft_us["whole"];
  const auto& layer = ttft_us["preempt-layer"];
  const auto& op = ttft_us["preempt-op"];
  EXPECT_GT(whole[1], whole[0] - 1000);
  EXPECT_LT(layer[1], whole[1] / 2);
  EXPECT_LT(op[1], layer[1]);
  EXPECT_EQ(layer[0], op[0]);
  EXPECT_EQ(op[0], whole[1] + 1000);
}

// Each of these requests stops the one before it. When the bounds of their waits end, the suspended
// steps resume.
TEST(SimulationTest, StepsGoOnWhenTheirBoundsEnd) {
  EngineConfig engine;
  engine.scheduler.policies = FindPreset("paged-fcfs")->policies;
  engine.scheduler.policies.sharing = Sharing::kPreemptOp;
  engine.scheduler.preemption.max_suspended_steps = 3;
  engine.scheduler.preemption.max_suspended_us = 2000;
  engine.scheduler.max_model_len = 8192;
  engine.scheduler.num_kv_blocks = 4000;
  engine.scheduler.max_num_batched_tokens = 8192;
  VirtualClock clock;
  SimExecutor executor(Cost(), &clock, 32000);
  Simulation simulation(MakeSchedulerConfig(engine).value(), &executor, &clock);
  constexpr int kRequests = 40;
  int number = 0, num_finished = 0;
  const auto source = [&]() -> std::optional<SimArrival> {
    if (number == kRequests) return std::nullopt;
    SimArrival arrival;
    arrival.arrival_us = 1300 * number;
    arrival.request.prompt.assign(3000, number);
    arrival.request.generate().max_tokens = 1;
    arrival.request.priority = -number++;
    return arrival;
  };
  const SimOutcome outcome =
      simulation.Run(source, {.on_output = [&](int64_t, const RequestOutput& output) {
                       num_finished += output.finish.has_value();
                     }});
  EXPECT_EQ(num_finished, kRequests);
  EXPECT_GT(outcome.stats.steps_resumed, 0u);
  EXPECT_GT(outcome.stats.rounds_timer, 0u);
}

}  // namespace
}  // namespace skein
