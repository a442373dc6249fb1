#include "engine/idle_profile.h"

#include <algorithm>
#include <utility>

#include "sched/decode_set/decode_cost.h"
#include "sched/policies.h"

namespace skein {

IdleProfile::IdleProfile(StepProfiler profiler, const Clock* clock, const SchedulerConfig& config)
    : profiler_(std::move(profiler)),
      costs_(&profiler_, clock, ProfileLimitsOf(config)),
      most_blocks_(std::max(2, BlocksFor(config.max_model_len))) {
  if (!NeedsDecodeCosts(config) || config.kv_storage != KvStorage::kPaged) return;
  decodes_.emplace(&profiler_, clock, DecodeProfileLimitsOf(config));
  most_blocks_ = std::max(most_blocks_, decodes_->most_blocks());
}

bool IdleProfile::Measure(const std::atomic<bool>& stop) {
  return costs_.done() ? decodes_->Measure(stop) : costs_.Measure(stop);
}

CostFit IdleProfile::Costs() const {
  return costs_.lacked_memory() ? CostFit{} : FitCosts(costs_.samples());
}

DecodeFit IdleProfile::DecodeCosts() const {
  return decodes_ ? FitDecodes(decodes_->samples()) : DecodeFit{};
}

}  // namespace skein
