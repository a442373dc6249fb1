#include "sched/policies.h"

#include <algorithm>

#include "base/check.h"
#include "sched/batching/auto_batch.h"
#include "sched/batching/simple_batching.h"
#include "sched/batching/slo_batch.h"
#include "sched/decode_set/dynamic_batch.h"
#include "sched/decode_set/prefix_groups.h"
#include "sched/decode_set/whole_batches.h"
#include "sched/order/auto_order.h"
#include "sched/order/jct_order.h"
#include "sched/order/simple_orders.h"
#include "sched/order/slack_order.h"

namespace skein {
namespace {

using Config = SchedulerConfig;

template <typename Made, typename Policy>
std::unique_ptr<Policy> Plain(const Config& /*config*/, const CostModel* /*cost*/) {
  return std::make_unique<Made>();
}

std::unique_ptr<OrderPolicy> ByJct(const Config& config, const CostModel* /*cost*/) {
  return std::make_unique<JctOrder>(config);
}

std::unique_ptr<OrderPolicy> BySlack(const Config& config, const CostModel* cost) {
  return std::make_unique<SlackOrder>(config, cost);
}

std::unique_ptr<OrderPolicy> ByAuto(const Config& config, const CostModel* cost) {
  return std::make_unique<AutoOrder>(config, cost);
}

std::unique_ptr<BatchingPolicy> AutoBatch(const Config& /*config*/, const CostModel* cost) {
  return std::make_unique<AutoBatching>(cost);
}

std::unique_ptr<BatchingPolicy> Saturate(const Config& /*config*/, const CostModel* cost) {
  return std::make_unique<SaturateBatching>(cost);
}

std::unique_ptr<BatchingPolicy> SloAware(const Config& config, const CostModel* cost) {
  return std::make_unique<SloAwareBatching>(cost, config.deadlines.slo_batch_tokens);
}

std::unique_ptr<DecodeSetPolicy> Static(const Config& config, const CostModel* /*cost*/) {
  return std::make_unique<WholeBatches>(config.max_num_seqs);
}

std::unique_ptr<DecodeSetPolicy> ByPrefix(const Config& config, const CostModel* /*cost*/) {
  const bool by_order = config.policies.order == Order::kAuto;
  const DecodeLimits limits{.max_rows = config.max_num_seqs,
                            .max_kv_tokens = int64_t{config.num_kv_blocks} * kBlockTokens};
  return std::make_unique<PrefixGroups>(config.prefix_groups, config.prefix_groups.learned.get(),
                                        nullptr,
                                        DecodeDevice{config.decode_cost, limits, by_order});
}

std::unique_ptr<DecodeSetPolicy> Dynamic(const Config& config, const CostModel* /*cost*/) {
  return std::make_unique<DynamicBatch>(config.num_kv_blocks, config.max_num_seqs,
                                        config.dynamic_step_us);
}

constexpr OrderEntry kOrders[] = {
    {Order::kFcfs, Plain<FcfsOrder, OrderPolicy>},
    {Order::kFair, Plain<FairOrder, OrderPolicy>},
    {Order::kSrjf, ByJct},
    {Order::kSrjfCalibrated, ByJct},
    {Order::kEdf, BySlack},
    {Order::kDeadlineEdf, BySlack},
    {Order::kSlackEdf, BySlack},
    {Order::kLpm, Plain<LongestPrefixOrder, OrderPolicy>},
    {Order::kDfsWeight, Plain<DepthFirstOrder, OrderPolicy>},
    {Order::kAuto, ByAuto},
};

constexpr BatchingEntry kBatchings[] = {
    {Batching::kSingle, Plain<SingleBatching, BatchingPolicy>},
    {Batching::kSaturate, Saturate},
    {Batching::kBudget, Plain<BudgetBatching, BatchingPolicy>},
    {Batching::kSloAware, SloAware},
    {Batching::kAuto, AutoBatch},
};

constexpr DecodeSetEntry kDecodeSets[] = {
    {DecodeSet::kStatic, Static},
    {DecodeSet::kFill, Plain<FillSet, DecodeSetPolicy>},
    {DecodeSet::kPrefixHomogeneous, ByPrefix},
    {DecodeSet::kDynamic, Dynamic},
};

template <typename Name, typename Policy>
std::unique_ptr<Policy> Make(std::span<const PolicyEntry<Name, Policy>> entries, Name name,
                             const Config& config, const CostModel* cost) {
  const auto entry = std::ranges::find(entries, name, &PolicyEntry<Name, Policy>::name);
  SKEIN_CHECK(entry != entries.end());
  return entry->make(config, cost);
}

}  // namespace

PolicyLists BuiltInPolicies() { return {kOrders, kBatchings, kDecodeSets}; }

PolicyObjects MakePolicies(const SchedulerConfig& config, const CostModel* cost,
                           const PolicyLists& lists) {
  return {.order = Make(lists.orders, config.policies.order, config, cost),
          .batching = Make(lists.batchings, config.policies.batching, config, cost),
          .decode_set = Make(lists.decode_sets, config.policies.decode_set, config, cost)};
}

bool NeedsDecodeCosts(const SchedulerConfig& config, const PolicyLists& lists) {
  const CostModel cost(config.cost);
  return MakePolicies(config, &cost, lists).decode_set->NeedsDecodeCosts();
}

bool OrdersByDeadline(const SchedulerConfig& config, const PolicyLists& lists) {
  const CostModel cost(config.cost);
  return MakePolicies(config, &cost, lists).order->ByDeadline();
}

bool NeedsCosts(const SchedulerConfig& config, const PolicyLists& lists) {
  const CostModel cost(config.cost);
  const PolicyObjects policies = MakePolicies(config, &cost, lists);
  const bool compares =
      Preempts(config.policies.sharing) && config.preemption.decode_steps != DecodeSteps::kOwn;
  return policies.order->NeedsCosts() || policies.batching->NeedsCosts() || compares;
}

}  // namespace skein
