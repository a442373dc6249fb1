// Snapshots of states (kv/state_pool.h): the prompts that start from one, and the states they cost.
// The scheduler runs with the fake executor, whose answers depend on every token before them.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>
#include <vector>

#include "sched/scheduler.h"
#include "testing/fake_executor.h"
#include "testing/scheduler_parts.h"

namespace skein {
namespace {

constexpr int32_t kSnapshotVocab = 1000;

EngineConfig SnapshotConfig() {
  EngineConfig config;
  config.scheduler.policies = FindPreset("chunked-fcfs")->policies;
  config.vocab_size = kSnapshotVocab;
  config.scheduler.max_model_len = 4096;
  config.scheduler.num_kv_blocks = 1024;
  config.scheduler.num_states = 40;
  config.scheduler.max_num_seqs = 8;
  config.scheduler.max_num_batched_tokens = 2048;
  return config;
}

std::vector<TokenId> SnapshotTokens(int32_t count, int32_t content) {
  std::vector<TokenId> tokens;
  for (int32_t i = 0; i < count; ++i) tokens.push_back((7 * i + 31 * content) % kSnapshotVocab);
  return tokens;
}

std::vector<TokenId> Joined(std::vector<TokenId> tokens, const std::vector<TokenId>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

class SnapshotDriver {
 public:
  explicit SnapshotDriver(const EngineConfig& engine_config)
      : config(MakeSchedulerConfig(engine_config).value()),
        options({.num_kv_blocks = config.num_kv_blocks,
                 .num_states = config.num_states,
                 .vocab_size = kSnapshotVocab,
                 .discards_kv = true}),
        scheduler(config),
        executor(options) {}

  RequestId Arrive(std::vector<TokenId> prompt, int32_t max_tokens, int32_t shared_len = 0) {
    Request request;
    request.prompt = std::move(prompt);
    request.generate().max_tokens = max_tokens;
    request.group.parent_prefix_len = shared_len;
    const auto id = static_cast<RequestId>(expected.size());
    expected.push_back(FakeExecutor::Expected(options, request, 0, max_tokens));
    scheduler.Arrive(id, std::move(request), now_us);
    return id;
  }

  bool Step() {
    now_us += 1000;
    const StepPlan* plan = scheduler.Plan(now_us);
    scheduler.CheckIntegrity();
    if (plan == nullptr) return false;
    const std::atomic<bool> never{false};
    const auto task = executor.Begin(*plan);
    EXPECT_EQ(executor.Resume(*task, never), TaskStatus::kDone);
    StepResults results = executor.Results(*task);
    scheduler.Complete(&results, now_us);
    scheduler.CheckIntegrity();
    for (const SampleOutput& output : scheduler.TakeOutputs()) {
      if (output.token) tokens[output.request].push_back(output.token->token);
      cached[output.request] = output.cached_tokens;
      if (output.finish) {
        EXPECT_EQ(tokens[output.request], expected[output.request]);
      }
    }
    return true;
  }

  // Runs the request alone. Returns its cached tokens.
  int32_t Ask(std::vector<TokenId> prompt, int32_t max_tokens, int32_t shared_len = 0) {
    const RequestId id = Arrive(std::move(prompt), max_tokens, shared_len);
    RunAll();
    return cached[id];
  }

  void RunAll() {
    while (Step()) {
    }
    EXPECT_EQ(scheduler.Stats().kv_blocks_used, 0);
    EXPECT_EQ(NumAvailable(), config.num_states);
  }

  int32_t NumSnapshots() {
    int32_t count = 0;
    scheduler.VisitBlocks([&](BlockManager* blocks) { count = blocks->states().num_snapshots(); });
    return count;
  }
  int32_t NumAvailable() {
    int32_t count = 0;
    scheduler.VisitBlocks([&](BlockManager* blocks) { count = blocks->states().num_available(); });
    return count;
  }

  const SchedulerConfig config;
  const FakeExecutor::Options options;
  Scheduler scheduler;
  FakeExecutor executor;
  TimeUs now_us = 0;
  std::vector<std::vector<TokenId>> expected;
  std::map<RequestId, std::vector<TokenId>> tokens;
  std::map<RequestId, int32_t> cached;
};

TEST(SchedulerSnapshots, ATurnStartsBehindTheLastAnswer) {
  SnapshotDriver driver(SnapshotConfig());
  std::vector<TokenId> chat;
  for (int32_t turn = 0; turn < 4; ++turn) {
    const auto begun = static_cast<int32_t>(chat.size());
    chat = Joined(chat, SnapshotTokens(50, turn));
    const int32_t cached = driver.Ask(chat, 100);
    EXPECT_EQ(cached, turn == 0 ? 0 : (begun - 1) / kBlockTokens * kBlockTokens);
    chat = Joined(chat, driver.expected.back());
  }
}

// However long an answer is, it leaves one snapshot beside that of its prompt.
TEST(SchedulerSnapshots, TheNewestBlockOfAnAnswerReplacesTheOneBefore) {
  SnapshotDriver driver(SnapshotConfig());
  EXPECT_EQ(driver.Ask(SnapshotTokens(60, 1), 400), 0);
  EXPECT_EQ(driver.NumSnapshots(), 2);
}

TEST(SchedulerSnapshots, AnAnswersSnapshotStaysOnceASequenceHasStartedFromIt) {
  SnapshotDriver driver(SnapshotConfig());
  const std::vector<TokenId> prompt = SnapshotTokens(60, 1);
  const RequestId first = driver.Arrive(prompt, 200);
  while (driver.tokens[first].size() < 70) driver.Step();
  const std::vector<TokenId> branch = Joined(prompt, driver.tokens[first]);
  const RequestId second = driver.Arrive(Joined(branch, SnapshotTokens(20, 2)), 1);
  driver.RunAll();
  EXPECT_EQ(driver.cached[second], 128);
  EXPECT_EQ(driver.Ask(Joined(branch, SnapshotTokens(20, 3)), 1), 128);
}

// A prompt leaves tentative snapshots near its end, so that the second one of a kind can use them.
TEST(SchedulerSnapshots, TheSecondQuestionStartsBehindTheSharedPrefix) {
  for (const int32_t question : {10, 40, 100, 200}) {
    SCOPED_TRACE(question);
    SnapshotDriver driver(SnapshotConfig());
    const std::vector<TokenId> system = SnapshotTokens(1500, 1);
    EXPECT_EQ(driver.Ask(Joined(system, SnapshotTokens(question, 2)), 1), 0);
    // At most four times the question, and a block, are computed again.
    const int32_t second = driver.Ask(Joined(system, SnapshotTokens(question, 3)), 1);
    EXPECT_GE(second, 1500 - 4 * std::max(question, kBlockTokens) - kBlockTokens);
    EXPECT_EQ(driver.Ask(Joined(system, SnapshotTokens(question, 4)), 1), 1500 / 32 * 32);
  }
}

TEST(SchedulerSnapshots, AKnownPrefixHasASnapshot) {
  SnapshotDriver driver(SnapshotConfig());
  const std::vector<TokenId> input = SnapshotTokens(500, 1);
  EXPECT_EQ(driver.Ask(Joined(input, SnapshotTokens(900, 2)), 1, 500), 0);
  EXPECT_EQ(driver.Ask(Joined(input, SnapshotTokens(900, 3)), 1, 500), 480);
}

// Requests that wait for a row which computes their prefix find a snapshot where they part.
TEST(SchedulerSnapshots, TheFirstOfManyLeavesASnapshotForThoseThatWait) {
  for (const char* preset : {"prelude", "auto"}) {
    for (const int32_t step_tokens : {150, 2048}) {
      SCOPED_TRACE(preset);
      SCOPED_TRACE(step_tokens);
      EngineConfig config = SnapshotConfig();
      config.scheduler.policies = FindPreset(preset)->policies;
      config.scheduler.max_num_batched_tokens = step_tokens;
      SnapshotDriver driver(config);
      const std::vector<TokenId> system = SnapshotTokens(400, 1);
      std::vector<RequestId> ids;
      for (int32_t i = 0; i < 6; ++i) {
        ids.push_back(driver.Arrive(Joined(system, SnapshotTokens(300, 2 + i)), 5));
      }
      driver.RunAll();
      int num_cold = 0;
      for (const RequestId id : ids) {
        if (driver.cached[id] != 384) ++num_cold;
      }
      EXPECT_EQ(num_cold, 1);
    }
  }
}

// The end of a chunk is a snapshot, too: for a request that arrives while the prompt is computed,
// and for the prompt itself after it gave its blocks back.
TEST(SchedulerSnapshots, AChunkEndsWithASnapshot) {
  EngineConfig config = SnapshotConfig();
  config.scheduler.max_num_batched_tokens = 100;
  SnapshotDriver driver(config);
  const std::vector<TokenId> prompt = SnapshotTokens(700, 1);
  const RequestId first = driver.Arrive(prompt, 5);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(driver.Step());
  // The next row holds the one at 288. Those before are tentative.
  EXPECT_EQ(driver.NumSnapshots(), 2);
  const RequestId second = driver.Arrive(prompt, 5);
  driver.RunAll();
  EXPECT_EQ(driver.cached[first], 0);
  EXPECT_GE(driver.cached[second], 288);
}

// A sequence that gives its blocks back goes on from the newest snapshot whose block is not
// evicted.
TEST(SchedulerSnapshots, APreemptedSequenceIsComputedFromItsNewestSnapshot) {
  SchedulerConfig config = testing::PartsConfig();
  config.num_states = 8;
  testing::SchedulerParts parts(config);
  Sequence* sequence = parts.Arrive(150, 100);
  const auto preempt = [&] {
    parts.admission.Preempt(sequence);
    parts.BeginRound();
    parts.builder.AddPrompts();
    EXPECT_EQ(parts.step.prefills.size(), 1u);
    parts.BeginStep();
    return parts.step.prefills[0].begin();
  };
  parts.RunPrompts({});
  EXPECT_EQ(sequence->num_computed, 128);
  EXPECT_EQ(preempt(), 128);
  parts.EndStep({5});
  for (TokenId token = 6; token < 70; ++token) {
    parts.BeginRound();
    parts.builder.AddDecodes(true);
    parts.BeginStep();
    parts.EndStep({token});
  }
  EXPECT_EQ(sequence->num_computed, 214);
  EXPECT_EQ(preempt(), 192);
  parts.EndStep({70});
}

// No snapshot is worth a state that a running sequence needs.
TEST(SchedulerSnapshots, FewStatesAreEnough) {
  EngineConfig config = SnapshotConfig();
  config.scheduler.num_states = 2;
  SnapshotDriver driver(config);
  for (int32_t i = 0; i < 5; ++i) driver.Arrive(SnapshotTokens(300, i), 100);
  driver.RunAll();
}

}  // namespace
}  // namespace skein
