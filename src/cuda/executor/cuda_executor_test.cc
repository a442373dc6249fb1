#include "cuda/executor/cuda_executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "testing/cuda_beside_cpu.h"

namespace skein::cuda {
namespace {

using testing::Blocks;
using testing::Both;
using testing::ExpectSame;
using testing::LoadedModel;
using testing::ModelDir;
using testing::Random;
using testing::RunPlan;
using testing::RunToEnd;
using testing::Sequence;

std::vector<std::string> ComputedModels() {
  std::vector<std::string> dirs;
  for (const std::string& dir : testing::GoldenModelDirs()) {
    const LoadedModel model(dir);
    if (CheckDeviceComputes(model.weights()).ok()) dirs.push_back(dir);
  }
  return dirs;
}

// Compares prompts, log-probabilities of prompts, labels, chunks and decodes on each model.
void ExpectTheProcessorsBits(Both& both, Random& random) {
  const int32_t vocab = both.model.vocab();
  // The first is longer than the windows of the models.
  Sequence a(random, vocab, random.Integer(42, 50), 0), b(random, vocab, 1, 10);
  Sequence c(random, vocab, random.Integer(24, 40), 20), d(random, vocab, 20, 30);
  Sequence e(random, vocab, 5, 40);
  const auto expect_same = [&](const StepPlan& without_states) {
    const StepPlan plan = testing::WithStates(*both.cpu, without_states);
    ExpectSame(RunPlan(both.cuda.executor(), plan), RunPlan(*both.cpu, plan));
  };
  PlanRow with_logprobs = a.Whole();
  with_logprobs.prompt_logprobs = {5, std::span(a.tokens).subspan(5), 2};
  const OutputSpec labels = LabelSpec{.tokens = {3, 90, 17, 91}};
  const OutputSpec embedding = EmbedSpec{};
  const OutputSpec labels_with_sum = LabelSpec{.tokens = {1, 2}, .want_log_sum_exp = true};
  PlanRow read = d.Row(0, d.size(), false);
  read.read = &labels;
  PlanRow embed = e.Row(0, e.size(), false);
  embed.read = &embedding;
  expect_same(OneShotPlan{{with_logprobs, b.Whole(), read, embed}});
  expect_same(MixedPlan{{}, {c.Row(0, 21, false)}, {}});
  MixedPlan mixed{{}, {c.Row(21, c.size(), true)}, {a.Row(a.size() - 1, a.size(), true)}};
  PlanRow second_read = d.Row(5, d.size(), false);
  second_read.read = &labels_with_sum;
  mixed.prefills.push_back(second_read);
  expect_same(mixed);
  expect_same(DecodePlan{{}, {a.Row(a.size() - 1, a.size(), true), b.Row(0, 1, true)}});
}

TEST(CudaExecutor, EveryDecoderHasTheProcessorsBits) {
  Random random;
  const std::vector<std::string> dirs = ComputedModels();
  EXPECT_GE(dirs.size(), 50u);
  for (const std::string& dir : dirs) {
    SCOPED_TRACE(dir);
    Both both(dir);
    ExpectTheProcessorsBits(both, random);
  }
}

TEST(CudaExecutor, ClassifiersHaveTheProcessorsBits) {
  Random random;
  for (const char* name : {"qwen3-classifier", "llama-reward", "mistral-classifier",
                           "qwen2-classifier", "qwen2-reward"}) {
    SCOPED_TRACE(name);
    Both both(std::string(SKEIN_SOURCE_DIR "/tests/data/heads/") + name);
    const int32_t vocab = both.model.vocab();
    Sequence a(random, vocab, 33, 0), b(random, vocab, 1, 10), c(random, vocab, 50, 20);
    const OutputSpec classes = ClassifySpec{};
    std::vector<PlanRow> rows = {a.Row(0, 33, false), b.Row(0, 1, false), c.Row(0, 50, false)};
    for (PlanRow& row : rows) row.read = &classes;
    const StepResults on_device = RunPlan(both.cuda.executor(), OneShotPlan{rows});
    ExpectSame(on_device, RunPlan(*both.cpu, OneShotPlan{rows}));
    EXPECT_EQ(on_device.reads.size(), 3u);
  }
}

TEST(CudaExecutor, Int8HasTheProcessorsBits) {
  Random random;
  for (const char* name :
       {"qwen3-bf16", "qwen3", "llama-biases", "gemma3", "qwen3-moe-bf16", "mixtral"}) {
    SCOPED_TRACE(name);
    Both both(ModelDir(name), "int8");
    ExpectTheProcessorsBits(both, random);
  }
}

// Rows of blocks of 4 bits, or of 8, also behind norms and gates of other kinds; matrices whose
// rows are no whole blocks are widened.
TEST(CudaExecutor, BlocksHaveTheProcessorsBits) {
  Random random;
  for (const auto& [name, quantization] : {std::pair{"qwen3-bf16", "int4"},
                                           {"qwen3-bf16", "q8_0"},
                                           {"qwen3-tied", "int4"},
                                           {"gemma3-bf16", "int4"},
                                           {"olmo2", "int4"},
                                           {"phi3", "int4"},
                                           {"qwen3-moe-bf16", "int4"},
                                           {"qwen3-moe-bf16", "q8_0"},
                                           {"qwen3-moe", "int4"},
                                           {"mixtral-bf16", "int4"},
                                           {"qwen2-moe", "int4"},
                                           {"qwen3.5-moe-bf16", "int4"}}) {
    SCOPED_TRACE(std::string(name) + " " + quantization);
    Both both(ModelDir(name), quantization);
    EXPECT_EQ(both.model.weights().matrix_dtype, DType::kBlocks);
    ExpectTheProcessorsBits(both, random);
  }
}

TEST(CudaExecutor, SinksHaveTheProcessorsBits) {
  Random random;
  for (const char* name : {"qwen3", "qwen3-bf16", "mistral-window-bf16"}) {
    SCOPED_TRACE(name);
    Both both(ModelDir(name), "auto", {}, {}, Pooling::kLast, nullptr, {}, /*adds_sinks=*/true);
    ExpectTheProcessorsBits(both, random);
  }
}

// Sinks, biases of the router and of experts, the clamped SwiGLU, and experts in MXFP4.
TEST(CudaExecutor, GptOssHasTheProcessorsBits) {
  Random random;
  for (const auto& [name, quantization] : {std::pair{"gpt-oss", "auto"},
                                           {"gpt-oss-bf16", "auto"},
                                           {"gpt-oss-mxfp4", "auto"},
                                           {"gpt-oss-mxfp4", "int8"}}) {
    SCOPED_TRACE(std::string(name) + " " + quantization);
    Both both(ModelDir(name), quantization);
    EXPECT_FALSE(both.model.weights().layers[0].router_bias.empty());
    ExpectTheProcessorsBits(both, random);
  }
}

TEST(CudaExecutor, TheOrderOfTurnsChangesNothing) {
  for (const TurnOrder& order :
       {TurnOrder{TurnOrder::Kind::kReverse, 0, true}, TurnOrder{TurnOrder::Kind::kShuffled, 5}}) {
    Random random;
    Both both(ModelDir("qwen3-bf16"), "auto", {.order = order});
    ExpectTheProcessorsBits(both, random);
  }
}

class CudaExecutorTest : public ::testing::Test {
 protected:
  StepResults RunOnDevice(const StepPlan& plan) { return RunPlan(both_.cuda.executor(), plan); }
  Sequence NewSequence(int32_t num_tokens, int32_t first_block) {
    return {random_, both_.model.vocab(), num_tokens, first_block};
  }

  Random random_;
  Both both_{ModelDir("qwen3-bf16"), "auto", {}, {.num_steps = 2, .num_decodes = 4}};
};

// A prompt is computed whole, in chunks, behind a cached prefix, with other requests, and with keys
// and values in memory of the pass.
TEST_F(CudaExecutorTest, ARequestHasTheSameBitsUnderAnyLoad) {
  Sequence sequence = NewSequence(75, 0);
  const StepResults alone = RunOnDevice(OneShotPlan{{sequence.Whole()}});
  sequence.blocks = Blocks(4, 76);
  RunOnDevice(MixedPlan{{}, {sequence.Row(0, 10, false)}, {}});
  RunOnDevice(MixedPlan{{}, {sequence.Row(10, 64, false)}, {}});
  ExpectSame(RunOnDevice(MixedPlan{{}, {sequence.Row(64, 75, true)}, {}}), alone);
  Sequence other = NewSequence(64, 20);
  std::vector<PlanRow> rows = {other.Whole(), sequence.Row(64, 75, true)};
  StepResults together = RunOnDevice(OneShotPlan{rows});
  together.draws.erase(together.draws.begin());
  ExpectSame(together, alone);
  ExpectSame(RunOnDevice(DecodePlan{{}, {sequence.Row(74, 75, true)}}), alone);
  sequence.blocks = {30};  // keys and values after the first block belong to the pass
  ExpectSame(RunOnDevice(OneShotPlan{{sequence.Whole()}}), alone);
}

// One graph for each size, whatever the lengths; the padding changes nothing.
TEST_F(CudaExecutorTest, DecodesRunAsGraphs) {
  std::vector<Sequence> sequences;
  for (int32_t i = 0; i < 3; ++i) sequences.push_back(NewSequence(5 + 40 * i, 5 * i));
  std::vector<PlanRow> prompts;
  for (Sequence& s : sequences) prompts.push_back(s.Row(0, s.size() - 1, false));
  const MixedPlan prefill{{}, prompts, {}};
  RunOnDevice(prefill);
  RunPlan(*both_.cpu, prefill);
  const FakeDevice& fake = both_.device.fake();
  int64_t num_runs = 0;
  for (const std::vector<int32_t>& chosen :
       std::vector<std::vector<int32_t>>{{0}, {2, 0}, {1}, {0, 1, 2}, {1, 2}, {2}, {2, 1, 0}}) {
    std::vector<PlanRow> rows;
    for (const int32_t i : chosen) {
      rows.push_back(sequences[i].Row(sequences[i].size() - 1, sequences[i].size(), true));
    }
    const StepPlan plan = DecodePlan{{}, rows};
    ExpectSame(RunOnDevice(plan), RunPlan(*both_.cpu, plan));
    EXPECT_EQ(fake.num_graph_runs(), ++num_runs);
  }
  EXPECT_EQ(fake.num_graphs(), 3);
}

// Draws beside others in one step: the device sends their tokens alone, but for log-probabilities
// and penalties.
TEST_F(CudaExecutorTest, DrawsBringNoLogitsToTheHost) {
  std::vector<Sequence> sequences;
  for (int32_t i = 0; i < 4; ++i) {
    sequences.push_back(NewSequence(9 + i, 4 * i));
    sequences.back().generate.sampling.temperature = i == 1 ? 0.8f : 0.0f;
    if (i != 2) sequences.back().generate.num_logprobs.reset();
  }
  sequences[3].generate.sampling.repetition_penalty = 1.5f;
  const auto plan = [&] {
    std::vector<PlanRow> rows;
    for (Sequence& sequence : sequences) {
      rows.push_back(sequence.Row(sequence.size() - 1, sequence.size(), true));
    }
    return DecodePlan{{}, rows};
  };
  const auto prefill = [&] {
    std::vector<PlanRow> rows;
    for (Sequence& sequence : sequences) rows.push_back(sequence.Row(0, sequence.size(), false));
    return MixedPlan{{}, rows, {}};
  };
  RunOnDevice(prefill());
  RunPlan(*both_.cpu, prefill());
  const size_t before = both_.device.bytes_to_host();
  const StepResults on_device = RunOnDevice(plan());
  const size_t row_bytes = both_.model.vocab() * sizeof(float);
  EXPECT_EQ(both_.device.bytes_to_host() - before, 2 * row_bytes + 3 * sizeof(RowLargest));
  const StepResults on_cpu = RunPlan(*both_.cpu, plan());
  ExpectSame(on_device, on_cpu);
}

// Divided and capped logits, in a graph and without.
TEST(CudaExecutor, GreedyDrawsOfFinishedLogitsNeedNoLogitsOnTheHost) {
  Random random;
  for (const char* name : {"granite-bf16", "gemma2-bf16", "gemma2-large-caps"}) {
    SCOPED_TRACE(name);
    Both both(ModelDir(name), "auto", {}, {.num_steps = 2, .num_decodes = 4});
    Sequence a(random, both.model.vocab(), 30, 0), b(random, both.model.vocab(), 9, 10);
    for (Sequence* sequence : {&a, &b}) {
      sequence->generate.sampling.temperature = 0;
      sequence->generate.num_logprobs.reset();
    }
    const std::vector<StepPlan> plans = {OneShotPlan{{a.Whole(), b.Whole()}},
                                         DecodePlan{{}, {a.Row(29, 30, true), b.Row(8, 9, true)}}};
    for (const StepPlan& plan : plans) {
      const size_t before = both.device.bytes_to_host();
      const StepResults on_device = RunPlan(both.cuda.executor(), plan);
      EXPECT_EQ(both.device.bytes_to_host() - before, 2 * sizeof(RowLargest));
      ExpectSame(on_device, RunPlan(*both.cpu, plan));
    }
  }
}

// A parent and two children in one step; the second forks inside a block.
TEST_F(CudaExecutorTest, ForestsAndCopiesHaveTheSameBits) {
  Sequence first = NewSequence(50, 0), second = NewSequence(60, 10);
  std::copy_n(first.tokens.begin(), 41, second.tokens.begin());
  const StepResults alone = RunOnDevice(OneShotPlan{{first.Whole(), second.Whole()}});
  Sequence parent = first;
  parent.blocks = Blocks(20, 41);
  first.blocks = {20, 30};
  second.blocks = {20, 31};
  std::vector<PlanRow> rows = {parent.Row(0, 41, false), first.Row(41, 50, true),
                               second.Row(41, 60, true)};
  rows[1].fork = rows[2].fork = {21, 9};
  ExpectSame(RunOnDevice(OneShotPlan{rows}), alone);

  Sequence copied = first;
  copied.blocks = {20, 40};
  DecodePlan decode{{{30, 40}}, {first.Row(49, 50, true), copied.Row(49, 50, true)}};
  StepResults results = RunOnDevice(decode);
  EXPECT_EQ(results.draws[0].token.chosen.logprob, alone.draws[0].token.chosen.logprob);
  EXPECT_EQ(results.draws[1].token.chosen.logprob, alone.draws[0].token.chosen.logprob);
}

TEST_F(CudaExecutorTest, BlocksGoToTheProcessorAndBack) {
  Sequence sequence = NewSequence(41, 0);
  RunOnDevice(OneShotPlan{{sequence.Row(0, 40, false)}});
  std::vector<std::byte> bytes(both_.cuda.kv().port_bytes());
  ASSERT_EQ(bytes.size(), both_.kv.port_bytes());
  for (const BlockId block : sequence.blocks) {
    both_.cuda.kv().ExportBlock(block, bytes);
    both_.kv.ImportBlock(block + 7, bytes);
  }
  Sequence moved = sequence;
  moved.blocks = Blocks(7, 41);
  const StepPlan on_cpu = DecodePlan{{}, {moved.Row(40, 41, true)}};
  const StepPlan on_device = DecodePlan{{}, {sequence.Row(40, 41, true)}};
  ExpectSame(RunPlan(*both_.cpu, on_cpu), RunOnDevice(on_device));
}

// A prompt of more than kSliceRows tokens, in slices as short as they can be.
constexpr int32_t kSlicedTokens = kSliceRows + 12;
constexpr double kShortestSlicesUs = 0;

struct AheadCase {
  double ahead_us;
  int64_t most_operators;  // that the device may have ahead of it
  double slice_us = kSliceUs;
  int32_t num_tokens = 20;
  int64_t stride = 1;  // of the launches at which the signal comes
};

// The signal comes at each launch in turn. The task must stop within the operators that were given
// to the device, and go on unchanged after another task has run. An operator of these prompts takes
// the device a little more than 4 us, by estimate.
class CudaExecutorAhead : public CudaExecutorTest,
                          public ::testing::WithParamInterface<AheadCase> {};

TEST_P(CudaExecutorAhead, ATaskStopsWithinAFewOperatorsOfTheSignal) {
  const AheadCase& param = GetParam();
  constexpr int64_t kLaunchesOfAnOperator = 2;
  const int64_t most_launches = param.most_operators * kLaunchesOfAnOperator;
  Sequence sequence = NewSequence(param.num_tokens, 0), other = NewSequence(5, 10);
  const StepPlan plan = OneShotPlan{{sequence.Whole()}};
  const StepPlan other_plan = OneShotPlan{{other.Whole()}};
  const StepResults expected = RunOnDevice(plan), other_expected = RunOnDevice(other_plan);
  both_.cuda.executor().set_ahead_us(param.ahead_us);
  both_.cuda.executor().set_slice_us(param.slice_us);
  FakeDevice& fake = both_.device.fake();
  std::atomic<bool> preempt{false};
  int64_t launches_left = 0, most_ahead = 0, done_at_signal = 0;
  both_.device.set_before_launch([&] {
    const int64_t ahead = fake.num_launches() - fake.num_launches_done();
    EXPECT_LE(ahead, most_launches);
    most_ahead = std::max(most_ahead, ahead);
    if (launches_left-- != 0) return;
    done_at_signal = fake.num_launches_done();
    preempt = true;
  });
  const int64_t before = fake.num_launches();
  launches_left = -1;
  RunOnDevice(plan);
  const int64_t num_launches = fake.num_launches() - before;
  ASSERT_GT(num_launches, 18);
  EXPECT_GE(most_ahead, param.most_operators - 1);
  for (int64_t k = 0; k < num_launches; k += param.stride) {
    preempt = false;
    const int64_t first = fake.num_launches();
    const auto task = both_.cuda.executor().Begin(plan);
    launches_left = k;
    if (both_.cuda.executor().Resume(*task, preempt) == TaskStatus::kPreempted) {
      EXPECT_LE(fake.num_launches() - first - k, kLaunchesOfAnOperator);
      EXPECT_EQ(fake.num_launches(), fake.num_launches_done());  // the device is free
      EXPECT_LE(fake.num_launches() - done_at_signal, most_launches);
      launches_left = -1;
      preempt = false;
      ExpectSame(RunOnDevice(other_plan), other_expected);
      RunToEnd(both_.cuda.executor(), *task);
    } else {
      // The signal came after the last point at which the task could stop.
      EXPECT_GE(k, num_launches - 1);
    }
    ExpectSame(both_.cuda.executor().Results(*task), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Marks, CudaExecutorAhead,
                         ::testing::Values(AheadCase{0, 2}, AheadCase{30, 9}, AheadCase{50, 15},
                                           AheadCase{0, 2, kShortestSlicesUs, kSlicedTokens, 4}));

// A long prompt stops behind each slice, beside a short one. The results are those of the prompt
// that runs operator by operator.
void ExpectSlicesChangeNothing(const std::string& model, const std::string& quantization,
                               Random& random) {
  SCOPED_TRACE(model + " " + quantization);
  Both both(ModelDir(model), quantization);
  CudaExecutor& executor = both.cuda.executor();
  const FakeDevice& fake = both.device.fake();
  Sequence sequence(random, both.model.vocab(), kSlicedTokens, 0);
  Sequence other(random, both.model.vocab(), 20, 10);
  const StepPlan plan = OneShotPlan{{other.Whole(), sequence.Whole()}};
  const int64_t before = fake.num_launches();
  const StepResults expected = RunPlan(executor, plan);
  const int64_t num_launches = fake.num_launches() - before;
  executor.set_slice_us(kShortestSlicesUs);
  std::atomic<bool> preempt{false};
  both.device.set_before_launch([&] { preempt = true; });
  const auto task = executor.Begin(plan);
  int64_t num_stops = 0;
  for (; executor.Resume(*task, preempt) == TaskStatus::kPreempted; ++num_stops) preempt = false;
  // Four products of two slices and as many slices of attention as tiles, five at least. The last
  // layer has one such product, and two tiles.
  const int64_t num_layers = both.model.config().num_layers;
  EXPECT_GE(fake.num_launches() - before - 2 * num_launches, (num_layers - 1) * (4 + 4) + 1 + 1);
  EXPECT_GE(num_stops, (num_layers - 1) * (8 + 4 + 4) + 9 + 1 + 1);
  ExpectSame(executor.Results(*task), expected);
}

TEST(CudaExecutor, SlicesOfOperatorsChangeNothing) {
  Random random;
  ExpectSlicesChangeNothing("qwen3-bf16", "auto", random);
  ExpectSlicesChangeNothing("qwen3", "int8", random);
  ExpectSlicesChangeNothing("qwen3-bf16", "int4", random);
  ExpectSlicesChangeNothing("qwen3-moe-bf16", "auto", random);
  ExpectSlicesChangeNothing("qwen3-moe-bf16", "int4", random);
  ExpectSlicesChangeNothing("qwen2-moe", "int8", random);
  ExpectSlicesChangeNothing("olmo2", "auto", random);
  ExpectSlicesChangeNothing("gemma3-bf16", "auto", random);
}

TEST_F(CudaExecutorTest, TasksStopWhereTheGranularitySays) {
  Sequence sequence = NewSequence(20, 0);
  const auto num_stops = [&](Granularity granularity) {
    const StepPlan plan = OneShotPlan{{sequence.Whole()}};
    both_.cuda.executor().set_granularity(granularity);
    std::atomic<bool> preempt{false};
    both_.device.set_before_launch([&] { preempt = true; });
    const auto task = both_.cuda.executor().Begin(plan);
    int stops = 0;
    while (both_.cuda.executor().Resume(*task, preempt) == TaskStatus::kPreempted) {
      preempt = false;
      ++stops;
    }
    return stops;
  };
  const int32_t num_layers = both_.model.config().num_layers;
  EXPECT_GE(num_stops(Granularity::kLayer), num_layers);
  EXPECT_LE(num_stops(Granularity::kLayer), num_layers + 2);
  EXPECT_GT(num_stops(Granularity::kOp), 6 * num_layers);
  EXPECT_EQ(num_stops(Granularity::kNone), 0);
  // A layer is all of its slices.
  sequence = NewSequence(kSlicedTokens, 0);
  both_.cuda.executor().set_slice_us(kShortestSlicesUs);
  EXPECT_LE(num_stops(Granularity::kLayer), num_layers + 2);
  EXPECT_GT(num_stops(Granularity::kOp), 6 * num_layers + (4 + 4) * (num_layers - 1) + 1);
}

TEST_F(CudaExecutorTest, ATaskGivenUpHalfWayLeavesNoTrace) {
  Sequence sequence = NewSequence(30, 0);
  const StepPlan plan = OneShotPlan{{sequence.Whole()}};
  const StepResults expected = RunOnDevice(plan);
  std::atomic<bool> preempt{false};
  for (int64_t k = 1; k < 18; k += 4) {
    int64_t launches_left = k;
    both_.device.set_before_launch([&] { preempt = launches_left-- == 0; });
    const auto task = both_.cuda.executor().Begin(plan);
    EXPECT_EQ(both_.cuda.executor().Resume(*task, preempt), TaskStatus::kPreempted);
  }
  both_.device.set_before_launch({});
  ExpectSame(RunOnDevice(plan), expected);
}

TEST(CudaExecutor, ALostDeviceFailsItsRequestsAlone) {
  Random random;
  Both both(ModelDir("qwen3-bf16"), "auto", {.launches_until_lost = 7});
  Sequence sequence(random, both.model.vocab(), 9, 0);
  const OutputSpec labels = LabelSpec{.tokens = {3}};
  PlanRow read = sequence.Whole();
  read.read = &labels;
  for (int i = 0; i < 2; ++i) {
    const StepResults results = RunPlan(both.cuda.executor(), OneShotPlan{{read}});
    EXPECT_FALSE(results.draws.at(0).finite);
    EXPECT_FALSE(results.reads.at(0).finite);
  }
  EXPECT_EQ(both.cuda.executor().device_status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(RunPlan(*both.cpu, OneShotPlan{{read}}).draws.at(0).finite);
}

TEST(CudaExecutor, OtherModelsAreRefusedByName) {
  const auto refused = [](void (*change)(ModelConfig&)) {
    ModelWeights weights;
    weights.config = LoadedModel(ModelDir("qwen3")).config();
    EXPECT_TRUE(CheckDeviceComputes(weights).ok());
    change(weights.config);
    const Status status = CheckDeviceComputes(weights);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    return status.param();
  };
  EXPECT_EQ(refused([](ModelConfig& config) { config.head_dim = 320; }), "head_dim");
  EXPECT_EQ(refused([](ModelConfig& config) { config.head_dim = 33; }), "head_dim");
  EXPECT_EQ(refused([](ModelConfig& config) { config.num_experts = 2000; }), "num_experts");
  EXPECT_EQ(refused([](ModelConfig& config) { config.encoder.relative.span = 5; }),
            "position_buckets");
  EXPECT_EQ(refused([](ModelConfig& config) { config.activation = Activation::kTanh; }),
            "hidden_act");
}

}  // namespace
}  // namespace skein::cuda
