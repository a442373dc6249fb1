#pragma once

#include <memory>
#include <span>

#include "sched/batching/batching_policy.h"
#include "sched/config.h"
#include "sched/cost_model.h"
#include "sched/decode_set/decode_set_policy.h"
#include "sched/order/order_policy.h"

namespace skein {

// An entry in a list of policies: the policy's name in SchedulerConfig, and the function that makes
// the policy. `cost` outlives the policy.
template <typename Name, typename Policy>
struct PolicyEntry {
  Name name;
  std::unique_ptr<Policy> (*make)(const SchedulerConfig& config, const CostModel* cost);
};
using OrderEntry = PolicyEntry<Order, OrderPolicy>;
using BatchingEntry = PolicyEntry<Batching, BatchingPolicy>;
using DecodeSetEntry = PolicyEntry<DecodeSet, DecodeSetPolicy>;

// All known policies: one list for each kind (docs/adding-a-policy.md).
struct PolicyLists {
  std::span<const OrderEntry> orders;
  std::span<const BatchingEntry> batchings;
  std::span<const DecodeSetEntry> decode_sets;
};
// The lists of Skein's own policies.
PolicyLists BuiltInPolicies();

// The policies of one scheduler.
struct PolicyObjects {
  std::unique_ptr<OrderPolicy> order;
  std::unique_ptr<BatchingPolicy> batching;
  std::unique_ptr<DecodeSetPolicy> decode_set;
};
// REQUIRES: the lists contain the names in `config`; `config` comes from MakeSchedulerConfig;
// `cost` outlives the policies.
PolicyObjects MakePolicies(const SchedulerConfig& config, const CostModel* cost,
                           const PolicyLists& lists);

// Whether a scheduler with this configuration decides better if it has a fit of the costs.
bool NeedsCosts(const SchedulerConfig& config, const PolicyLists& lists = BuiltInPolicies());

// Whether a scheduler with this configuration decides better if it has a fit of the costs of
// decodes that share prefixes.
bool NeedsDecodeCosts(const SchedulerConfig& config, const PolicyLists& lists = BuiltInPolicies());

// Whether the order of this configuration ranks requests by deadline.
bool OrdersByDeadline(const SchedulerConfig& config, const PolicyLists& lists = BuiltInPolicies());

}  // namespace skein
