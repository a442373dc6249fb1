#include "sched/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "sched/record/trace_printer.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

EngineConfig SmallConfig() {
  EngineConfig config;
  config.scheduler.policies = FindPreset("prelude")->policies;
  config.vocab_size = 1000;
  config.scheduler.max_model_len = 1024;
  config.scheduler.num_kv_blocks = 256;
  config.scheduler.max_num_seqs = 4;
  config.scheduler.max_num_batched_tokens = 64;
  return config;
}

Request MakeRequest(int32_t prompt_len, int32_t max_tokens, TokenId first_token = 1) {
  Request request;
  request.prompt.assign(prompt_len, 1);
  request.prompt[0] = first_token;
  request.generate().max_tokens = max_tokens;
  return request;
}

// Drives a scheduler with a model that always draws token 7.
class Driver {
 public:
  explicit Driver(const EngineConfig& config)
      : scheduler(MakeSchedulerConfig(config).value(), {&printer}) {}

  // Plans and completes a step, and collects its outputs. Returns false if there was nothing to do.
  bool Step() {
    const StepPlan* plan = scheduler.Plan(++now_us);
    scheduler.CheckIntegrity();
    if (plan == nullptr) return false;
    Finish(*plan);
    return true;
  }

  void Finish(const StepPlan& plan) {
    StepResults results;
    const auto answer = [&](const std::vector<PlanRow>& rows) {
      for (const PlanRow& row : rows) {
        for (size_t i = 0; i < row.draws.size(); ++i) {
          results.draws.push_back({.token = {.token = 7}});
        }
        if (row.read != nullptr) results.reads.push_back({.values = {.values = {0.5f}}});
        if (row.prompt_logprobs.tokens.empty()) continue;
        auto& logprobs = results.prompt_logprobs.emplace_back().logprobs;
        int32_t position = row.prompt_logprobs.begin;
        for (const TokenId token : row.prompt_logprobs.tokens) {
          logprobs.push_back({.position = position++, .chosen = {.token = token}});
        }
      }
    };
    if (const auto* oneshot = std::get_if<OneShotPlan>(&plan)) answer(oneshot->rows);
    if (const auto* decode = std::get_if<DecodePlan>(&plan)) answer(decode->rows);
    if (const auto* mixed = std::get_if<MixedPlan>(&plan)) {
      answer(mixed->prefills);
      answer(mixed->decodes);
    }
    scheduler.Complete(&results, ++now_us);
    scheduler.CheckIntegrity();
    Collect();
  }

  void Collect() {
    for (const SampleOutput& output : scheduler.TakeOutputs()) {
      num_tokens[output.request] += output.token.has_value();
      num_reads[output.request] += output.read.has_value();
      for (const PromptLogprob& logprob : output.prompt_logprobs) {
        logprob_positions[output.request].push_back(logprob.position);
      }
      if (output.finish) finish[output.request] = *output.finish;
      last = output;
    }
  }

  int RunAll() {
    int num_steps = 0;
    while (Step()) ++num_steps;
    return num_steps;
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
  TimeUs now_us = 0;
  std::map<RequestId, int> num_tokens;
  std::map<RequestId, int> num_reads;
  std::map<RequestId, std::vector<int32_t>> logprob_positions;
  std::map<RequestId, FinishReason> finish;
  SampleOutput last;
};

// The published trace of nano-vLLM packs chunks into the budget but keeps prefill and decode apart;
// our step has both.
TEST(Scheduler, NanoVllmTraceExample) {
  EngineConfig config = SmallConfig();
  config.scheduler.policies = FindPreset("nano-vllm")->policies;
  Driver driver(config);
  const int32_t prompts[] = {72, 6, 79, 8, 74, 8};
  const int32_t outputs[] = {30, 50, 30, 40, 20, 40};
  for (int i = 0; i < 6; ++i) {
    driver.scheduler.Arrive(i, MakeRequest(prompts[i], outputs[i], 100 + i), 0);
  }
  const int num_steps = driver.RunAll();
  const std::vector<std::string> lines = driver.Lines();
  EXPECT_EQ(lines[0], "iteration 0: prefill R0[0,64)");
  EXPECT_EQ(lines[1], "iteration 1: prefill R0[64,72) R1[0,6) R2[0,50)");
  EXPECT_EQ(lines[2], "iteration 2: decode R0@72 R1@6 | prefill R2[50,79) R3[0,8)");
  EXPECT_EQ(lines[3], "iteration 3: decode R0@73 R1@7 R2@79 R3@8");
  EXPECT_EQ(num_steps, 72);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(driver.num_tokens[i], outputs[i]);
}

void ArriveControl(Driver* driver) {
  const int32_t prompts[] = {128, 256, 384, 512};
  const int32_t outputs[] = {24, 24, 24, 96, 24, 24, 24, 128};
  for (int i = 0; i < 20; ++i) {
    driver->scheduler.Arrive(i, MakeRequest(prompts[i % 4], outputs[i % 8], 100 + i), 0);
  }
}

// A slot is wasted in each decode step after its request has ended and before the batch ends. The
// first two batches waste 6 * (128 - 24) + (128 - 96) each, the third 3 * (96 - 24).
TEST(Scheduler, RequestLevelBatchingWastesSlots) {
  for (const int32_t token_budget : {512, 2048}) {
    EngineConfig config = SmallConfig();
    config.scheduler.policies = FindPreset("request-level")->policies;
    config.scheduler.max_num_seqs = 8;
    config.scheduler.max_num_batched_tokens = token_budget;
    Driver driver(config);
    ArriveControl(&driver);
    std::vector<RequestId> order;
    while (driver.Step()) {
      // Results come back when a batch has ended: those of 8 requests, of 16, then of all.
      EXPECT_TRUE(driver.finish.empty() || driver.finish.size() == 8 ||
                  driver.finish.size() == 16 || driver.finish.size() == 20);
    }
    EXPECT_EQ(driver.finish.size(), 20u);
    EXPECT_EQ(driver.scheduler.Stats().wasted_decode_slots, 1528u);
  }
}

TEST(Scheduler, ContinuousBatchingWastesNone) {
  for (const char* preset : {"vllm-fcfs", "nano-vllm"}) {
    EngineConfig config = SmallConfig();
    config.scheduler.policies = FindPreset(preset)->policies;
    config.scheduler.max_num_seqs = 8;
    config.scheduler.max_num_batched_tokens = 512;
    Driver driver(config);
    ArriveControl(&driver);
    driver.RunAll();
    EXPECT_EQ(driver.finish.size(), 20u);
    EXPECT_EQ(driver.scheduler.Stats().wasted_decode_slots, 0u);
  }
}

TEST(Scheduler, OneShotLeavesNoDecodeState) {
  Driver driver(SmallConfig());
  for (int i = 0; i < 10; ++i) driver.scheduler.Arrive(i, MakeRequest(40, i % 2, 100 + i), 0);
  driver.RunAll();
  const EngineStats stats = driver.scheduler.Stats();
  EXPECT_EQ(stats.decode_slots_taken, 0u);
  EXPECT_EQ(stats.requests_oneshot, 10u);
  EXPECT_EQ(stats.requests_decode, 0u);
  EXPECT_EQ(stats.kv_blocks_used, 0);
  EXPECT_EQ(stats.kv_blocks_cached, 10);  // one full block of each; the partial last blocks are
                                          // free
  EXPECT_EQ(stats.steps_decode, 0u);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(driver.num_tokens[i], i % 2);
}

TEST(Scheduler, ClassIsDecidedOnTheRoomLeft) {
  Driver driver(SmallConfig());
  driver.scheduler.Arrive(0, MakeRequest(1023, 500), 0);  // room for one token only
  driver.RunAll();
  EXPECT_EQ(driver.scheduler.Stats().requests_oneshot, 1u);
  EXPECT_EQ(driver.finish[0], FinishReason::kLength);
}

// The model always draws 7.
TEST(Scheduler, AWholeChoiceEndsASample) {
  for (const bool force_decode : {false, true}) {
    EngineConfig config = SmallConfig();
    config.scheduler.force_decode_path = force_decode;
    Driver driver(config);
    const std::vector<std::vector<std::vector<TokenId>>> choices = {
        {{7}, {8}}, {{7, 7, 7}, {7, 8}}, {{8, 7}, {7, 8, 7}, {7, 7, 8}}};
    for (size_t i = 0; i < choices.size(); ++i) {
      Request request = MakeRequest(40, i == 0 ? 1 : 20);
      request.generate().choices = choices[i];
      request.generate().num_samples = i == 2 ? 1 : 2;
      driver.scheduler.Arrive(i, request, 0);
    }
    driver.RunAll();
    EXPECT_EQ(driver.num_tokens[0], 2);
    EXPECT_EQ(driver.finish[0], FinishReason::kStop);
    EXPECT_EQ(driver.num_tokens[1], 6);
    EXPECT_EQ(driver.finish[1], FinishReason::kStop);
    // 7 7 7 is no choice of the last request, so the request does not end there.
    EXPECT_EQ(driver.num_tokens[2], 20);
    EXPECT_EQ(driver.finish[2], FinishReason::kLength);
  }
}

TEST(Scheduler, ForcedDecodePathTakesSlots) {
  EngineConfig config = SmallConfig();
  config.scheduler.force_decode_path = true;
  Driver driver(config);
  driver.scheduler.Arrive(0, MakeRequest(40, 1), 0);
  Request read = MakeRequest(40, 0);
  read.output = LabelSpec{.tokens = {3}};
  driver.scheduler.Arrive(1, read, 0);
  driver.RunAll();
  EXPECT_EQ(driver.scheduler.Stats().decode_slots_taken, 2u);
  EXPECT_EQ(driver.num_tokens[0], 1);
  EXPECT_EQ(driver.num_reads[1], 1);
}

TEST(Scheduler, PlansAreTyped) {
  EngineConfig config = SmallConfig();
  config.scheduler.max_num_batched_tokens = 100;
  Driver driver(config);
  driver.scheduler.Arrive(0, MakeRequest(10, 1, 2), 0);
  driver.scheduler.Arrive(1, MakeRequest(10, 1, 3), 0);
  driver.Step();
  EXPECT_EQ(driver.scheduler.Stats().steps_oneshot, 1u);
  driver.scheduler.Arrive(2, MakeRequest(10, 5, 4), 0);
  driver.Step();
  EXPECT_EQ(driver.scheduler.Stats().steps_mixed, 1u);
  driver.Step();
  EXPECT_EQ(driver.scheduler.Stats().steps_decode, 1u);
  driver.scheduler.Arrive(3, MakeRequest(150, 1, 5), 0);  // in two chunks, beside the decode
  driver.Step();
  driver.Step();
  EXPECT_EQ(driver.scheduler.Stats().steps_mixed, 3u);
  driver.RunAll();
}

TEST(Scheduler, OneShotPassesByRequestsThatWaitForSlots) {
  EngineConfig config = SmallConfig();
  config.scheduler.max_num_seqs = 1;
  Driver driver(config);
  driver.scheduler.Arrive(0, MakeRequest(8, 20, 2), 0);
  driver.scheduler.Arrive(1, MakeRequest(8, 20, 3), 0);
  driver.scheduler.Arrive(2, MakeRequest(8, 1, 4), 0);
  driver.Step();
  EXPECT_EQ(driver.Lines()[0], "iteration 0: prefill R0[0,8) R2[0,8)");
  driver.RunAll();
}

TEST(Scheduler, OneShotRowsOfDifferentAdaptersDoNotShareAStep) {
  SchedulerConfig config = MakeSchedulerConfig(SmallConfig()).value();
  config.num_adapters = 2;
  std::ostringstream trace;
  TracePrinter printer(&trace);
  Scheduler scheduler(config, {&printer});
  for (int i = 0; i < 4; ++i) {
    Request request = MakeRequest(8, 1);
    request.adapter_id = i / 2;
    scheduler.Arrive(i, request, 0);
  }
  StepResults results;
  results.draws.resize(2);
  ASSERT_NE(scheduler.Plan(0), nullptr);
  scheduler.Complete(&results, 0);
  ASSERT_NE(scheduler.Plan(0), nullptr);
  scheduler.Complete(&results, 0);
  EXPECT_EQ(trace.str(),
            "iteration 0: prefill R0[0,8) R1[0,8)\niteration 1: prefill R2[0,8) R3[0,8)\n");
}

TEST(Scheduler, CachedPrefixesAreNotComputedAgain) {
  EngineConfig config = SmallConfig();
  config.scheduler.max_num_batched_tokens = 512;
  Driver driver(config);
  driver.scheduler.Arrive(0, MakeRequest(128, 1), 0);
  driver.Step();
  driver.scheduler.Arrive(1, MakeRequest(128, 1), 0);
  driver.Step();
  // The last token is always computed, and with it all tokens of its block.
  EXPECT_EQ(driver.Lines()[1], "iteration 1: prefill R1[96,128)");
  EXPECT_EQ(driver.last.cached_tokens, 96);
  EXPECT_EQ(driver.scheduler.Stats().prefix_cache_hits, 96u);
  Request salted = MakeRequest(128, 1);
  salted.cache_salt = 9;
  driver.scheduler.Arrive(2, salted, 0);
  driver.Step();
  EXPECT_EQ(driver.Lines()[2], "iteration 2: prefill R2[0,128)");
}

TEST(Scheduler, GeneratedTokensAreCachedToo) {
  EngineConfig config = SmallConfig();
  Driver driver(config);
  driver.scheduler.Arrive(0, MakeRequest(30, 40), 0);
  driver.RunAll();
  Request next = MakeRequest(30, 1);
  next.prompt.resize(80, 7);  // the answer, quoted in the next turn
  driver.scheduler.Arrive(1, next, 0);
  driver.RunAll();
  EXPECT_EQ(driver.last.cached_tokens, 64);
}

TEST(Scheduler, SamplesShareThePromptAndCopyItsTail) {
  EngineConfig config = SmallConfig();
  Driver driver(config);
  Request request = MakeRequest(40, 3);
  request.generate().num_samples = 3;
  driver.scheduler.Arrive(0, request, 0);
  driver.Step();
  EXPECT_EQ(driver.scheduler.Stats().kv_blocks_used, 4);  // 1 shared block, 3 blocks with the tails
  const StepPlan* plan = driver.scheduler.Plan(0);
  const auto& decode = std::get<DecodePlan>(*plan);
  ASSERT_EQ(decode.copies.size(), 2u);
  EXPECT_EQ(decode.copies[0].from, decode.rows[0].block_table[1]);
  EXPECT_EQ(decode.copies[1].from, decode.rows[0].block_table[1]);
  EXPECT_EQ(decode.copies[1].to, decode.rows[2].block_table[1]);
  EXPECT_EQ(decode.rows[0].block_table[0], decode.rows[2].block_table[0]);
  driver.Finish(*plan);
  driver.RunAll();
  EXPECT_EQ(driver.num_tokens[0], 9);
  EXPECT_EQ(driver.scheduler.Stats().kv_blocks_used, 0);
}

TEST(Scheduler, PreemptsTheYoungestAndPutsItFirstInLine) {
  EngineConfig config = SmallConfig();
  config.scheduler.num_kv_blocks = 4;
  config.scheduler.max_model_len = 128;
  Driver driver(config);
  driver.scheduler.Arrive(0, MakeRequest(60, 20, 2), 0);
  driver.scheduler.Arrive(1, MakeRequest(4, 60, 3), 0);
  driver.scheduler.Arrive(2, MakeRequest(4, 60, 4), 0);
  driver.scheduler.Arrive(3, MakeRequest(4, 4, 5), 0);  // waits for a free block
  driver.RunAll();
  EXPECT_GE(driver.scheduler.Stats().num_preemptions, 1u);
  const std::string trace = driver.trace.str();
  EXPECT_THAT(trace,
              HasSubstr("prefill R2[0,8)"));  // 4 tokens of prompt and 4 of output, recomputed
  EXPECT_LT(trace.find("prefill R2[0,8)"), trace.find("R3[0,4)"));
  EXPECT_EQ(driver.num_tokens[0], 20);
  EXPECT_EQ(driver.num_tokens[2], 60);
}

TEST(Scheduler, AdmittingNeverEvictsARunningDecode) {
  EngineConfig config = SmallConfig();
  config.scheduler.num_kv_blocks = 5;
  config.scheduler.max_model_len = 128;
  Driver driver(config);
  driver.scheduler.Arrive(0, MakeRequest(40, 24, 2), 0);  // needs two blocks, to the end
  driver.scheduler.Arrive(1, MakeRequest(40, 24, 3), 0);
  while (driver.num_tokens[1] < 2) ASSERT_TRUE(driver.Step());
  driver.scheduler.Arrive(2, MakeRequest(40, 1, 4), 0);  // both classes wait; one block is free
  driver.scheduler.Arrive(3, MakeRequest(40, 4, 5), 0);
  driver.scheduler.Arrive(4, MakeRequest(40, 4, 6), 0);
  driver.scheduler.Arrive(5, MakeRequest(4, 1, 7), 0);
  while (driver.num_tokens[0] < 24) {
    ASSERT_TRUE(driver.Step());
    EXPECT_EQ(driver.scheduler.Stats().num_preemptions, 0u);
    if (driver.num_tokens[0] < 24) {
      EXPECT_EQ(driver.num_tokens[2] + driver.num_tokens[3], 0);
    }
  }
  driver.RunAll();
  EXPECT_EQ(driver.scheduler.Stats().num_preemptions, 0u);
  EXPECT_EQ(driver.num_tokens[4], 4);
  EXPECT_EQ(driver.num_tokens[5], 1);
}

TEST(Scheduler, LowerPriorityValuesGoFirst) {
  EngineConfig config = SmallConfig();
  config.scheduler.max_num_seqs = 1;
  Driver driver(config);
  for (int i = 0; i < 3; ++i) {
    Request request = MakeRequest(4, 2, 2 + i);
    request.priority = -i;
    driver.scheduler.Arrive(i, request, 0);
  }
  driver.RunAll();
  EXPECT_EQ(driver.Lines()[0], "iteration 0: prefill R2[0,4)");
  EXPECT_EQ(driver.Lines()[2], "iteration 2: prefill R1[0,4)");
}

TEST(Scheduler, CancellingFreesBlocksWithinAStep) {
  EngineConfig config = SmallConfig();
  config.scheduler.prefix_caching = false;
  Driver driver(config);
  driver.scheduler.Arrive(0, MakeRequest(100, 20), 0);
  driver.scheduler.Arrive(1, MakeRequest(100, 20), 0);
  driver.scheduler.Cancel(1, 0);  // request 1 waits
  EXPECT_EQ(driver.scheduler.Stats().num_requests_waiting, 1);
  driver.Step();
  EXPECT_EQ(driver.scheduler.Stats().kv_blocks_used, 4);  // the blocks of the prefilling request
  const StepPlan* plan = driver.scheduler.Plan(0);
  driver.scheduler.Cancel(0, 0);  // request 0 is in the step
  EXPECT_EQ(driver.scheduler.Stats().kv_blocks_used, 4);
  driver.Finish(*plan);
  EXPECT_EQ(driver.scheduler.Stats().kv_blocks_used, 0);
  EXPECT_TRUE(driver.scheduler.empty());
  EXPECT_EQ(driver.finish[0], FinishReason::kCancelled);
  EXPECT_EQ(driver.finish[1], FinishReason::kCancelled);
  driver.scheduler.Cancel(5, 0);  // ignored: there is no request 5
}

TEST(Scheduler, StopTokensCountOnlyAfterMinTokens) {
  Driver driver(SmallConfig());
  Request request = MakeRequest(4, 20);
  request.generate().stop_token_ids = {7};
  request.generate().min_tokens = 3;
  driver.scheduler.Arrive(0, request, 0);
  driver.RunAll();
  EXPECT_EQ(driver.num_tokens[0], 4);
  EXPECT_EQ(driver.finish[0], FinishReason::kStop);
}

Request MakeRead(int32_t prompt_len, OutputSpec output, TokenId first_token = 1) {
  Request request = MakeRequest(prompt_len, 0, first_token);
  request.output = std::move(output);
  return request;
}

std::vector<int32_t> Positions(int32_t begin, int32_t end) {
  std::vector<int32_t> positions(end - begin);
  std::iota(positions.begin(), positions.end(), begin);
  return positions;
}

TEST(Scheduler, ReadsAreOneShotWork) {
  Driver driver(SmallConfig());
  driver.scheduler.Arrive(0, MakeRead(20, LabelSpec{.tokens = {3, 4}}, 2), 0);
  driver.scheduler.Arrive(1, MakeRead(20, EmbedSpec{}, 3), 0);
  driver.scheduler.Arrive(2, MakeRead(20, ClassifySpec{}, 4), 0);
  EXPECT_EQ(driver.RunAll(), 1);
  const EngineStats stats = driver.scheduler.Stats();
  EXPECT_EQ(stats.steps_oneshot, 1u);
  EXPECT_EQ(stats.decode_slots_taken, 0u);
  EXPECT_EQ(stats.requests_oneshot, 3u);
  EXPECT_EQ(stats.kv_blocks_used, 0);
  EXPECT_EQ(stats.generation_tokens, 0u);
  for (RequestId id = 0; id < 3; ++id) {
    EXPECT_EQ(driver.num_reads[id], 1);
    EXPECT_EQ(driver.num_tokens[id], 0);
    EXPECT_EQ(driver.finish[id], FinishReason::kStop);
  }
}

TEST(Scheduler, OnlyTheLastChunkReads) {
  Driver driver(SmallConfig());
  driver.scheduler.Arrive(0, MakeRead(100, LabelSpec{.tokens = {3}}), 0);
  driver.Step();
  EXPECT_EQ(driver.num_reads[0], 0);
  driver.Step();
  EXPECT_EQ(driver.num_reads[0], 1);
  EXPECT_TRUE(driver.scheduler.empty());
}

TEST(Scheduler, PromptLogprobsComeInPiecesOnce) {
  Driver driver(SmallConfig());
  Request request = MakeRequest(100, 5);
  request.generate().num_samples = 3;
  request.prompt_logprobs = PromptLogprobsSpec{.num_top = 2};
  driver.scheduler.Arrive(0, request, 0);
  driver.Step();
  EXPECT_EQ(driver.logprob_positions[0], Positions(1, 65));  // also the token after the chunk
  EXPECT_EQ(driver.num_tokens[0], 0);
  driver.RunAll();
  EXPECT_EQ(driver.logprob_positions[0], Positions(1, 100));
  EXPECT_EQ(driver.num_tokens[0], 15);
  // The prompt is computed, even though its KV blocks are in the cache.
  driver.scheduler.Arrive(1, request, 0);
  driver.RunAll();
  EXPECT_EQ(driver.logprob_positions[1], Positions(1, 100));
  EXPECT_EQ(driver.last.cached_tokens, 0);
}

TEST(Scheduler, WhatLiesBeforeTheFirstLogprobMayBeCached) {
  EngineConfig config = SmallConfig();
  config.scheduler.max_num_batched_tokens = 512;
  Driver driver(config);
  driver.scheduler.Arrive(0, MakeRequest(128, 1), 0);
  driver.RunAll();
  // Pairs of `start` and the number of tokens that may come from the cache: full blocks before
  // position start - 1.
  const std::pair<int32_t, int32_t> cases[] = {{0, 0},   {32, 0},  {33, 32},
                                               {64, 32}, {65, 64}, {127, 96}};
  RequestId id = 0;
  for (const auto& [start, cached] : cases) {
    SCOPED_TRACE(start);
    Request request = MakeRead(128, LabelSpec{.tokens = {3}});
    request.prompt_logprobs = PromptLogprobsSpec{.start = start};
    driver.scheduler.Arrive(++id, request, 0);
    driver.RunAll();
    EXPECT_EQ(driver.logprob_positions[id], Positions(std::max(start, 1), 128));
    EXPECT_EQ(driver.last.cached_tokens, cached);
    EXPECT_EQ(driver.num_reads[id], 1);
  }
}

TEST(Scheduler, APreemptedPromptDoesNotDeliverTwice) {
  EngineConfig config = SmallConfig();
  config.scheduler.num_kv_blocks = 5;
  config.scheduler.max_model_len = 128;
  config.scheduler.prefix_caching = false;
  config.scheduler.max_num_batched_tokens = 40;
  Driver driver(config);
  driver.scheduler.Arrive(0, MakeRequest(31, 60, 2), 0);  // grows while request 1 is prefilled
  Request request = MakeRequest(100, 1, 3);
  request.prompt_logprobs = PromptLogprobsSpec{};
  driver.Step();
  driver.scheduler.Arrive(1, request, 0);
  driver.RunAll();
  EXPECT_EQ(driver.scheduler.Stats().num_preemptions, 1u);
  EXPECT_EQ(driver.logprob_positions[1], Positions(1, 100));
  EXPECT_EQ(driver.num_tokens[0], 60);
  EXPECT_EQ(driver.num_tokens[1], 1);
}

TEST(Scheduler, WholePromptsAreNotCutAndTakeNothingFromTheCache) {
  EngineConfig config = SmallConfig();
  config.embeds = config.reads_whole_prompts = true;
  Driver driver(config);
  driver.scheduler.Arrive(0, MakeRequest(64, 1), 0);
  driver.RunAll();
  driver.scheduler.Arrive(1, MakeRead(40, EmbedSpec{}), 0);
  driver.scheduler.Arrive(2, MakeRead(40, EmbedSpec{}), 0);
  driver.scheduler.Arrive(3, MakeRead(40, LabelSpec{.tokens = {3}}), 0);
  EXPECT_EQ(driver.RunAll(), 2);
  const std::vector<std::string> lines = driver.Lines();
  EXPECT_EQ(lines[1], "iteration 1: prefill R1[0,40)");
  EXPECT_EQ(lines[2], "iteration 2: prefill R2[0,40) R3[32,40)");
  const SchedulerConfig scheduler_config = MakeSchedulerConfig(config).value();
  EXPECT_EQ(scheduler_config.max_whole_prompt_len, 60);  // leaves room for 4 decodes
  EXPECT_TRUE(Scheduler::CheckFits(scheduler_config, MakeRead(60, EmbedSpec{})).ok());
  const Status refused = Scheduler::CheckFits(scheduler_config, MakeRead(61, EmbedSpec{}));
  EXPECT_EQ(refused.param(), "prompt");
  EXPECT_THAT(refused.message(), HasSubstr("at most 60 tokens"));
  EXPECT_TRUE(
      Scheduler::CheckFits(scheduler_config, MakeRead(1024, LabelSpec{.tokens = {3}})).ok());
  EXPECT_EQ(
      Scheduler::CheckFits(scheduler_config, MakeRead(1025, LabelSpec{.tokens = {3}})).param(),
      "prompt");
}

TEST(Scheduler, RefusesWhatCanNeverFit) {
  EngineConfig config = SmallConfig();
  config.scheduler.num_kv_blocks = 4;
  const SchedulerConfig scheduler_config = MakeSchedulerConfig(config).value();
  const auto refusal = [&](const Request& request) {
    return Scheduler::CheckFits(scheduler_config, request);
  };
  EXPECT_TRUE(refusal(MakeRequest(100, 29)).ok());
  EXPECT_EQ(refusal(MakeRequest(100, 30)).param(), "max_tokens");
  EXPECT_THAT(refusal(MakeRequest(100, 30)).message(), HasSubstr("needs 5 KV blocks"));
  EXPECT_EQ(refusal(MakeRequest(129, 1)).param(), "prompt");
  EXPECT_EQ(refusal(MakeRequest(1024, 1)).param(), "prompt");
  EXPECT_EQ(refusal(MakeRequest(4, -1)).param(), "max_tokens");
  Request many = MakeRequest(4, 4);
  many.generate().num_samples = 5;
  EXPECT_EQ(refusal(many).param(), "n");
  Request adapted = MakeRequest(4, 4);
  adapted.adapter_id = 1;
  EXPECT_EQ(refusal(adapted).param(), "adapter_id");
  Request none;
  EXPECT_EQ(refusal(none).param(), "prompt");
}

TEST(SchedulerConfig, NamesWhatIsWrong) {
  EngineConfig config = SmallConfig();
  config.scheduler.max_num_batched_tokens = 3;
  EXPECT_EQ(MakeSchedulerConfig(config).status().param(), "max_num_batched_tokens");
}

}  // namespace
}  // namespace skein
