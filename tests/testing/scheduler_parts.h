#pragma once

// The parts of a scheduler without its rounds, for tests of each part.

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "sched/admission.h"
#include "sched/arrival.h"
#include "sched/completion.h"
#include "sched/context.h"
#include "sched/order/ranks.h"
#include "sched/policies.h"
#include "sched/prefix/shared_prefixes.h"
#include "sched/step_builder.h"
#include "sched/step_plan.h"

namespace skein::testing {

// 16 KV blocks, 4 slots, steps of 128 tokens, chunked prefill, first come first served.
inline SchedulerConfig PartsConfig() {
  EngineConfig engine;
  engine.vocab_size = 1000;
  engine.scheduler.policies = FindPreset("chunked-fcfs")->policies;
  engine.scheduler.num_kv_blocks = 16;
  engine.scheduler.max_model_len = 512;
  engine.scheduler.max_num_seqs = 4;
  engine.scheduler.max_num_batched_tokens = 128;
  return MakeSchedulerConfig(engine).value();
}

// `num_tokens` tokens that no other prompt has, unless `content` is the same.
inline Request PromptOf(int32_t num_tokens, int32_t max_tokens, TokenId content) {
  Request request;
  request.prompt.assign(num_tokens, content);
  request.generate().max_tokens = max_tokens;
  return request;
}

struct SchedulerParts {
  explicit SchedulerParts(const SchedulerConfig& its_config = PartsConfig())
      : config(its_config),
        blocks(config.num_kv_blocks, config.prefix_caching, config.num_states,
               config.num_host_kv_blocks),
        cost(config.cost),
        policies(MakePolicies(config, &cost, BuiltInPolicies())),
        context{.config = &config,
                .blocks = &blocks,
                .cost = &cost,
                .table = &table,
                .order = policies.order.get(),
                .batching = policies.batching.get(),
                .decode_set = policies.decode_set.get(),
                .stats = &stats},
        ranks(context),
        prefixes(context, &ranks),
        admission(context, &ranks, &prefixes),
        builder(context, &ranks, &prefixes, &admission, &step),
        completion(context, &ranks, &prefixes, &admission) {}

  // A request that waits, with its first sequence.
  Sequence* Arrive(Request request) {
    const RequestId id = table.num_arrivals();
    EXPECT_TRUE(CheckFits(config, request).ok());
    auto record = MakeRecord(config, id, id, std::move(request), now_us);
    Sequence* sequence = record->sequences.front().get();
    sequence->blocks.Hash(sequence->tokens);
    ranks.RankArrival(sequence, now_us);
    ranks.EnterWaiting(sequence);
    table.Add(std::move(record));
    return sequence;
  }
  // The same with a prompt of its own.
  Sequence* Arrive(int32_t num_tokens, int32_t max_tokens = 10) {
    const auto content = static_cast<TokenId>(1 + table.num_arrivals());
    return Arrive(PromptOf(num_tokens, max_tokens, content));
  }

  void BeginRound() {
    builder.Begin(now_us);
    admission.BeginRound(num_rounds++, now_us);
    ranks.BeginRound(now_us);
  }
  // Plans the step that the builder has filled; it runs from then on.
  void BeginStep() {
    step.plan = WritePlan(&step, &blocks);
    step.state = StepState::kInFlight;
    completion.NotePlanned(step);
  }
  // The step ends; the draws of its rows are `tokens`, in order.
  void EndStep(const std::vector<TokenId>& tokens) {
    StepResults results;
    for (const TokenId token : tokens) {
      results.draws.emplace_back();
      results.draws.back().token.token = token;
    }
    EndStepWith(&results);
  }
  void EndStepWith(StepResults* results) {
    now_us += 1000;
    step.state = StepState::kFinished;
    completion.TakeResults(step, results, now_us);
    step.prefills.clear();
    step.decodes.clear();
    table.EraseEndedRunning();
    CheckIntegrity();
  }
  // Computes the prompts that wait or have started, in one step, and draws `tokens`.
  void RunPrompts(const std::vector<TokenId>& tokens) {
    BeginRound();
    builder.AddPrompts();
    BeginStep();
    EndStep(tokens);
  }

  void CheckIntegrity() const {
    blocks.CheckIntegrity();
    table.CheckIntegrity();
    ranks.CheckIntegrity();
    admission.CheckIntegrity();
  }

  const SchedulerConfig config;
  BlockManager blocks;
  CostModel cost;
  PolicyObjects policies;
  RequestTable table;
  EngineStats stats;
  const SchedulerContext context;
  Ranks ranks;
  SharedPrefixes prefixes;
  Admission admission;
  skein::Step step;
  StepBuilder builder;
  Completion completion;
  TimeUs now_us = 0;
  int64_t num_rounds = 0;
};

}  // namespace skein::testing
