#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cuda/executor/cuda_executor.h"
#include "cuda/executor/rank.h"
#include "testing/cuda_beside_cpu.h"

namespace skein::cuda {
namespace {

using testing::Blocks;
using testing::Both;
using testing::ExpectSame;
using testing::FakeDeviceOptions;
using testing::LoadedModel;
using testing::ModelDir;
using testing::Random;
using testing::RunPlan;
using testing::Sequence;
using testing::StopAtEachLaunch;

constexpr StepStates kTwoSteps = {.num_steps = 2};

// A model on two ranks.
Both OnRanks(const std::string& model, const std::string& quantization = "auto",
             const FakeDeviceOptions& lead = {}, const FakeDeviceOptions& peer = {}) {
  return Both(ModelDir(model), quantization, lead, kTwoSteps, Pooling::kLast, nullptr, {peer});
}

// Prompts with labels and log-probabilities, a chunk behind another, and decodes.
void ExpectTheProcessorsBits(Both& both, Random& random) {
  const int32_t vocab = both.model.vocab();
  Sequence a(random, vocab, random.Integer(42, 50), 0), b(random, vocab, 1, 10);
  Sequence c(random, vocab, 30, 20);
  const OutputSpec labels = LabelSpec{.tokens = {3, 90, 17, 91}};
  PlanRow with_logprobs = a.Whole(), read = c.Row(0, 21, false);
  with_logprobs.prompt_logprobs = {5, std::span(a.tokens).subspan(5), 2};
  read.read = &labels;
  const auto expect_same = [&](const StepPlan& plan) {
    ExpectSame(RunPlan(both.cuda.executor(), plan), RunPlan(*both.cpu, plan));
  };
  expect_same(OneShotPlan{{with_logprobs, b.Whole(), read}});
  expect_same(MixedPlan{{}, {c.Row(21, 30, true)}, {a.Row(a.size() - 1, a.size(), true)}});
  expect_same(DecodePlan{{}, {a.Row(a.size() - 1, a.size(), true), b.Row(0, 1, true)}});
}

TEST(CudaRanks, ColumnsAreWholePanelsWithoutGaps) {
  for (const int32_t width : {16, 100, 112, 2560, 9728}) {
    for (int32_t count = 1; count <= kMaxRanks; ++count) {
      int32_t end = 0;
      for (int32_t index = 0; index < count; ++index) {
        const ColumnRange columns = ColumnsOf({index, count}, width);
        EXPECT_EQ(columns.begin % 16, 0);
        EXPECT_EQ(std::min(columns.begin, width), end);
        end = columns.end;
      }
      EXPECT_EQ(end, width);
    }
  }
}

TEST(CudaRanks, EveryModelHasTheBitsOfOneDevice) {
  Random random;
  int num_models = 0;
  for (const std::string& dir : testing::GoldenModelDirs()) {
    SCOPED_TRACE(dir);
    const LoadedModel model(dir);
    if (!CheckDeviceComputes(model.weights()).ok() || !CheckRanks(model.config(), 2).ok()) continue;
    Both both(dir, "auto", {}, {}, Pooling::kLast, nullptr, {{}});
    ExpectTheProcessorsBits(both, random);
    ++num_models;
  }
  EXPECT_GE(num_models, 29);
}

// Each rank has the sinks of its heads.
TEST(CudaRanks, SinksHaveTheSameBits) {
  Random random;
  Both both(ModelDir("qwen3-bf16"), "auto", {}, {}, Pooling::kLast, nullptr, {{}},
            /*adds_sinks=*/true);
  ExpectTheProcessorsBits(both, random);
}

TEST(CudaRanks, PackedWeightsHaveTheSameBits) {
  Random random;
  for (const char* quantization : {"int8", "int4"}) {
    for (const char* model : {"qwen3-bf16", "llama-biases", "phi3-bf16", "qwen3-moe-bf16"}) {
      SCOPED_TRACE(std::string(model) + " " + quantization);
      Both both = OnRanks(model, quantization);
      ExpectTheProcessorsBits(both, random);
    }
  }
}

// Ranks share a matrix behind the last of an operator's slices.
TEST(CudaRanks, SlicesChangeNothing) {
  Random random;
  for (const char* model : {"qwen3-bf16", "qwen3-moe-bf16"}) {
    SCOPED_TRACE(model);
    Both both = OnRanks(model);
    Sequence sequence(random, both.model.vocab(), kSliceRows + 12, 0);
    const StepPlan plan = OneShotPlan{{sequence.Whole()}};
    const FakeDevice& peer = both.peers[0]->fake();
    const StepResults expected = RunPlan(both.cuda.executor(), plan);
    const int64_t num_launches = peer.num_launches();
    both.cuda.executor().set_slice_us(0);
    ExpectSame(RunPlan(both.cuda.executor(), plan), expected);
    EXPECT_GT(peer.num_launches() - num_launches, num_launches);
  }
}

// One rank runs as far ahead of the other as their marks allow.
TEST(CudaRanks, ARankMayBeFarAhead) {
  Random random;
  for (const bool lead_ahead : {false, true}) {
    for (const char* model : {"qwen3-bf16", "qwen3-moe-bf16", "granite-bf16"}) {
      SCOPED_TRACE(std::string(model) + (lead_ahead ? ", lead ahead" : ", peer ahead"));
      Both both = OnRanks(model, "auto", {.at_once = lead_ahead}, {.at_once = !lead_ahead});
      ExpectTheProcessorsBits(both, random);
    }
  }
}

// The launches of all ranks are one graph of the leading device.
TEST(CudaRanks, DecodesRunAsGraphs) {
  Random random;
  for (const bool lead_ahead : {false, true}) {
    Both both = OnRanks("qwen3-bf16", "auto", {.at_once = lead_ahead}, {.at_once = !lead_ahead});
    std::vector<Sequence> sequences;
    for (int32_t i = 0; i < 3; ++i) {
      sequences.emplace_back(random, both.model.vocab(), 5 + 40 * i, 5 * i);
    }
    for (Sequence& sequence : sequences) {
      const StepPlan prefill = MixedPlan{{}, {sequence.Row(0, sequence.size() - 1, false)}, {}};
      RunPlan(both.cuda.executor(), prefill);
      RunPlan(*both.cpu, prefill);
    }
    const FakeDevice& lead = both.device.fake();
    int64_t num_runs = 0;
    for (const std::vector<int32_t>& chosen :
         std::vector<std::vector<int32_t>>{{0}, {2, 0}, {1}, {0, 1, 2}, {2, 1, 0}}) {
      std::vector<PlanRow> rows;
      for (const int32_t i : chosen) {
        rows.push_back(sequences[i].Row(sequences[i].size() - 1, sequences[i].size(), true));
      }
      const StepPlan plan = DecodePlan{{}, rows};
      ExpectSame(RunPlan(both.cuda.executor(), plan), RunPlan(*both.cpu, plan));
      EXPECT_EQ(lead.num_graph_runs(), ++num_runs);
    }
    EXPECT_EQ(lead.num_graphs(), 3);
    EXPECT_EQ(both.peers[0]->fake().num_graphs(), 0);
  }
}

// The signal comes at each launch of the leading rank in turn. All ranks stop behind the same
// operator, and go on unchanged after another task.
TEST(CudaRanks, AllStopAtTheSameOperator) {
  Random random;
  Both both = OnRanks("qwen3-bf16");
  Sequence sequence(random, both.model.vocab(), 20, 0), other(random, both.model.vocab(), 5, 10);
  const StepPlan plan = OneShotPlan{{sequence.Whole()}}, other_plan = OneShotPlan{{other.Whole()}};
  CudaExecutor& executor = both.cuda.executor();
  FakeDevice &lead = both.device.fake(), &peer = both.peers[0]->fake();
  const StepResults expected = RunPlan(executor, plan);
  const int64_t num_launches = lead.num_launches(), num_of_layers = peer.num_launches();
  const int64_t num_stops =
      StopAtEachLaunch(both, plan, expected, other_plan, num_launches, [&](int64_t) {
        return [&, lead_before = lead.num_launches(), peer_before = peer.num_launches()] {
          const int64_t num_lead = lead.num_launches() - lead_before;
          EXPECT_EQ(peer.num_launches() - peer_before, std::min(num_lead, num_of_layers));
          EXPECT_EQ(lead.num_launches(), lead.num_launches_done());
          EXPECT_EQ(peer.num_launches(), peer.num_launches_done());
        };
      });
  EXPECT_GE(num_stops, num_launches - 4);
}

// The heads of a block lie in the order of a processor's, whichever rank has them.
TEST(CudaRanks, BlocksGoToTheProcessorAndBack) {
  Random random;
  Both both = OnRanks("qwen3-bf16");
  Sequence sequence(random, both.model.vocab(), 41, 0);
  RunPlan(both.cuda.executor(), OneShotPlan{{sequence.Row(0, 40, false)}});
  std::vector<std::byte> bytes(both.cuda.kv().port_bytes());
  ASSERT_EQ(bytes.size(), both.kv.port_bytes());
  for (const BlockId block : sequence.blocks) {
    both.cuda.kv().ExportBlock(block, bytes);
    both.kv.ImportBlock(block + 7, bytes);
    both.kv.ExportBlock(block + 7, bytes);
    both.cuda.kv().ImportBlock(block + 20, bytes);
  }
  Sequence on_cpu = sequence, back = sequence;
  on_cpu.blocks = Blocks(7, 41);
  back.blocks = Blocks(20, 41);
  const auto last = [](Sequence& s) { return DecodePlan{{}, {s.Row(40, 41, true)}}; };
  const StepResults expected = RunPlan(both.cuda.executor(), last(sequence));
  ExpectSame(RunPlan(*both.cpu, last(on_cpu)), expected);
  ExpectSame(RunPlan(both.cuda.executor(), last(back)), expected);
}

TEST(CudaRanks, ALostPeerFailsTheRequests) {
  Random random;
  Both both = OnRanks("qwen3-bf16");
  Sequence sequence(random, both.model.vocab(), 9, 0);
  EXPECT_TRUE(RunPlan(both.cuda.executor(), OneShotPlan{{sequence.Whole()}}).draws.at(0).finite);
  both.peers[0]->fake().LoseAfter(3);
  for (int i = 0; i < 2; ++i) {
    const StepResults results = RunPlan(both.cuda.executor(), OneShotPlan{{sequence.Whole()}});
    EXPECT_FALSE(results.draws.at(0).finite);
  }
  EXPECT_EQ(both.cuda.executor().device_status().code(), StatusCode::kUnavailable);
}

TEST(CudaRanks, WhatTheyDoNotShareIsRefusedByName) {
  for (const char* name : {"qwen3.5", "olmo2"}) {
    const Status status = CheckRanks(LoadedModel(ModelDir(name)).config(), 2);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << name;
    EXPECT_EQ(status.param(), "architectures") << name;
  }
  const LoadedModel encoder(SKEIN_SOURCE_DIR "/tests/data/encoders/bert");
  EXPECT_EQ(CheckRanks(encoder.config(), 2).code(), StatusCode::kUnsupported);
  EXPECT_TRUE(CheckRanks(encoder.config(), 1).ok());
  const Status three = CheckRanks(LoadedModel(ModelDir("qwen3")).config(), 3);
  EXPECT_EQ(three.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(three.param(), "tp");
  EXPECT_NE(three.message().find("it can be 1, 2"), std::string::npos) << three.message();
}

}  // namespace
}  // namespace skein::cuda
