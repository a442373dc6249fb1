#pragma once

#include "sched/batching/batching_policy.h"
#include "sched/cost_model.h"

namespace skein {

// One request at a time: long prompts fill the device, and a request that runs alone ends earlier.
class SingleBatching final : public BatchingPolicy {
 public:
  bool TakesMore() const override { return false; }
  int64_t MaxTokens(const StepSoFar& /*step*/) override { return 0; }
};

// As many requests as the token budget holds.
class BudgetBatching final : public BatchingPolicy {
 public:
  bool TakesMoreStarted() const override { return true; }
  int64_t MaxTokens(const StepSoFar& /*step*/) override { return kAny; }
};

// As many requests as keep the device busy (SaturationTokens); a longer prompt runs alone.
class SaturateBatching final : public BatchingPolicy {
 public:
  // `cost` outlives the policy.
  explicit SaturateBatching(const CostModel* cost) : cost_(cost) {}

  int64_t MaxTokens(const StepSoFar& step) override {
    return SaturationTokens(cost_->fit()) - step.num_tokens;
  }
  // If the requests ran one at a time, the second one would find the first one's prefix in the
  // cache.
  bool WaitsForPrefixes() const override { return true; }
  bool NeedsCosts() const override { return true; }

 private:
  const CostModel* const cost_;
};

}  // namespace skein
