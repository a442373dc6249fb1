#pragma once

// A scheduler whose steps stop for others, step by step on a clock of the test's own.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "sched/scheduler.h"

namespace skein::testing {

using Ids = std::vector<RequestId>;

struct PreemptFixture {
  explicit PreemptFixture(const std::function<void(EngineConfig*)>& change = {}) {
    EngineConfig config;
    config.scheduler.policies = FindPreset("paged-fcfs")->policies;
    config.scheduler.policies.sharing = Sharing::kPreemptOp;
    config.vocab_size = 100;
    config.scheduler.max_model_len = 400;
    config.scheduler.num_kv_blocks = 40;
    config.scheduler.max_num_seqs = 4;
    config.scheduler.max_num_batched_tokens = 200;
    if (change) change(&config);
    scheduler.emplace(MakeSchedulerConfig(config).value());
  }

  void Arrive(RequestId id, int32_t prompt_len, int32_t priority, int32_t max_tokens = 1) {
    Request request;
    request.prompt.assign(prompt_len, static_cast<TokenId>(id + 1));
    request.generate().max_tokens = max_tokens;
    request.priority = priority;
    request.slo_ttft_us = slo_ttft_us;
    request.slo_tpot_us = slo_tpot_us;
    scheduler->Arrive(id, std::move(request), ++now_us);
  }
  // The requests in the next step; empty: nothing to do.
  std::vector<RequestId> Plan() {
    plan = scheduler->Plan(++now_us);
    scheduler->CheckIntegrity();
    std::vector<RequestId> ids;
    num_draws = 0;
    const auto add = [&](const std::vector<PlanRow>& rows) {
      for (const PlanRow& row : rows) {
        ids.push_back(RequestOf(row.sequence));
        num_draws += row.draws.size();
      }
    };
    if (plan == nullptr) return ids;
    if (const auto* oneshot = std::get_if<OneShotPlan>(plan)) add(oneshot->rows);
    if (const auto* decode = std::get_if<DecodePlan>(plan)) add(decode->rows);
    if (const auto* mixed = std::get_if<MixedPlan>(plan)) {
      add(mixed->prefills);
      add(mixed->decodes);
    }
    return ids;
  }
  StepFate Reconsider() {
    const StepFate fate = scheduler->Reconsider(++now_us);
    scheduler->CheckIntegrity();
    return fate;
  }
  void Complete() {
    StepResults results;
    results.draws.resize(num_draws);
    for (DrawResult& result : results.draws) result.token.token = 1;
    scheduler->Complete(&results, ++now_us);
    scheduler->CheckIntegrity();
  }
  std::vector<RequestId> Finished() {
    std::vector<RequestId> ids;
    for (const SampleOutput& output : scheduler->TakeOutputs()) {
      if (output.finish) ids.push_back(output.request);
    }
    return ids;
  }

  TimeUs now_us = 0;
  std::optional<TimeUs> slo_ttft_us, slo_tpot_us;  // of what arrives
  size_t num_draws = 0;
  const StepPlan* plan = nullptr;
  std::optional<Scheduler> scheduler;
};

// A millisecond for a token, ten for a step.
inline void KnowCosts(EngineConfig* config) {
  config->scheduler.cost = {.step_us = 10'000, .token_us = 1000, .pair_us = 0, .row_us = 0};
}

}  // namespace skein::testing
