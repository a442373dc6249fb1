#pragma once

// A scheduler with requests of several groups, against the fake executor and a virtual clock.

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/executor.h"
#include "sched/scheduler.h"
#include "testing/fake_executor.h"

namespace skein::testing {

inline EngineConfig ConfigOf(DecodeSet decode_set, StopRule stop = StopRule::kBandit) {
  EngineConfig config;
  config.scheduler.policies = FindPreset("feather")->policies;
  config.scheduler.policies.decode_set = decode_set;
  config.scheduler.prefix_groups.stop.rule = stop;
  config.vocab_size = 5000;
  config.scheduler.max_model_len = 1024;
  config.scheduler.num_kv_blocks = 2000;
  config.scheduler.max_num_seqs = 8;
  config.scheduler.max_num_batched_tokens = 2048;
  config.scheduler.prefix_groups.max_wait_us = 3'600'000'000;
  config.scheduler.prefix_groups.max_wait_stretch = 0;
  return config;
}

// A scheduler and its executor under a clock that moves by what Cost says of each step.
class World {
 public:
  explicit World(const EngineConfig& config, std::vector<SchedulerObserver*> observers = {},
                 const PolicyLists& lists = BuiltInPolicies())
      : config_(config),
        scheduler_(MakeSchedulerConfig(config).value(), std::move(observers), lists),
        executor_(
            {.num_kv_blocks = config.scheduler.num_kv_blocks, .vocab_size = config.vocab_size}) {}

  // `num_shared` blocks of the group's, one block of its own, `max_tokens` of output.
  RequestId Arrive(int group, int32_t max_tokens = 20, int num_shared = 8, int num_own = 1) {
    Request request;
    request.prompt.assign(size_t{kBlockTokens} * num_shared, group);
    request.prompt.resize(request.prompt.size() + size_t{kBlockTokens} * num_own,
                          100 + static_cast<TokenId>(next_id_ % 4000));
    request.generate().max_tokens = max_tokens;
    request.user = "group " + std::to_string(group);
    request.slo_ttft_us = slo_ttft_us;
    request.priority = priority;
    group_of_[next_id_] = group;
    scheduler_.Arrive(next_id_, std::move(request), now_us);
    return next_id_++;
  }

  // One step; the requests that decode in it. Nothing to do: false.
  bool Step() {
    if (!Plan()) return false;
    Finish();
    return true;
  }
  // The same in two halves, for what happens while a step runs.
  bool Plan() {
    plan_ = scheduler_.Plan(now_us);
    if (checks) scheduler_.CheckIntegrity();
    decoding.clear();
    prefilling.clear();
    if (plan_ != nullptr) Note(*plan_);
    return plan_ != nullptr;
  }
  void Finish() {
    const std::unique_ptr<Task> task = executor_.Begin(*plan_);
    EXPECT_EQ(executor_.Resume(*task, never_), TaskStatus::kDone);
    StepResults results = executor_.Results(*task);
    now_us += Cost();
    scheduler_.Complete(&results, now_us);
    if (checks) scheduler_.CheckIntegrity();
    num_prefill_tokens += num_prefill_tokens_;
    for (const SampleOutput& output : scheduler_.TakeOutputs()) {
      num_tokens += output.token.has_value();
      if (!output.finish) continue;
      waited_us[output.request] = output.times.first_scheduled_us - output.times.arrival_us;
    }
  }

  std::set<int> GroupsOf(const std::vector<RequestId>& ids) const {
    std::set<int> groups;
    for (const RequestId id : ids) groups.insert(group_of_.at(id));
    return groups;
  }
  Scheduler& scheduler() { return scheduler_; }
  size_t num_unfinished() const { return next_id_ - waited_us.size(); }

  bool checks = true;
  TimeUs now_us = 0;
  double mixed_row_us = 0;  // for each decode row beyond one in a batch of several groups
  std::vector<RequestId> decoding;
  std::vector<RequestId> prefilling;
  std::optional<TimeUs> slo_ttft_us;  // of what arrives
  int32_t priority = 0;               // likewise
  int64_t num_tokens = 0;
  int64_t num_prefill_tokens = 0;         // in all
  std::map<RequestId, TimeUs> waited_us;  // of those that have finished

 private:
  void Note(const StepPlan& plan) {
    num_prefill_tokens_ = 0;
    const auto prefill = [&](const std::vector<PlanRow>& rows) {
      for (const PlanRow& row : rows) {
        prefilling.push_back(RequestOf(row.sequence));
        num_prefill_tokens_ += std::ssize(row.tokens);
      }
    };
    const auto decode = [&](const std::vector<PlanRow>& rows) {
      for (const PlanRow& row : rows) decoding.push_back(RequestOf(row.sequence));
    };
    if (const auto* oneshot = std::get_if<OneShotPlan>(&plan)) prefill(oneshot->rows);
    if (const auto* rows = std::get_if<DecodePlan>(&plan)) decode(rows->rows);
    if (const auto* mixed = std::get_if<MixedPlan>(&plan)) {
      prefill(mixed->prefills);
      decode(mixed->decodes);
    }
  }

  TimeUs Cost() const {
    const auto rows = static_cast<double>(decoding.size());
    const double mixed = GroupsOf(decoding).size() > 1 ? mixed_row_us * (rows - 1) : 0;
    return static_cast<TimeUs>(2000 + 20 * static_cast<double>(num_prefill_tokens_) + 100 * rows +
                               mixed);
  }

  const EngineConfig config_;
  Scheduler scheduler_;
  FakeExecutor executor_;
  const std::atomic<bool> never_{false};
  std::map<RequestId, int> group_of_;
  RequestId next_id_ = 0;
  const StepPlan* plan_ = nullptr;
  int64_t num_prefill_tokens_ = 0;
};

}  // namespace skein::testing
