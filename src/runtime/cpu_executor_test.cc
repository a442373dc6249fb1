#include "runtime/cpu_executor.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "testing/loaded_model.h"

namespace skein {
namespace {

using testing::Blocks;
using testing::LoadedModel;
using testing::Logits;

// A request's tokens and parameters. Its plan rows are made by hand.
struct ExecutedSequence {
  std::vector<TokenId> tokens;
  std::vector<BlockId> blocks;
  GenerateSpec generate;
  std::vector<DrawSpec> draws;

  PlanRow Row(int32_t begin, int32_t end, int32_t num_draws) {
    draws.clear();
    for (int32_t sample = 0; sample < num_draws; ++sample) {
      draws.push_back({&generate, sample, tokens, prompt_len});
    }
    return {0, begin, std::span(tokens).subspan(begin, end - begin), blocks, draws};
  }
  PlanRow Whole() { return Row(0, static_cast<int32_t>(tokens.size()), 1); }

  int32_t prompt_len = 0;
};

class CpuExecutorTest : public ::testing::Test {
 protected:
  static constexpr ForwardLimits kLimits = {.max_tokens = 256, .max_logit_rows = 3};

  explicit CpuExecutorTest(int threads = 1)
      : model_(SKEIN_SOURCE_DIR "/tests/data/models/qwen3-bf16",
               {.threads = threads, .num_blocks = 4}),
        kv_(LayoutOf(model_)) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed_));
    // A newly assigned block has the data of its last owner.
    std::memset(kv_.data(), 0xff, kv_.bytes());
    context_ = model_.context();
    context_.kv_layout = kv_.layout();
    context_.kv = kv_.data();
    executor_ = std::make_unique<CpuExecutor>(context_, kLimits, &kv_);
    executor_->set_logits_observer([this](const PlanRow& row, const float* logits) {
      seen_[row.tokens.data()] = Logits(logits, logits + model_.vocab());
    });
  }

  static KvLayout LayoutOf(const LoadedModel& model) {
    KvLayout layout = model.context().kv_layout;
    layout.num_blocks = 128;
    return layout;
  }

  ExecutedSequence NewSequence(int32_t num_tokens, int32_t first_block) {
    ExecutedSequence sequence;
    while (static_cast<int32_t>(sequence.tokens.size()) < num_tokens) {
      sequence.tokens.push_back(static_cast<TokenId>(random_() % model_.vocab()));
    }
    sequence.prompt_len = num_tokens;
    sequence.blocks = Blocks(first_block, num_tokens + kBlockTokens);
    sequence.generate.sampling.seed = random_();
    sequence.generate.num_logprobs = 3;
    return sequence;
  }

  // Runs a plan to its end without a stop.
  std::vector<DrawResult> Run(const StepPlan& plan) {
    seen_.clear();
    const std::atomic<bool> preempt{false};
    const auto task = executor_->Begin(plan);
    EXPECT_EQ(executor_->Resume(*task, preempt), TaskStatus::kDone);
    return executor_->Results(*task).draws;
  }

  const uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
  LoadedModel model_;
  KvMemory kv_;
  ForwardContext context_;
  std::unique_ptr<CpuExecutor> executor_;
  std::map<const TokenId*, Logits> seen_;  // keyed by the row's first token
};

void ExpectSame(const DrawResult& a, const DrawResult& b) {
  EXPECT_EQ(a.finite, b.finite);
  EXPECT_EQ(a.token.token, b.token.token);
  EXPECT_EQ(a.token.chosen.logprob, b.token.chosen.logprob);
  EXPECT_EQ(a.token.chosen.rank, b.token.chosen.rank);
  ASSERT_EQ(a.token.top_logprobs.size(), b.token.top_logprobs.size());
  for (size_t i = 0; i < a.token.top_logprobs.size(); ++i) {
    EXPECT_EQ(a.token.top_logprobs[i].token, b.token.top_logprobs[i].token);
    EXPECT_EQ(a.token.top_logprobs[i].logprob, b.token.top_logprobs[i].logprob);
  }
}

TEST_F(CpuExecutorTest, ResultsComeInPlanOrderWhateverTheLogitChunks) {
  std::vector<ExecutedSequence> sequences;
  std::vector<DrawResult> alone;
  for (int i = 0; i < 10; ++i) {
    sequences.push_back(NewSequence(1 + static_cast<int32_t>(random_() % 20), 4 * i));
    alone.push_back(Run(OneShotPlan{{sequences[i].Whole()}}).at(0));
  }
  MixedPlan mixed;
  std::vector<int> order;
  for (int i = 0; i < 10; i += 2) {
    mixed.prefills.push_back(sequences[i].Whole());
    order.push_back(i);
  }
  // The other sequences decode their last tokens. The keys before these tokens are still in memory.
  for (int i = 1; i < 10; i += 2) {
    const auto n = static_cast<int32_t>(sequences[i].tokens.size());
    mixed.decodes.push_back(sequences[i].Row(n - 1, n, 1));
    order.push_back(i);
  }
  const std::vector<DrawResult> together = Run(mixed);
  ASSERT_EQ(together.size(), 10u);
  for (int i = 0; i < 10; ++i) ExpectSame(together[i], alone[order[i]]);
  EXPECT_EQ(seen_.size(), 10u);
}

TEST_F(CpuExecutorTest, ARowWithoutDrawsOnlyFillsTheCache) {
  ExecutedSequence whole = NewSequence(70, 0);
  const DrawResult expected = Run(OneShotPlan{{whole.Whole()}}).at(0);
  whole.blocks = Blocks(10, 70);
  EXPECT_TRUE(Run(MixedPlan{{}, {whole.Row(0, 33, 0)}, {}}).empty());
  EXPECT_TRUE(seen_.empty());
  ExpectSame(Run(MixedPlan{{}, {whole.Row(33, 70, 1)}, {}}).at(0), expected);
}

TEST_F(CpuExecutorTest, SamplesOfOneRowDrawApart) {
  ExecutedSequence sequence = NewSequence(9, 0);
  sequence.generate.sampling.temperature = 2.0f;  // nearly flat: 64 draws are not all equal
  const int32_t n = 64;
  const std::vector<DrawResult> results = Run(OneShotPlan{{sequence.Row(0, 9, n)}});
  ASSERT_EQ(results.size(), size_t{n});
  EXPECT_EQ(seen_.size(), 1u);
  std::map<TokenId, int> distinct;
  for (const DrawResult& result : results) ++distinct[result.token.token];
  EXPECT_GT(distinct.size(), 1u);
}

TEST_F(CpuExecutorTest, CopiedBlocksContinueAsTheOriginalsDo) {
  ExecutedSequence parent = NewSequence(41, 0);
  Run(OneShotPlan{{parent.Row(0, 40, 1)}});
  ExecutedSequence child = parent;
  child.blocks = {parent.blocks[0], 50};  // the full block is shared, the partial one is copied
  DecodePlan decode;
  decode.copies = {{parent.blocks[1], 50}};
  decode.rows = {parent.Row(40, 41, 1), child.Row(40, 41, 1)};
  const std::vector<DrawResult> results = Run(decode);
  ASSERT_EQ(results.size(), 2u);
  ExpectSame(results[0], results[1]);
  parent.blocks = Blocks(60, 41);
  ExpectSame(Run(OneShotPlan{{parent.Whole()}}).at(0), results[0]);
}

TEST_F(CpuExecutorTest, AStopAfterAnyKernelCallChangesNothing) {
  std::vector<ExecutedSequence> sequences;
  OneShotPlan plan;
  for (int i = 0; i < 4; ++i) {
    sequences.push_back(NewSequence(2 + i, 4 * i));
    sequences.back().generate.sampling.top_k = 40;
  }
  for (ExecutedSequence& sequence : sequences) plan.rows.push_back(sequence.Whole());
  ExecutedSequence other = NewSequence(5, 100);
  const StepPlan other_plan = OneShotPlan{{other.Whole()}};
  const DrawResult other_expected = Run(other_plan).at(0);
  testing::StoppingKernels& kernels = model_.kernels();
  const int64_t before = kernels.num_calls();
  const StepPlan step = plan;
  const std::vector<DrawResult> expected = Run(step);
  const int64_t num_calls = kernels.num_calls() - before;
  ASSERT_GT(num_calls, 100);
  int64_t num_stopped = 0;
  for (int64_t k = 0; k < num_calls; ++k) {
    kernels.stop() = false;
    kernels.StopAfter(k);
    const auto task = executor_->Begin(step);
    while (executor_->Resume(*task, kernels.stop()) == TaskStatus::kPreempted) {
      ++num_stopped;
      kernels.stop() = false;
      ExpectSame(Run(other_plan).at(0), other_expected);  // another task runs in between
    }
    const std::vector<DrawResult>& results = executor_->Results(*task).draws;
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i) ExpectSame(results[i], expected[i]);
  }
  // Every stop ends the call early, except in the last draw, which has six calls.
  EXPECT_GE(num_stopped, num_calls - 7);
}

// Debug builds stop at random tickets everywhere. These stops change no bit, and no task stops
// without a signal.
TEST_F(CpuExecutorTest, StopsAtRandomTicketsGoUnnoticed) {
  std::vector<ExecutedSequence> sequences;
  OneShotPlan plan;
  for (int i = 0; i < 4; ++i) sequences.push_back(NewSequence(20 + i, 4 * i));
  for (ExecutedSequence& sequence : sequences) plan.rows.push_back(sequence.Whole());
  const std::vector<DrawResult> expected = Run(plan);
  context_.team->StopAtRandom(seed_);
  for (int i = 0; i < 20; ++i) {
    const std::vector<DrawResult> results = Run(plan);
    ASSERT_EQ(results.size(), expected.size());
    for (size_t k = 0; k < results.size(); ++k) ExpectSame(results[k], expected[k]);
  }
  model_.kernels().StopAfter(0);  // a signal still stops the task
  const StepPlan step = plan;
  const auto task = executor_->Begin(step);
  EXPECT_EQ(executor_->Resume(*task, model_.kernels().stop()), TaskStatus::kPreempted);
  model_.kernels().stop() = false;
  EXPECT_EQ(executor_->Resume(*task, model_.kernels().stop()), TaskStatus::kDone);
  const std::vector<DrawResult>& results = executor_->Results(*task).draws;
  for (size_t k = 0; k < results.size(); ++k) ExpectSame(results[k], expected[k]);
}

// Each call is stopped as early as possible, which is after its first ticket.
TEST_F(CpuExecutorTest, TasksStopWhereTheGranularitySays) {
  ExecutedSequence sequence = NewSequence(60, 0);
  const StepPlan plan = OneShotPlan{{sequence.Whole()}};
  const DrawResult expected = Run(plan).at(0);
  const auto num_stops = [&](Granularity granularity) {
    executor_->set_granularity(granularity);
    const auto task = executor_->Begin(plan);
    int stops = 0;
    testing::StoppingKernels& kernels = model_.kernels();
    for (;; ++stops) {
      kernels.stop() = false;
      kernels.StopAfter(0);
      if (executor_->Resume(*task, kernels.stop()) == TaskStatus::kDone) break;
    }
    kernels.stop() = false;
    ExpectSame(executor_->Results(*task).draws.at(0), expected);
    return stops;
  };
  EXPECT_EQ(num_stops(Granularity::kLayer), model_.config().num_layers);
  EXPECT_GT(num_stops(Granularity::kOp), 6 * model_.config().num_layers);
  EXPECT_GT(num_stops(Granularity::kOpTile), num_stops(Granularity::kOp));
  EXPECT_EQ(num_stops(Granularity::kChunk), 0);
  EXPECT_EQ(num_stops(Granularity::kNone), 0);
}

TEST_F(CpuExecutorTest, ATaskGivenUpHalfWayLeavesNoTrace) {
  ExecutedSequence sequence = NewSequence(30, 0);
  const StepPlan plan = OneShotPlan{{sequence.Whole()}};
  const DrawResult expected = Run(plan).at(0);
  for (int i = 0; i < 5; ++i) {
    model_.kernels().StopAfter(static_cast<int64_t>(random_() % 150));
    const auto task = executor_->Begin(plan);
    EXPECT_EQ(executor_->Resume(*task, model_.kernels().stop()), TaskStatus::kPreempted);
    model_.kernels().stop() = false;
  }
  ExpectSame(Run(plan).at(0), expected);
  const size_t bytes = executor_->activation_bytes();
  Run(plan);
  EXPECT_EQ(executor_->activation_bytes(), bytes);
}

TEST_F(CpuExecutorTest, DecodesAloneRunInASmallStateBesideStoppedTasks) {
  ExecutedSequence chat = NewSequence(41, 4);
  const DrawResult token = Run(OneShotPlan{{chat.Whole()}}).at(0);
  ExecutedSequence prompt = NewSequence(60, 0);
  const StepPlan prefill = OneShotPlan{{prompt.Whole()}};
  const DrawResult expected = Run(prefill).at(0);

  CpuExecutor executor(context_, kLimits, &kv_, 2);
  model_.kernels().stop() = false;
  model_.kernels().StopAfter(20);
  const auto stopped = executor.Begin(prefill);
  EXPECT_EQ(executor.Resume(*stopped, model_.kernels().stop()), TaskStatus::kPreempted);
  model_.kernels().stop() = false;
  const size_t bytes = executor.activation_bytes();
  {
    const StepPlan decode = DecodePlan{{}, {chat.Row(40, 41, 1)}};
    const auto task = executor.Begin(decode);
    EXPECT_EQ(executor.Resume(*task, model_.kernels().stop()), TaskStatus::kDone);
    ExpectSame(executor.Results(*task).draws.at(0), token);
  }
  EXPECT_GT(executor.activation_bytes(), bytes);
  EXPECT_LT(executor.activation_bytes(), 2 * bytes);
  EXPECT_EQ(executor.Resume(*stopped, model_.kernels().stop()), TaskStatus::kDone);
  ExpectSame(executor.Results(*stopped).draws.at(0), expected);
}

class CpuExecutorThreadsTest : public CpuExecutorTest {
 protected:
  CpuExecutorThreadsTest() : CpuExecutorTest(3) {}
};

TEST_F(CpuExecutorThreadsTest, ManyDrawsOnManyThreads) {
  std::vector<ExecutedSequence> sequences;
  for (int i = 0; i < 30; ++i) sequences.push_back(NewSequence(4, 2 * i));
  OneShotPlan plan;
  for (ExecutedSequence& sequence : sequences) plan.rows.push_back(sequence.Whole());
  const std::vector<DrawResult> together = Run(plan);
  ASSERT_EQ(together.size(), 30u);
  for (int i = 0; i < 30; ++i) {
    ExpectSame(Run(OneShotPlan{{sequences[i].Whole()}}).at(0), together[i]);
  }
}

// Up to four tasks are suspended at the same time. The thread that resumes a task stops it at
// random tickets. All tasks read one prefix in the pool, and each writes its own blocks.
TEST_F(CpuExecutorThreadsTest, SuspendedTasksGoOnBetweenOthers) {
  constexpr int kPlans = 24;
  ExecutedSequence prefix = NewSequence(64, 0);
  Run(OneShotPlan{{prefix.Row(0, 64, 0)}});
  std::vector<ExecutedSequence> sequences;
  for (int i = 0; i < 2 * kPlans; ++i) {
    sequences.push_back(NewSequence(64 + 1 + static_cast<int32_t>(random_() % 60), 2 + 2 * i));
    ExecutedSequence& sequence = sequences.back();
    std::copy_n(prefix.tokens.begin(), 64, sequence.tokens.begin());
    sequence.blocks = {0, 1, 2 + 2 * i, 3 + 2 * i};
  }
  std::vector<StepPlan> plans;
  std::vector<std::vector<DrawResult>> expected;
  for (int i = 0; i < kPlans; ++i) {
    OneShotPlan plan;
    for (const int k : {2 * i, 2 * i + 1}) {
      const auto end = static_cast<int32_t>(sequences[k].tokens.size());
      plan.rows.push_back(sequences[k].Row(64, end, 1));
      plan.rows.back().block_table = std::span(sequences[k].blocks).first(BlocksFor(end));
    }
    plans.push_back(std::move(plan));
    expected.push_back(Run(plans.back()));
  }
  struct Alive {
    int plan;
    std::unique_ptr<Task> task;
  };
  std::vector<Alive> alive;
  int next = 0, num_stops = 0, num_beside = 0;
  testing::StoppingKernels& kernels = model_.kernels();
  constexpr Granularity kGranularities[] = {Granularity::kOpTile, Granularity::kOpTile,
                                            Granularity::kOp, Granularity::kLayer};
  while (next < kPlans || !alive.empty()) {
    if (alive.empty() || (next < kPlans && alive.size() < 5 && random_() % 3 == 0)) {
      alive.push_back({next, executor_->Begin(plans[next])});
      ++next;
    }
    const size_t i = random_() % alive.size();
    executor_->set_granularity(kGranularities[random_() % 4]);
    kernels.stop() = false;
    kernels.StopAfter(static_cast<int64_t>(random_() % 150));
    if (executor_->Resume(*alive[i].task, kernels.stop()) == TaskStatus::kPreempted) {
      ++num_stops;
      num_beside += alive.size() > 1;
      continue;
    }
    const std::vector<DrawResult>& results = executor_->Results(*alive[i].task).draws;
    ASSERT_EQ(results.size(), 2u);
    for (size_t k = 0; k < 2; ++k) ExpectSame(results[k], expected[alive[i].plan][k]);
    alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(i));
  }
  EXPECT_GT(num_stops, kPlans);
  EXPECT_GT(num_beside, kPlans);
}

}  // namespace
}  // namespace skein
