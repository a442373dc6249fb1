// Counts the heap allocations of steps on the real executor.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "runtime/cpu_executor.h"
#include "testing/counted_allocations.h"
#include "testing/loaded_model.h"

namespace skein {
namespace {

// An executor of a small model with `num_blocks` blocks.
struct SmallExecutor {
  explicit SmallExecutor(int32_t num_blocks)
      : kv(LayoutOf(model, num_blocks)),
        executor(ContextOf(model, &kv), {.max_tokens = 256, .max_logit_rows = 3}, &kv) {}

  static KvLayout LayoutOf(const testing::LoadedModel& model, int32_t num_blocks) {
    KvLayout layout = model.context().kv_layout;
    layout.num_blocks = num_blocks;
    return layout;
  }
  static ForwardContext ContextOf(const testing::LoadedModel& model, KvMemory* kv) {
    ForwardContext context = model.context();
    context.kv_layout = kv->layout();
    context.kv = kv->data();
    return context;
  }

  testing::LoadedModel model{SKEIN_SOURCE_DIR "/tests/data/models/qwen3-bf16",
                             {.threads = 2, .num_blocks = 4}};
  KvMemory kv;
  CpuExecutor executor;
};

TEST(ExecutorAllocation, ASteadyDecodeStepAllocatesItsTaskAlone) {
  constexpr int32_t kSequences = 8, kPromptTokens = 20, kSteps = 60, kWarmUp = 5;
  SmallExecutor small(kSequences * 4);
  CpuExecutor& executor = small.executor;
  GenerateSpec generate;
  generate.sampling.top_k = 20;
  generate.sampling.frequency_penalty = 0.5f;
  generate.num_logprobs = 3;
  struct Sequence {
    std::vector<TokenId> tokens;
    std::vector<BlockId> blocks;
    std::vector<DrawSpec> draws;
  };
  std::vector<Sequence> sequences(kSequences);
  for (int32_t i = 0; i < kSequences; ++i) {
    sequences[i].tokens.reserve(kPromptTokens + kSteps);
    sequences[i].tokens.assign(kPromptTokens, i);
    sequences[i].blocks = testing::Blocks(4 * i, kPromptTokens + kSteps);
    sequences[i].draws.resize(1);
  }
  StepPlan step = DecodePlan{};
  std::vector<PlanRow>& rows = std::get<DecodePlan>(step).rows;
  rows.reserve(kSequences);
  const std::atomic<bool> never{false};
  int64_t before = 0;
  for (int32_t n = 0; n < kSteps; ++n) {
    if (n == kWarmUp) before = num_allocations;
    rows.clear();
    for (Sequence& s : sequences) {
      const auto end = static_cast<int32_t>(s.tokens.size());
      const int32_t begin = n == 0 ? 0 : end - 1;  // the first step computes the prompts
      s.draws[0] = {&generate, 0, s.tokens, kPromptTokens};
      rows.push_back({0, begin, std::span(s.tokens).subspan(begin), s.blocks, s.draws});
    }
    const std::unique_ptr<Task> task = executor.Begin(step);
    ASSERT_EQ(executor.Resume(*task, never), TaskStatus::kDone);
    for (int32_t i = 0; i < kSequences; ++i) {
      sequences[i].tokens.push_back(executor.Results(*task).draws[i].token.token);
    }
  }
  EXPECT_EQ(num_allocations - before, kSteps - kWarmUp);
}

// In steps that read only some of the tokens, the last layer goes on with those tokens alone. This
// must not allocate anything either.
TEST(ExecutorAllocation, AStepOfWhichSomeTokensAreReadAllocatesItsTaskAlone) {
  constexpr int32_t kSequences = 4, kTokens = 60, kPast = 20, kSteps = 20, kWarmUp = 5;
  SmallExecutor small(kSequences * 2);
  CpuExecutor& executor = small.executor;
  GenerateSpec generate;
  generate.sampling.top_k = 20;
  const OutputSpec labels = LabelSpec{.tokens = {5, 90}};
  const std::vector<TokenId> tokens(kTokens, 7);
  const std::span<const TokenId> all = tokens, past = all.first(kPast), with_next = all.first(21);
  const std::vector<DrawSpec> draws = {{&generate, 0, all, kTokens}};
  const std::vector<DrawSpec> next_draws = {{&generate, 0, with_next, kPast}};
  std::vector<std::vector<BlockId>> blocks;
  for (int32_t i = 0; i < kSequences; ++i) blocks.push_back(testing::Blocks(2 * i, kTokens));
  const std::atomic<bool> never{false};
  const auto run = [&](const StepPlan& plan, size_t num_draws, size_t num_reads) {
    const std::unique_ptr<Task> task = executor.Begin(plan);
    ASSERT_EQ(executor.Resume(*task, never), TaskStatus::kDone);
    EXPECT_EQ(executor.Results(*task).draws.size(), num_draws);
    EXPECT_EQ(executor.Results(*task).reads.size(), num_reads);
  };
  const auto steady_allocations = [&](const StepPlan& plan, size_t num_draws, size_t num_reads) {
    int64_t before = 0;
    for (int32_t n = 0; n < kSteps; ++n) {
      if (n == kWarmUp) before = num_allocations;
      run(plan, num_draws, num_reads);
    }
    return num_allocations - before;
  };
  // Computes the earlier tokens of the mixed step's decodes; reads nothing.
  run(MixedPlan{.prefills = {{2, 0, past, blocks[2]}, {3, 0, past, blocks[3]}}}, 0, 0);
  // A part of one prompt, the whole of another prompt, and two decodes.
  const MixedPlan mixed = {.prefills = {{0, 0, all, blocks[0]}, {1, 0, all, blocks[1], draws}},
                           .decodes = {{2, kPast, with_next.last(1), blocks[2], next_draws},
                                       {3, kPast, with_next.last(1), blocks[3], next_draws}}};
  EXPECT_EQ(steady_allocations(mixed, 3, 0), kSteps - kWarmUp);
  const OneShotPlan prompt = {.rows = {{0, 0, all, blocks[0], {}, &labels}}};
  EXPECT_EQ(steady_allocations(prompt, 0, 1), kSteps - kWarmUp);
}

// At each allocation of a first step, on every thread of the team.
TEST(ExecutorAllocation, AFailureLeavesTheExecutorWhole) {
  constexpr int32_t kTokens = 60, kPast = 20;
  SmallExecutor small(8);
  const ForwardContext context = SmallExecutor::ContextOf(small.model, &small.kv);
  GenerateSpec generate;
  generate.num_logprobs = 3;
  const OutputSpec labels = LabelSpec{.tokens = {5, 90}, .want_log_sum_exp = true};
  const std::vector<TokenId> tokens(kTokens, 7);
  const std::span<const TokenId> all = tokens, past = all.first(kPast);
  const std::vector<DrawSpec> draws = {{&generate, 0, all, kTokens}, {&generate, 1, all, kTokens}};
  const std::vector<BlockId> blocks[] = {testing::Blocks(0, kTokens), testing::Blocks(2, kTokens),
                                         testing::Blocks(4, kTokens)};
  const StepPlan plan =
      MixedPlan{.prefills = {{0,
                              0,
                              all,
                              blocks[0],
                              draws,
                              nullptr,
                              {.begin = 1, .tokens = all.subspan(1), .num_top = 2}},
                             {1, 0, past, blocks[1]},
                             {2, 0, all, blocks[2], {}, &labels}}};
  const std::atomic<bool> never{false};
  const auto run = [&](CpuExecutor& executor) {
    const std::unique_ptr<Task> task = executor.Begin(plan);
    executor.Resume(*task, never);
    return StepResults(executor.Results(*task));
  };
  const auto token_of = [](const StepResults& results) { return results.draws[1].token.token; };
  const ForwardLimits limits = {.max_tokens = 256, .max_logit_rows = 3};
  CpuExecutor undisturbed(context, limits, &small.kv);
  const StepResults expected = run(undisturbed);
  int64_t num_before = 0;
  for (int64_t num_failed = 1; num_failed > 0; ++num_before) {
    SCOPED_TRACE(num_before);
    CpuExecutor executor(context, limits, &small.kv);
    bool thrown = false;
    testing::FailingAllocations::Begin(num_before, 1);
    try {
      run(executor);
    } catch (const std::bad_alloc&) {
      thrown = true;
    }
    num_failed = testing::FailingAllocations::End();
    EXPECT_TRUE(num_failed > 0 || !thrown);
    const StepResults results = run(executor);
    ASSERT_EQ(token_of(results), token_of(expected));
    ASSERT_EQ(results.reads[0].values.values, expected.reads[0].values.values);
    ASSERT_EQ(results.reads[0].values.log_sum_exp, expected.reads[0].values.log_sum_exp);
    ASSERT_EQ(results.prompt_logprobs[0].logprobs.size(), size_t{kTokens - 1});
  }
  EXPECT_GT(num_before, 50);
}

}  // namespace
}  // namespace skein
