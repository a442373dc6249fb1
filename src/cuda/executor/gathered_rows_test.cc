// The last layer computes the rows of tokens with outputs alone, behind their keys and values.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "cuda/executor/cuda_executor.h"
#include "cuda/kernels/args.h"
#include "testing/cuda_beside_cpu.h"

namespace skein::cuda {
namespace {

using testing::ArgsOf;
using testing::Both;
using testing::ExpectSame;
using testing::ModelDir;
using testing::Random;
using testing::RunPlan;

// Outputs of three kinds in the middle and at the end of rows, in chunks of kDeviceLimits. Some
// tokens have two outputs, and the first row has none.
class ScatteredOutputs {
 public:
  ScatteredOutputs(Random& random, int32_t vocab)
      : sequences_{{random, vocab, 30, 0},  {random, vocab, 46, 5},  {random, vocab, 1, 10},
                   {random, vocab, 20, 15}, {random, vocab, 17, 20}, {random, vocab, 5, 25}} {}

  StepPlan Plan() {
    const auto logprobs = [this](int32_t index, int32_t begin, int32_t count) {
      return PromptLogprobsRange{begin, std::span(sequences_[index].tokens).subspan(begin, count),
                                 2};
    };
    std::vector<PlanRow> rows;
    for (testing::Sequence& sequence : sequences_) {
      const bool draws = !rows.empty() && rows.size() != 4;
      rows.push_back(sequence.Row(0, sequence.size(), draws));
    }
    rows[1].prompt_logprobs = logprobs(1, 7, 5);
    rows[4].prompt_logprobs = logprobs(4, 9, 1);
    rows[3].read = &labels_;
    rows[5].read = &embedding_;
    return OneShotPlan{rows};
  }

 private:
  const OutputSpec labels_ = LabelSpec{.tokens = {3, 90, 17, 91}};
  const OutputSpec embedding_ = EmbedSpec{};
  std::vector<testing::Sequence> sequences_;
};

struct ModelCase {
  const char* name;
  const char* quantization = "auto";
};

// Norms over all heads, branches, experts, windows in the last layer, and weights of all types.
TEST(GatheredRows, HaveTheProcessorsBits) {
  Random random;
  for (const ModelCase& model :
       {ModelCase{"llama-linear"}, ModelCase{"qwen3"}, ModelCase{"qwen3-bf16"},
        ModelCase{"qwen3-bf16", "int8"}, ModelCase{"qwen3", "int8"},
        ModelCase{"qwen3-bf16", "int4"}, ModelCase{"gemma3-bf16"}, ModelCase{"mistral-window-bf16"},
        ModelCase{"qwen2-window"}, ModelCase{"olmo2"}, ModelCase{"olmo3"},
        ModelCase{"granite-bf16"}, ModelCase{"qwen3-moe"}, ModelCase{"qwen3-moe-bf16"}}) {
    SCOPED_TRACE(std::string(model.name) + " " + model.quantization);
    Both both(ModelDir(model.name), model.quantization);
    ScatteredOutputs outputs(random, both.model.vocab());
    const StepPlan plan = outputs.Plan();
    const StepResults on_device = RunPlan(both.cuda.executor(), plan);
    ExpectSame(on_device, RunPlan(*both.cpu, plan));
    EXPECT_EQ(on_device.draws.size(), 4u);
    EXPECT_EQ(on_device.reads.size(), 2u);
    EXPECT_EQ(on_device.prompt_logprobs.size(), 2u);
  }
}

// Stops a plan behind each operator and each slice. Another task runs at each stop.
void ExpectStopsChangeNothing(Both& both, const StepPlan& plan, const StepPlan& other) {
  CudaExecutor& executor = both.cuda.executor();
  const StepResults expected = RunPlan(executor, plan), other_expected = RunPlan(executor, other);
  ExpectSame(expected, RunPlan(*both.cpu, plan));
  std::atomic<bool> preempt{false};
  both.device.set_before_launch([&] { preempt = true; });
  const auto task = executor.Begin(plan);
  int64_t num_stops = 0;
  for (; executor.Resume(*task, preempt) == TaskStatus::kPreempted; ++num_stops) {
    ExpectSame(RunPlan(executor, other), other_expected);
    preempt = false;
  }
  both.device.set_before_launch({});
  EXPECT_GE(num_stops, 9 * both.model.config().num_layers);
  ExpectSame(executor.Results(*task), expected);
}

TEST(GatheredRows, StopsBehindEachOperatorChangeNothing) {
  Random random;
  for (const ModelCase& model : {ModelCase{"qwen3-bf16"}, ModelCase{"qwen3", "int8"},
                                 ModelCase{"qwen3-moe-bf16"}, ModelCase{"olmo2"}}) {
    SCOPED_TRACE(std::string(model.name) + " " + model.quantization);
    Both both(ModelDir(model.name), model.quantization, {}, {.num_steps = 2});
    ScatteredOutputs outputs(random, both.model.vocab());
    testing::Sequence other(random, both.model.vocab(), 7, 40);
    ExpectStopsChangeNothing(both, outputs.Plan(), OneShotPlan{{other.Whole()}});
  }
}

// More gathered rows than a slice has.
TEST(GatheredRows, HaveSlicesOfTheirOwn) {
  Random random;
  for (const ModelCase& model : {ModelCase{"qwen3-bf16"}, ModelCase{"gemma3-bf16"}}) {
    SCOPED_TRACE(model.name);
    Both both(ModelDir(model.name), model.quantization, {}, {.num_steps = 2});
    testing::Sequence unread(random, both.model.vocab(), 20, 0);
    testing::Sequence sequence(random, both.model.vocab(), kSliceRows + 12, 5);
    testing::Sequence other(random, both.model.vocab(), 7, 40);
    std::vector<PlanRow> rows = {unread.Row(0, unread.size(), false), sequence.Whole()};
    rows[1].prompt_logprobs = {4, std::span(sequence.tokens).subspan(4), 1};
    both.cuda.executor().set_slice_us(0);
    ExpectStopsChangeNothing(both, OneShotPlan{rows}, OneShotPlan{{other.Whole()}});
  }
}

// The work that a pass gives the device.
struct GivenWork {
  explicit GivenWork(const std::vector<Launch>& launches) {
    using enum KernelId;
    for (const Launch& launch : launches) {
      const KernelId id = launch.kernel;
      if (testing::IsProduct(launch)) product_rows.push_back(ArgsOf<GemmArgs>(launch).m);
      if (id == kRmsNormBf16) norm_rows.push_back(ArgsOf<RmsNormArgs>(launch).num_rows);
      if (id >= kAttentionF32 && id <= kWideAttentionHead128) {
        tiles.push_back(ArgsOf<AttentionArgs>(launch).num_tiles);
      }
      if (id == kGather) gathered.push_back(ArgsOf<GatherArgs>(launch).num_rows);
    }
  }

  using Counts = std::vector<int32_t>;
  Counts product_rows, norm_rows, tiles, gathered;
};

class GatheredWork : public ::testing::Test {
 protected:
  GivenWork WorkOf(const StepPlan& plan) {
    std::vector<Launch> launches;
    both_.device.set_recording(&launches);
    RunPlan(both_.cuda.executor(), plan);
    both_.device.set_recording(nullptr);
    return GivenWork(launches);
  }
  testing::Sequence NewSequence(int32_t num_tokens, int32_t first_block) {
    return {random_, both_.model.vocab(), num_tokens, first_block};
  }

  using Counts = GivenWork::Counts;
  Random random_;
  Both both_{ModelDir("qwen3-bf16")};  // two layers, of two query heads for each KV head
};

// Products: q, k and v; attention's; gate and up; down. Norms: before attention, before the MLP.
TEST_F(GatheredWork, IsThatOfTokensWithOutputs) {
  testing::Sequence a = NewSequence(20, 0), b = NewSequence(30, 5);
  const GivenWork work = WorkOf(OneShotPlan{{a.Row(0, 20, false), b.Whole()}});
  EXPECT_EQ(work.product_rows, (Counts{50, 50, 50, 50, 50, 1, 1, 1, 1}));
  EXPECT_EQ(work.norm_rows, (Counts{50, 50, 50, 1, 1}));
  EXPECT_EQ(work.tiles, (Counts{3 + 4, 1}));
  EXPECT_EQ(work.gathered, (Counts{1}));
}

// A tile has 8 tokens: tokens 2 and 9 share one, tokens 10 and 20 do not.
TEST_F(GatheredWork, NearTokensShareATile) {
  testing::Sequence a = NewSequence(21, 0), b = NewSequence(10, 5);
  const auto tiles = [&](int32_t begin, int32_t count, bool draws) {
    PlanRow row = a.Row(0, a.size(), draws);
    row.prompt_logprobs = {begin, std::span(a.tokens).subspan(begin, count), 1};
    return WorkOf(OneShotPlan{{row, b.Row(0, 10, false)}}).tiles.back();
  };
  EXPECT_EQ(tiles(3, 8, false), 1);  // 2 to 9
  EXPECT_EQ(tiles(3, 9, false), 2);  // 2 to 10
  EXPECT_EQ(tiles(14, 1, true), 1);  // 13 and 20
  EXPECT_EQ(tiles(13, 1, true), 2);  // 12 and 20
  EXPECT_EQ(tiles(12, 9, true), 2);  // 11 to 20
  EXPECT_EQ(tiles(4, 8, true), 2);   // 3 to 10, and 20
}

TEST_F(GatheredWork, RowsStayWhereAllOrNoTokensHaveOutputs) {
  testing::Sequence a = NewSequence(6, 0);
  PlanRow all = a.Whole();
  all.prompt_logprobs = {1, std::span(a.tokens).subspan(1), 1};
  GivenWork work = WorkOf(OneShotPlan{{all}});
  EXPECT_TRUE(work.gathered.empty());
  EXPECT_EQ(work.norm_rows, (Counts{6, 6, 6, 6, 3, 3}));  // outputs in chunks of three
  work = WorkOf(OneShotPlan{{a.Row(0, 6, false)}});
  EXPECT_TRUE(work.gathered.empty());
  EXPECT_EQ(work.product_rows, (Counts{6, 6, 6, 6, 6}));
  EXPECT_EQ(work.tiles.size(), 1u);
}

}  // namespace
}  // namespace skein::cuda
