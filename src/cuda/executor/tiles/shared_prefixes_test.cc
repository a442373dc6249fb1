// Rows that share prefixes, on the emulated device, beside the processor.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
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

// Sequences whose keys and values lie in the same blocks up to some tokens, which `parent` has.
struct Family {
  Family(Both& both, Random& random, const std::vector<int32_t>& shared,
         const std::vector<int32_t>& own)
      : parent(random, both.model.vocab(), std::ranges::max(shared), 0) {
    for (size_t i = 0; i < own.size(); ++i) {
      Sequence& child = children.emplace_back(random, both.model.vocab(), shared[i] + own[i],
                                              static_cast<int32_t>(10 + 8 * i));
      std::copy_n(parent.tokens.begin(), shared[i], child.tokens.begin());
      std::copy_n(parent.blocks.begin(), shared[i] / kKvBlockTokens, child.blocks.begin());
    }
    begins = shared;
  }

  // The tokens of each child behind its prefix, in reverse order of the children.
  std::vector<PlanRow> Suffixes() {
    std::vector<PlanRow> rows;
    for (size_t i = children.size(); i-- > 0;) {
      rows.push_back(children[i].Row(begins[i], children[i].size(), true));
    }
    return rows;
  }
  // The last token of each.
  std::vector<PlanRow> LastTokens() {
    std::vector<PlanRow> rows;
    for (Sequence& child : children) {
      rows.push_back(child.Row(child.size() - 1, child.size(), true));
    }
    return rows;
  }

  Sequence parent;
  std::vector<Sequence> children;
  std::vector<int32_t> begins;
};

// Runs a plan on both; returns the launches over shared prefixes.
int32_t NumWalks(Both& both, const StepPlan& plan) {
  std::vector<Launch> launches;
  both.device.set_recording(&launches);
  const StepResults on_device = RunPlan(both.cuda.executor(), plan);
  both.device.set_recording(nullptr);
  ExpectSame(on_device, RunPlan(*both.cpu, plan));
  return static_cast<int32_t>(std::ranges::count_if(launches, [](const Launch& launch) {
    if (launch.kernel < KernelId::kAttentionF32 || launch.kernel > KernelId::kBiasedAttentionBf16) {
      return false;
    }
    AttentionArgs args;
    std::memcpy(&args, launch.args.data(), sizeof(args));
    return args.tokens != nullptr;
  }));
}

int32_t NumGlobalLayers(const ModelConfig& config) {
  int32_t count = 0;
  for (int32_t layer = 0; layer < config.num_layers; ++layer) count += !config.IsLocal(layer);
  return count;
}

// Suffixes of a prefix, whose last layer gathers their last tokens, and decodes behind them.
TEST(SharedPrefixes, HaveTheProcessorsBits) {
  Random random;
  for (const char* name : {"qwen3", "qwen3-bf16", "gemma2-bf16", "gemma3-bf16"}) {
    SCOPED_TRACE(name);
    Both both(ModelDir(name), "auto", {}, {.num_steps = 2, .num_decodes = 4});
    both.cuda.executor().set_always_shares(true);
    // Their tiles are not full, whatever the number of heads that share keys.
    Family family(both, random, {128, 64, 128}, {9, 21, 33});
    EXPECT_EQ(NumWalks(both, OneShotPlan{{family.parent.Whole()}}), 0);
    const int32_t num_walks = NumGlobalLayers(both.model.config());
    ASSERT_GT(num_walks, 0);
    EXPECT_EQ(NumWalks(both, OneShotPlan{family.Suffixes()}), num_walks);
    EXPECT_EQ(NumWalks(both, DecodePlan{{}, family.LastTokens()}), num_walks);
  }
}

// The second chunk has the last token of one suffix, and the two others.
TEST(SharedPrefixes, AreSharedWithinAChunk) {
  Random random;
  Both both(ModelDir("qwen3-bf16"), "auto", {}, {}, Pooling::kLast, nullptr, {}, false,
            /*chunk_tokens=*/32);
  both.cuda.executor().set_always_shares(true);
  Family family(both, random, {128, 64, 128}, {9, 21, 33});
  EXPECT_EQ(NumWalks(both, OneShotPlan{{family.parent.Whole()}}), 0);
  EXPECT_EQ(NumWalks(both, OneShotPlan{family.Suffixes()}), both.model.config().num_layers);
}

// The parent computes the prefix in the same step.
TEST(SharedPrefixes, MayBeComputedInTheSameStep) {
  Random random;
  Both both(ModelDir("qwen3-bf16"));
  both.cuda.executor().set_always_shares(true);
  Family family(both, random, {64, 64}, {9, 20});
  std::vector<PlanRow> rows = family.Suffixes();
  rows.insert(rows.begin(), family.parent.Row(0, 64, false));
  EXPECT_EQ(NumWalks(both, OneShotPlan{rows}), both.model.config().num_layers);
}

// Two groups, and a row that shares nothing; sinks at the end of the walks.
TEST(SharedPrefixes, SeveralGroupsGoTogether) {
  Random random;
  Both both(ModelDir("qwen3-bf16"), "auto", {}, {}, Pooling::kLast, nullptr, {},
            /*adds_sinks=*/true);
  both.cuda.executor().set_always_shares(true);
  Family a(both, random, {64, 64}, {9, 12});
  NumWalks(both, OneShotPlan{{a.parent.Whole()}});
  Family b(both, random, {96, 64, 64}, {3, 8, 5});
  for (Sequence* sequence : {&b.parent, &b.children[0], &b.children[1], &b.children[2]}) {
    for (BlockId& block : sequence->blocks) block += 40;
  }
  NumWalks(both, OneShotPlan{{b.parent.Whole()}});
  Sequence alone(random, both.model.vocab(), 70, 35);
  std::vector<PlanRow> rows = a.Suffixes();
  rows.push_back(alone.Whole());
  for (const PlanRow& row : b.Suffixes()) rows.push_back(row);
  EXPECT_EQ(NumWalks(both, OneShotPlan{rows}), both.model.config().num_layers);
}

// A graph for each size, with shared prefixes and without.
TEST(SharedPrefixes, HaveGraphsOfTheirOwn) {
  Random random;
  Both both(ModelDir("qwen3-bf16"), "auto", {}, {.num_steps = 2, .num_decodes = 4});
  both.cuda.executor().set_always_shares(true);
  Family family(both, random, {128, 128, 128}, {9, 20, 30});
  NumWalks(both, OneShotPlan{{family.parent.Whole()}});
  NumWalks(both, OneShotPlan{family.Suffixes()});
  const FakeDevice& fake = both.device.fake();
  const std::vector<PlanRow> all = family.LastTokens();
  int32_t num_runs = 0;
  for (const std::vector<PlanRow>& rows : std::vector<std::vector<PlanRow>>{
           {all[0], all[1]}, {all[2], all[0]}, {all[1]}, {all[1], all[2]}, all}) {
    NumWalks(both, DecodePlan{{}, rows});
    EXPECT_EQ(fake.num_graph_runs(), ++num_runs);
  }
  EXPECT_EQ(fake.num_graphs(), 3);  // of two tokens, one and three
  both.cuda.executor().set_always_shares(false);
  EXPECT_EQ(NumWalks(both, DecodePlan{{}, {all[0], all[1]}}), 0);
  EXPECT_EQ(fake.num_graphs(), 4);
}

// A slice of each tile: first those of prefixes, which the others go on from.
TEST(SharedPrefixes, SlicesChangeNothing) {
  Random random;
  Both both(ModelDir("gemma3-bf16"));
  both.cuda.executor().set_always_shares(true);
  Family family(both, random, {64, 64, 64}, {40, 33, 50});
  NumWalks(both, OneShotPlan{{family.parent.Whole()}});
  both.cuda.executor().set_slice_us(0);
  EXPECT_GT(NumWalks(both, OneShotPlan{family.Suffixes()}), NumGlobalLayers(both.model.config()));
}

TEST(SharedPrefixes, RanksShareThem) {
  Random random;
  Both both(ModelDir("qwen3-bf16"), "auto", {}, {}, Pooling::kLast, nullptr, {{}});
  both.cuda.executor().set_always_shares(true);
  Family family(both, random, {64, 64}, {9, 12});
  NumWalks(both, OneShotPlan{{family.parent.Whole()}});
  EXPECT_EQ(NumWalks(both, OneShotPlan{family.Suffixes()}), both.model.config().num_layers);
}

// The device of these tests has next to nothing to do, so that sharing would cost time.
TEST(SharedPrefixes, AreLeftAloneWhereTheyCostTime) {
  Random random;
  Both both(ModelDir("qwen3-bf16"));
  Family family(both, random, {64, 64}, {9, 12});
  NumWalks(both, OneShotPlan{{family.parent.Whole()}});
  EXPECT_EQ(NumWalks(both, OneShotPlan{family.Suffixes()}), 0);
}

}  // namespace
}  // namespace skein::cuda
