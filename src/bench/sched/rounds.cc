#include "bench/sched/rounds.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "bench/serving/load_report.h"
#include "sched/scheduler.h"
#include "skein/choice_names.h"

namespace skein {
namespace {

constexpr int32_t kGroupSize = 50;
constexpr int32_t kSharedTokens = 256;
constexpr int32_t kOwnTokens = 74;
constexpr int32_t kCachedGroups = 8;
constexpr int32_t kWarmupRounds = 100;
constexpr TimeUs kStepUs = 1000;

// Makes a request of a random group among `num_groups`.
Request MakeRequest(int32_t num_groups, Random* random) {
  const int64_t group = random->Between(0, num_groups - 1);
  Request request;
  request.prompt.reserve(kSharedTokens + kOwnTokens);
  for (int32_t i = 0; i < kSharedTokens; ++i) {
    request.prompt.push_back(static_cast<TokenId>(RandomBitsAt(1, group, i) % 1000));
  }
  const int64_t own = random->Between(1, kOwnTokens);
  for (int64_t i = 0; i < own; ++i) {
    request.prompt.push_back(static_cast<TokenId>(random->Between(0, 999)));
  }
  request.generate().max_tokens = 1;
  return request;
}

}  // namespace

Result<RoundCost> MeasureRounds(Order order, int32_t waiting, int32_t num_rounds) {
  SKEIN_CHECK(waiting >= 1 && num_rounds >= 1);
  EngineConfig engine;
  engine.scheduler.policies = FindPreset("prefill-only")->policies;
  engine.scheduler.policies.order = order;
  engine.vocab_size = 1000;
  engine.scheduler.max_model_len = 1024;
  engine.scheduler.max_num_batched_tokens = 1024;
  engine.scheduler.num_kv_blocks =
      BlocksFor(kSharedTokens) * kCachedGroups + 2 * BlocksFor(kSharedTokens + kOwnTokens);
  SKEIN_ASSIGN_OR_RETURN(const SchedulerConfig config, MakeSchedulerConfig(engine));
  Scheduler scheduler(config);
  Random random(1);
  const int32_t num_groups = std::max(1, waiting / kGroupSize);
  TimeUs now_us = 0;
  RequestId next_id = 0;
  while (next_id < static_cast<RequestId>(waiting)) {
    scheduler.Arrive(next_id++, MakeRequest(num_groups, &random), ++now_us);
  }
  StepResults results;
  std::vector<double> us;
  for (int32_t round = 0; round < kWarmupRounds + num_rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    const StepPlan* plan = scheduler.Plan(now_us);
    SKEIN_CHECK(plan != nullptr);
    results.draws.resize(std::get<OneShotPlan>(*plan).rows.size());
    now_us += kStepUs;
    scheduler.Complete(&results, now_us);
    scheduler.TakeOutputs();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    if (round >= kWarmupRounds) us.push_back(took.count());
    scheduler.Arrive(next_id++, MakeRequest(num_groups, &random), now_us);
  }
  const Distribution summary = Summarize(std::move(us));
  return RoundCost{.mean_us = summary.mean, .p99_us = summary.p99};
}

Result<nlohmann::ordered_json> BenchRounds(std::span<const int32_t> queues, int32_t num_rounds) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Order order : {Order::kFcfs, Order::kSrjf, Order::kSrjfCalibrated}) {
    for (const int32_t waiting : queues) {
      SKEIN_ASSIGN_OR_RETURN(const RoundCost cost, MeasureRounds(order, waiting, num_rounds));
      rows.push_back({{"order", NameOf(order)},
                      {"waiting", waiting},
                      {"us_per_round", cost.mean_us},
                      {"p99_us", cost.p99_us}});
    }
  }
  return rows;
}

}  // namespace skein
