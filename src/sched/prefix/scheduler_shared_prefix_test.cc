// Shared prefixes, fairness and the bound on OneShot work: the scheduler with the fake executor.
// Each answer of this executor depends on every token before it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "sched/record/trace_printer.h"
#include "sched/scheduler.h"
#include "testing/fake_executor.h"

namespace skein {
namespace {

using ::testing::ElementsAre;

constexpr int32_t kVocab = 1000;

EngineConfig SomeConfig() {
  EngineConfig config;
  config.scheduler.policies = FindPreset("prelude")->policies;
  config.vocab_size = kVocab;
  config.scheduler.max_model_len = 4096;
  config.scheduler.num_kv_blocks = 1024;
  config.scheduler.max_num_seqs = 8;
  config.scheduler.max_num_batched_tokens = 2048;
  return config;
}

// `shared` tokens that depend on `what`, followed by `own` tokens that depend on `who`.
Request MakeRequest(int32_t shared, int32_t what, int32_t own, int32_t who,
                    int32_t max_tokens = 1) {
  Request request;
  for (int32_t i = 0; i < shared; ++i) request.prompt.push_back((7 * i + what) % kVocab);
  for (int32_t i = 0; i < own; ++i) request.prompt.push_back((11 * i + 3 * who) % kVocab);
  request.generate().max_tokens = max_tokens;
  return request;
}

// The cost of a plan: the tokens computed, and the keys that their attention reads.
struct Work {
  int64_t tokens = 0;
  int64_t keys = 0;

  void Add(int64_t begin, int64_t count) {
    tokens += count;
    keys += count * begin + count * (count + 1) / 2;
  }
};

class Harness {
 public:
  explicit Harness(const SchedulerConfig& config)
      : scheduler(config, {&printer}),
        executor({.num_kv_blocks = config.num_kv_blocks, .vocab_size = kVocab}) {}
  explicit Harness(const EngineConfig& config) : Harness(MakeSchedulerConfig(config).value()) {}

  RequestId Arrive(Request request) {
    expected.push_back(
        FakeExecutor::Expected({.vocab_size = kVocab}, request, 0, request.generate().max_tokens));
    scheduler.Arrive(num_requests, std::move(request), now_us);
    return num_requests++;
  }

  bool Step() {
    now_us += 1000;
    const StepPlan* plan = scheduler.Plan(now_us);
    scheduler.CheckIntegrity();
    if (plan == nullptr) return false;
    Count(*plan);
    const std::atomic<bool> never{false};
    const auto task = executor.Begin(*plan);
    EXPECT_EQ(executor.Resume(*task, never), TaskStatus::kDone);
    if (in_step) in_step();
    auto results = executor.Results(*task);
    scheduler.Complete(&results, now_us);
    scheduler.CheckIntegrity();
    for (const SampleOutput& output : scheduler.TakeOutputs()) {
      for (const PromptLogprob& logprob : output.prompt_logprobs) {
        logprob_positions[output.request].push_back(logprob.position);
      }
      if (output.token) tokens[output.request].push_back(output.token->token);
      if (!output.finish) continue;
      finished_in[output.request] = num_steps;
      if (*output.finish == FinishReason::kCancelled) {
        cancelled.insert(output.request);
      } else {
        EXPECT_EQ(tokens[output.request], expected[output.request]);
      }
    }
    ++num_steps;
    return true;
  }

  void RunAll() {
    while (Step()) {
    }
    EXPECT_EQ(scheduler.Stats().kv_blocks_used, 0);
    EXPECT_EQ(std::ssize(finished_in), static_cast<int64_t>(num_requests));
  }

  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    std::istringstream in(trace.str());
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

  std::ostringstream trace;
  TracePrinter printer{&trace};
  Scheduler scheduler;
  FakeExecutor executor;
  TimeUs now_us = 0;
  int num_steps = 0;
  RequestId num_requests = 0;
  Work work;
  std::function<void()> in_step;
  std::vector<std::vector<TokenId>> expected;
  std::map<RequestId, std::vector<TokenId>> tokens;
  std::map<RequestId, std::vector<int32_t>> logprob_positions;
  std::map<RequestId, int> finished_in;
  std::set<RequestId> cancelled;

 private:
  void Count(const StepPlan& plan) {
    const auto add = [this](const std::vector<PlanRow>& rows) {
      for (const PlanRow& row : rows) work.Add(row.begin, std::ssize(row.tokens));
    };
    if (const auto* oneshot = std::get_if<OneShotPlan>(&plan)) add(oneshot->rows);
    if (const auto* decode = std::get_if<DecodePlan>(&plan)) add(decode->rows);
    if (const auto* mixed = std::get_if<MixedPlan>(&plan)) {
      add(mixed->prefills);
      add(mixed->decodes);
    }
  }
};

void ArriveGroup(Harness* harness, uint64_t id, int32_t size, int32_t shared, int32_t own,
                 const std::string& user = "") {
  for (int32_t i = 0; i < size; ++i) {
    Request request = MakeRequest(shared, static_cast<int32_t>(id), own, 1 + i);
    request.group = {id, shared};
    request.user = user;
    harness->Arrive(std::move(request));
  }
}

TEST(Forests, AParentRowAndItsChildren) {
  Harness harness(SomeConfig());
  ArriveGroup(&harness, 1, 3, 40, 10);
  harness.RunAll();
  EXPECT_THAT(harness.Lines(),
              ElementsAre("iteration 0: prefill T0[0,40) R0[40,50)<T0 R1[40,50)<T0 R2[40,50)<T0"));
  const EngineStats stats = harness.scheduler.Stats();
  EXPECT_EQ(stats.steps_oneshot, 1u);
  EXPECT_EQ(stats.shared_prefixes, 1u);
  EXPECT_EQ(stats.shared_prefix_tokens, 120u);
  EXPECT_EQ(stats.prefix_cache_hits, 0u);
  EXPECT_EQ(stats.decode_slots_taken, 0u);
}

// Another request may compute this prompt's prefix only up to the first wanted log-probability.
TEST(Forests, PromptLogprobsShareWhatLiesBeforeThem) {
  for (const auto& [start, shared] : {std::pair(90, 60), std::pair(41, 40), std::pair(1, 0)}) {
    SCOPED_TRACE(start);
    Harness harness(SomeConfig());
    for (int i = 0; i < 2; ++i) {
      Request request = MakeRequest(60, 5, 50, i);
      request.prompt_logprobs = PromptLogprobsSpec{.start = start};
      harness.Arrive(std::move(request));
    }
    harness.RunAll();
    EXPECT_EQ(harness.scheduler.Stats().shared_prefixes, shared > 0 ? 1u : 0u);
    EXPECT_EQ(harness.scheduler.Stats().shared_prefix_tokens, 2u * shared);
    for (RequestId id = 0; id < 2; ++id) {
      std::vector<int32_t> positions(110 - start);
      std::iota(positions.begin(), positions.end(), start);
      EXPECT_EQ(harness.logprob_positions[id], positions);
    }
  }
}

TEST(Forests, CoWaitingRequestsNeedNoGroup) {
  Harness harness(SomeConfig());
  for (int i = 0; i < 3; ++i) harness.Arrive(MakeRequest(100, 5, 20, i));
  harness.Arrive(MakeRequest(100, 6, 20, 0));  // begins with other tokens
  Request salted = MakeRequest(100, 5, 20, 4);
  salted.cache_salt = 9;
  harness.Arrive(std::move(salted));
  harness.RunAll();
  EXPECT_THAT(harness.Lines(), ElementsAre("iteration 0: prefill T0[0,100) R0[100,120)<T0 "
                                           "R1[100,120)<T0 R2[100,120)<T0 R3[0,120) R4[0,120)"));
}

TEST(Forests, TheCachedPartIsAttachedFirst) {
  Harness harness(SomeConfig());
  harness.Arrive(MakeRequest(100, 1, 1, 0));
  harness.RunAll();
  ArriveGroup(&harness, 1, 2, 120, 10);
  harness.RunAll();
  EXPECT_EQ(harness.Lines()[1], "iteration 1: prefill T0[96,120) R1[120,130)<T0 R2[120,130)<T0");
  EXPECT_EQ(harness.scheduler.Stats().prefix_cache_hits, 192u);
}

// A prefix takes several steps, and its members take several more. This also holds without prefix
// caching.
TEST(Forests, AGroupBeyondTheTokenBudgetContinues) {
  for (const bool caching : {true, false}) {
    EngineConfig config = SomeConfig();
    config.scheduler.max_num_batched_tokens = 64;
    config.scheduler.prefix_caching = caching;
    Harness harness(config);
    ArriveGroup(&harness, 1, 10, 150, 30);
    harness.RunAll();
    EXPECT_EQ(harness.work.tokens, 150 + 10 * 30);
    EXPECT_EQ(harness.Lines()[1], "iteration 1: prefill T0[64,128)");
    EXPECT_EQ(harness.Lines()[2], "iteration 2: prefill T0[128,150) R0[150,180)<T0 R1[150,162)<T0");
    EXPECT_EQ(harness.Lines()[3], "iteration 3: prefill R1[162,180) R2[150,180)<T0 R3[150,166)<T0");
  }
}

// A rerank request with 100 documents of 150 tokens and a query of 2,000 tokens. The work is at
// most 1.15 times the least possible work.
TEST(Forests, RerankComputesTheQueryOnce) {
  Work ideal;
  ideal.Add(0, 2000);
  for (int i = 0; i < 100; ++i) ideal.Add(2000, 150);
  for (const bool forests : {true, false}) {
    for (const bool caching : {true, false}) {
      for (const int32_t token_budget : {512, 2048, 8192, 32768}) {
        EngineConfig config = SomeConfig();
        config.scheduler.max_num_batched_tokens = token_budget;
        config.scheduler.prefix_caching = caching;
        SchedulerConfig scheduler_config = MakeSchedulerConfig(config).value();
        scheduler_config.policies.forests = forests;
        Harness harness(scheduler_config);
        ArriveGroup(&harness, 1, 100, 2000, 150);
        harness.RunAll();
        std::printf("forests %d, prefix cache %d, budget %5d: %6ld tokens (%.3f), keys %.3f\n",
                    forests, caching, token_budget, harness.work.tokens,
                    double(harness.work.tokens) / double(ideal.tokens),
                    double(harness.work.keys) / double(ideal.keys));
        if (!forests) continue;
        EXPECT_LE(harness.work.tokens, 1.15 * double(ideal.tokens));
        EXPECT_LE(harness.work.keys, 1.15 * double(ideal.keys));
      }
    }
  }
}

TEST(Forests, CancellingMembersHurtsNoOther) {
  for (const bool caching : {true, false}) {
    EngineConfig config = SomeConfig();
    config.scheduler.max_num_batched_tokens = 64;
    config.scheduler.prefix_caching = caching;
    Harness harness(config);
    ArriveGroup(&harness, 1, 10, 150, 30);
    harness.in_step = [&] {  // cancels the head while the prefix is computed, then a member in the
                             // step
      if (harness.num_steps == 0) harness.scheduler.Cancel(0, harness.now_us);
      if (harness.num_steps == 2) harness.scheduler.Cancel(1, harness.now_us);
    };
    harness.Step();
    harness.scheduler.Cancel(5, harness.now_us);
    harness.RunAll();
    EXPECT_THAT(harness.cancelled, ElementsAre(0, 1, 5));
    EXPECT_LE(harness.work.tokens, 150 + 8 * 30);
  }
}

TEST(Forests, CancellingAGroupFreesItsPrefix) {
  for (const bool in_step : {true, false}) {
    EngineConfig config = SomeConfig();
    config.scheduler.max_num_batched_tokens = 64;
    Harness harness(config);
    ArriveGroup(&harness, 1, 10, 150, 30);
    const auto cancel = [&] {
      for (RequestId id = 0; id < 10; ++id) harness.scheduler.Cancel(id, harness.now_us);
    };
    if (in_step) harness.in_step = cancel;
    harness.Step();
    if (!in_step) cancel();
    EXPECT_EQ(harness.scheduler.Stats().kv_blocks_used, 0);
    EXPECT_TRUE(harness.scheduler.empty());
  }
}

TEST(Forests, ALateRequestJoinsAPrefixThatIsBeingComputed) {
  EngineConfig config = SomeConfig();
  config.scheduler.max_num_batched_tokens = 64;
  Harness harness(config);
  ArriveGroup(&harness, 1, 2, 150, 10);
  harness.Step();
  harness.Arrive(MakeRequest(150, 1, 10, 9));
  harness.RunAll();
  EXPECT_EQ(harness.work.tokens, 150 + 3 * 10);
}

// A prompt that is shorter than the members were, and longer than what is left of them, goes behind
// them once their prefix is computed.
TEST(Forests, MembersAreRankedByWhatIsLeftOfThem) {
  EngineConfig config = SomeConfig();
  config.scheduler.policies.order = Order::kSrjfCalibrated;
  config.scheduler.max_num_batched_tokens = 64;
  Harness harness(config);
  for (int i = 0; i < 2; ++i) harness.Arrive(MakeRequest(128, 1, 8, 1 + i));
  while (harness.scheduler.Stats().shared_prefixes == 0) ASSERT_TRUE(harness.Step());
  ASSERT_TRUE(harness.Step());  // the rest of the prefix
  const RequestId other = harness.Arrive(MakeRequest(0, 0, 64, 9));
  harness.RunAll();
  EXPECT_LT(harness.finished_in[0], harness.finished_in[other]);
  EXPECT_LT(harness.finished_in[1], harness.finished_in[other]);
}

// A request that wants the log-probabilities of its whole prompt needs every token's hidden state.
// It shares a prefix, and waits for it, once its first sample is cancelled, which has them.
TEST(Forests, APromptWhoseLogprobsNobodyReadsWaitsForItsPrefix) {
  EngineConfig config = SomeConfig();
  config.scheduler.policies.order = Order::kSrjfCalibrated;
  config.scheduler.max_num_batched_tokens = 64;
  Harness harness(config);
  for (int i = 0; i < 2; ++i) harness.Arrive(MakeRequest(128, 1, 8, 1 + i));
  Request reader = MakeRequest(128, 1, 8, 3);
  reader.prompt_logprobs = PromptLogprobsSpec{};
  reader.generate().num_samples = 2;
  const std::vector<TokenId> want = FakeExecutor::Expected({.vocab_size = kVocab}, reader, 1, 1);
  const RequestId id = harness.Arrive(std::move(reader));
  harness.expected[id] = want;
  harness.scheduler.CancelSample(id, 0, harness.now_us);
  while (harness.scheduler.Stats().shared_prefixes == 0) ASSERT_TRUE(harness.Step());
  for (RequestId other = 0; other < id; ++other) harness.scheduler.Cancel(other, harness.now_us);
  harness.RunAll();
  EXPECT_EQ(harness.scheduler.Stats().shared_prefix_tokens, 128u);
  EXPECT_TRUE(harness.logprob_positions[id].empty());
}

// A conversation's long prompt is being computed. Decisions on the same text wait for it.
TEST(PrefixWait, PeersWaitForALeaderAndFindItsBlocks) {
  EngineConfig config = SomeConfig();
  config.scheduler.max_num_batched_tokens = 256;
  Harness harness(config);
  harness.Arrive(MakeRequest(1000, 1, 10, 0, 3));
  harness.Step();
  for (int i = 0; i < 3; ++i) harness.Arrive(MakeRequest(1000, 1, 20, 5 + i));
  harness.Arrive(MakeRequest(0, 0, 50, 8));  // has no prefix to wait for
  harness.RunAll();
  EXPECT_LT(harness.work.tokens, 1000 + 10 + 2 + 3 * (20 + 1000 % 32) + 50 + 1);
  EXPECT_EQ(harness.scheduler.Stats().prefix_waits, 3u);
  EXPECT_LE(harness.finished_in[4], harness.finished_in[1]);
}

TEST(PrefixWait, ASharedHeaderSerialisesNothing) {
  Harness harness(SomeConfig());
  for (int i = 0; i < 8; ++i) harness.Arrive(MakeRequest(16, 1, 200, i, 2));
  harness.Step();
  EXPECT_EQ(harness.scheduler.Stats().prefix_waits, 0u);
  EXPECT_EQ(harness.work.tokens, 8 * 216);
  Harness longer(SomeConfig());
  for (int i = 0; i < 6; ++i) longer.Arrive(MakeRequest(64, 1, 200, i, 2));
  longer.Step();
  EXPECT_EQ(longer.scheduler.Stats().prefix_waits, 0u);
  EXPECT_EQ(longer.work.tokens, 6 * 264);
}

// Each request of a chain continues the request before it, so each one is the leader of the next.
// The last one waits for all of them, within its bound.
TEST(PrefixWait, IsBounded) {
  for (const int32_t max_wait_ms : {0, 3, 1000}) {
    EngineConfig config = SomeConfig();
    config.scheduler.max_num_seqs = 20;
    config.scheduler.max_num_batched_tokens = 8192;
    config.scheduler.max_prefix_wait_us = TimeUs{1000} * max_wait_ms;
    Harness harness(config);
    for (int i = 1; i <= 10; ++i) harness.Arrive(MakeRequest(64 * i, 1, 1, i, 2));
    const RequestId last = harness.Arrive(MakeRequest(64 * 10, 1, 10, 50));
    harness.RunAll();
    EXPECT_EQ(harness.finished_in[last], std::min(max_wait_ms, 10));  // a step takes a millisecond
    EXPECT_EQ(harness.scheduler.Stats().prefix_waits, max_wait_ms == 0 ? 0u : 10u);
  }
}

TEST(PrefixWait, EndsWithTheLeader) {
  EngineConfig config = SomeConfig();
  config.scheduler.max_num_batched_tokens = 128;
  Harness harness(config);
  harness.Arrive(MakeRequest(250, 1, 1, 0, 2));
  harness.Step();
  harness.Arrive(MakeRequest(250, 1, 10, 1));
  harness.in_step = [&] {
    if (harness.num_steps == 1) harness.scheduler.Cancel(0, harness.now_us);
  };
  harness.Step();
  EXPECT_EQ(harness.scheduler.Stats().prefix_waits, 1u);
  harness.RunAll();
  EXPECT_EQ(harness.Lines()[2], "iteration 2: prefill R1[128,256)");  // the request is planned
                                                                      // again
}

// The leader (R1) inherits the priority of the request that waits for it (R2). R0 arrived before
// both, but must therefore give its blocks to them.
TEST(PrefixWait, TheLeaderInheritsItsPeersUrgency) {
  EngineConfig config = SomeConfig();
  config.scheduler.num_kv_blocks = 16;
  config.scheduler.max_model_len = 512;
  config.scheduler.max_num_batched_tokens = 128;
  Harness harness(config);
  harness.Arrive(MakeRequest(0, 0, 60, 9, 150));
  harness.Arrive(MakeRequest(160, 1, 10, 0, 150));
  harness.Step();
  Request peer = MakeRequest(160, 1, 20, 1, 150);
  peer.priority = -1;
  harness.Arrive(std::move(peer));
  harness.Step();
  EXPECT_EQ(harness.scheduler.Stats().prefix_waits, 1u);
  while (harness.scheduler.Stats().num_preemptions == 0) ASSERT_TRUE(harness.Step());
  harness.RunAll();
  EXPECT_GT(harness.finished_in[0], harness.finished_in[1]);
}

// One client sends thousands of documents; another asks one question.
TEST(Fairness, AFanOutDelaysNobodyByMoreThanAFewSteps) {
  for (const bool with_users : {true, false}) {
    Harness harness(SomeConfig());
    ArriveGroup(&harness, 1, 1000, 500, 100, with_users ? "many" : "");
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(harness.Step());
    std::vector<RequestId> singles;
    for (int i = 0; i < 3; ++i) {
      Request single = MakeRequest(0, 0, 300, 2000 + i, i == 2 ? 4 : 1);
      if (with_users) single.user = "one";
      singles.push_back(harness.Arrive(std::move(single)));
    }
    for (int i = 0; i < 6; ++i) ASSERT_TRUE(harness.Step());
    for (const RequestId single : singles) EXPECT_TRUE(harness.finished_in.contains(single));
    harness.RunAll();
    EXPECT_EQ(harness.work.tokens, 500 + 1000 * 100 + 3 * 300 + 3);
  }
}

TEST(Fairness, TwoFanOutsShareTheSteps) {
  for (const char* preset : {"auto", "prelude"}) {
    SCOPED_TRACE(preset);
    EngineConfig config = SomeConfig();
    config.scheduler.policies = FindPreset(preset)->policies;
    Harness harness(config);
    ArriveGroup(&harness, 1, 200, 500, 100, "a");
    ArriveGroup(&harness, 2, 200, 500, 100, "b");
    for (int i = 0; i < 10; ++i) harness.Step();
    int num_a = 0, num_b = 0;
    for (const auto& [id, step] : harness.finished_in) ++(id < 200 ? num_a : num_b);
    EXPECT_LE(std::abs(num_a - num_b), 25);
    EXPECT_GT(num_b, 60);
  }
}

TEST(Fairness, StrictPresetsKeepTheOrderOfArrival) {
  for (const char* preset : {"chunked-fcfs", "paged-fcfs", "nano-vllm"}) {
    EngineConfig config = SomeConfig();
    config.scheduler.policies = FindPreset(preset)->policies;
    Harness harness(config);
    ArriveGroup(&harness, 1, 50, 300, 100, "many");
    harness.Arrive(MakeRequest(0, 0, 300, 7));
    harness.RunAll();
    for (RequestId id = 0; id < 50; ++id) {
      EXPECT_LE(harness.finished_in[id], harness.finished_in[50]);
    }
  }
}

// The members of a group wait for the step that computes their input, in every preset.
TEST(Fairness, AGroupComputesItsInputOnce) {
  for (const char* preset : {"chunked-fcfs", "paged-fcfs", "sglang-lpm", "flow-prefill"}) {
    SCOPED_TRACE(preset);
    EngineConfig config = SomeConfig();
    config.scheduler.policies = FindPreset(preset)->policies;
    Harness harness(config);
    ArriveGroup(&harness, 1, 3, 300, 100, "");
    harness.RunAll();
    // The 12 tokens behind the last full block of the input belong to no shared block.
    EXPECT_EQ(harness.work.tokens, 400 + 2 * (100 + 300 % kBlockTokens));
  }
}

// Chat requests arrive while the pool is small, once with and once without many OneShot requests.
struct Admissions {
  int32_t max_decoding = 0;
  int num_steps = 0;
  uint64_t num_preemptions = 0;
};

Admissions RunChats(int32_t num_kv_blocks, bool flood, int32_t document_len) {
  EngineConfig config = SomeConfig();
  config.scheduler.num_kv_blocks = num_kv_blocks;
  config.scheduler.max_model_len = 32 * num_kv_blocks;
  config.scheduler.max_num_seqs = 6;
  config.scheduler.max_num_batched_tokens = 256;
  Harness harness(config);
  RequestId next_document = 100;
  int num_waiting = 0;
  const auto pour = [&] {
    while (flood && num_waiting < 40) {
      const auto who = static_cast<int32_t>(next_document++);
      Request document = MakeRequest(who % 3 == 0 ? 0 : 90, who / 8, document_len, who);
      document.user = "flood";
      harness.Arrive(std::move(document));
      ++num_waiting;
    }
    num_waiting = harness.scheduler.Stats().num_requests_waiting;
  };
  pour();
  for (int i = 0; i < 5 && flood; ++i) harness.Step();
  const int first_step = harness.num_steps;
  std::vector<RequestId> chats;
  for (int i = 0; i < 6; ++i) {
    Request chat = MakeRequest(0, 0, 120, i, 64);
    chat.user = "chat";
    chats.push_back(harness.Arrive(std::move(chat)));
  }
  Admissions seen;
  const auto done = [&] {
    return std::ranges::all_of(chats,
                               [&](RequestId id) { return harness.finished_in.contains(id); });
  };
  while (!done()) {
    pour();
    EXPECT_TRUE(harness.Step());
    int32_t num_decoding = 0;
    for (const RequestId chat : chats) {
      num_decoding += harness.tokens.contains(chat) && !harness.finished_in.contains(chat);
    }
    seen.max_decoding = std::max(seen.max_decoding, num_decoding);
  }
  seen.num_steps = harness.num_steps - first_step;
  flood = false;
  harness.RunAll();
  return seen;
}

TEST(Flood, DecodeWorkIsAdmittedAsOnAnIdleServer) {
  for (const int32_t num_kv_blocks : {14, 18, 24, 37, 64}) {
    for (const int32_t document_len : {60, 300}) {
      SCOPED_TRACE(std::to_string(num_kv_blocks) + " blocks, " + std::to_string(document_len));
      const Admissions idle = RunChats(num_kv_blocks, false, document_len);
      const Admissions flooded = RunChats(num_kv_blocks, true, document_len);
      EXPECT_EQ(flooded.max_decoding, idle.max_decoding);
      EXPECT_LE(flooded.num_steps, idle.num_steps + idle.num_steps / 4 + 8);
    }
  }
}

}  // namespace
}  // namespace skein
