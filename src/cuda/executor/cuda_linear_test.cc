// Models with linear layers on the emulated device, beside the processor: states that rows carry,
// share and leave behind.

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <tuple>
#include <vector>

#include "testing/cuda_beside_cpu.h"

namespace skein::cuda {
namespace {

using testing::Blocks;
using testing::Both;
using testing::ExpectSame;
using testing::ModelDir;
using testing::Random;
using testing::RunPlan;
using testing::Sequence;

constexpr const char* kLinearModels[] = {"qwen3.5", "qwen3.5-bf16"};

constexpr int32_t kChunks[] = {0, 11};  // tokens of a chunk; 0: the whole batch

class CudaLinear : public ::testing::TestWithParam<std::tuple<const char*, int32_t>> {
 protected:
  // Runs the plan on both, and returns the device's results.
  StepResults ExpectSameOn(const StepPlan& plan) {
    const StepResults on_device = RunPlan(both_.cuda.executor(), plan);
    ExpectSame(on_device, RunPlan(*both_.cpu, plan));
    return on_device;
  }
  Sequence NewSequence(int32_t num_tokens, int32_t first_block) {
    return {random_, both_.model.vocab(), num_tokens, first_block};
  }
  static PlanRow With(PlanRow row, const RowState& state) {
    row.state = state;
    return row;
  }

  Random random_;
  Both both_{ModelDir(std::get<0>(GetParam())),
             "auto",
             {},
             {.num_steps = 2, .num_decodes = 4},
             Pooling::kLast,
             nullptr,
             {},
             std::get<1>(GetParam()) != 0};
};

// A prompt alone, with others, in chunks, behind a snapshot, and with keys in memory of the pass.
TEST_P(CudaLinear, ARequestHasTheSameBitsUnderAnyLoad) {
  Sequence sequence = NewSequence(75, 0), other = NewSequence(40, 20);
  const RowState::Snapshot at_32 = {5, 32}, at_64 = {6, 64};
  const StepResults alone =
      ExpectSameOn(OneShotPlan{{With(sequence.Whole(), {.to = 0, .snapshots = {at_32, at_64}})}});
  ExpectSameOn(MixedPlan{{}, {With(sequence.Row(0, 3, false), {.to = 1})}, {}});
  ExpectSameOn(MixedPlan{{}, {With(sequence.Row(3, 64, false), {.from = 1, .to = 1})}, {}});
  ExpectSame(
      ExpectSameOn(MixedPlan{{}, {With(sequence.Row(64, 75, true), {.from = 1, .to = 1})}, {}}),
      alone);
  for (const auto& [slot, begin] : {std::pair(5, 32), std::pair(6, 64)}) {
    const std::vector<PlanRow> rows = {
        With(other.Whole(), {.to = 2}),
        With(sequence.Row(begin, 75, true), {.from = slot, .to = 3})};
    StepResults together = ExpectSameOn(OneShotPlan{rows});
    together.draws.erase(together.draws.begin());
    ExpectSame(together, alone);
  }
  ExpectSame(ExpectSameOn(OneShotPlan{{With(sequence.Row(64, 75, true), {.from = 6})}}), alone);
}

// Children start from the end of their parent in the same step, the second inside a block; a later
// row overwrites the state that they start from.
TEST_P(CudaLinear, ForestsHaveTheSameBits) {
  Sequence first = NewSequence(50, 0), second = NewSequence(60, 10), third = NewSequence(4, 40);
  std::copy_n(first.tokens.begin(), 41, second.tokens.begin());
  const StepResults alone = ExpectSameOn(
      OneShotPlan{{With(first.Whole(), {}), With(second.Whole(), {}), With(third.Whole(), {})}});
  Sequence parent = first;
  parent.blocks = Blocks(20, 41);
  first.blocks = {20, 30};
  second.blocks = {20, 31};
  std::vector<PlanRow> rows = {With(parent.Row(0, 41, false), {.to = 1}),
                               With(first.Row(41, 50, true), {.from = 1, .to = 2}),
                               With(second.Row(41, 60, true), {.from = 1}),
                               With(third.Whole(), {.to = 1})};
  rows[1].fork = rows[2].fork = {21, 9};
  ExpectSame(ExpectSameOn(OneShotPlan{rows}), alone);
}

// Decodes run as graphs, with padding; the samples of a prompt part from one state.
TEST_P(CudaLinear, DecodesHaveTheSameBits) {
  std::vector<Sequence> sequences;
  for (int32_t i = 0; i < 3; ++i) sequences.push_back(NewSequence(5 + 30 * i, 10 * i));
  std::vector<PlanRow> prompts;
  for (int32_t i = 0; i < 3; ++i) {
    prompts.push_back(With(sequences[i].Row(0, sequences[i].size() - 1, false), {.to = i}));
  }
  ExpectSameOn(MixedPlan{{}, prompts, {}});
  const FakeDevice& fake = both_.device.fake();
  const auto decode = [&](int32_t i, const RowState& state) {
    return With(sequences[i].Row(sequences[i].size() - 1, sequences[i].size(), true), state);
  };
  for (int run = 0; run < 2; ++run) {
    ExpectSameOn(DecodePlan{{}, {decode(0, {.from = 0, .to = 4})}});
    ExpectSameOn(
        DecodePlan{{}, {decode(2, {2, 5}), decode(1, {1, 6}), decode(0, {.from = 0, .to = 7})}});
  }
  EXPECT_EQ(fake.num_graph_runs(), 4);
  EXPECT_EQ(fake.num_graphs(), 2);
  // In place, behind a row that starts from the same state: two waves, and no graph.
  ExpectSameOn(DecodePlan{{}, {decode(0, {0, 3}), decode(1, {3, 3}), decode(2, {2, 2})}});
  EXPECT_EQ(fake.num_graph_runs(), 4);
}

TEST_P(CudaLinear, StopsChangeNothing) {
  Sequence sequence = NewSequence(50, 0), other = NewSequence(20, 20);
  const StepPlan plan = OneShotPlan{{With(sequence.Whole(), {.to = 0})}};
  const StepPlan other_plan = OneShotPlan{{With(other.Whole(), {.to = 1})}};
  const StepResults expected = ExpectSameOn(plan), other_expected = ExpectSameOn(other_plan);
  std::atomic<bool> preempt{false};
  both_.device.set_before_launch([&] { preempt = true; });
  const auto task = both_.cuda.executor().Begin(plan);
  int32_t num_stops = 0;
  for (; both_.cuda.executor().Resume(*task, preempt) == TaskStatus::kPreempted; ++num_stops) {
    if (num_stops % 5 == 0) ExpectSame(RunPlan(both_.cuda.executor(), other_plan), other_expected);
    preempt = false;
  }
  EXPECT_GT(num_stops, 8 * both_.model.config().num_layers);
  ExpectSame(both_.cuda.executor().Results(*task), expected);
}

INSTANTIATE_TEST_SUITE_P(Models, CudaLinear,
                         ::testing::Combine(::testing::ValuesIn(kLinearModels),
                                            ::testing::ValuesIn(kChunks)));

TEST(CudaLinearModels, QuantizedMatricesHaveTheProcessorsBits) {
  Random random;
  for (const char* name : kLinearModels) {
    for (const char* quantization : {"int8", "int4"}) {
      SCOPED_TRACE(std::string(name) + " " + quantization);
      Both both(ModelDir(name), quantization);
      Sequence a(random, both.model.vocab(), 43, 0), b(random, both.model.vocab(), 1, 20);
      const StepPlan plan = OneShotPlan{{a.Whole(), b.Whole()}};
      ExpectSame(RunPlan(both.cuda.executor(), plan), RunPlan(*both.cpu, plan));
    }
  }
}

}  // namespace
}  // namespace skein::cuda
