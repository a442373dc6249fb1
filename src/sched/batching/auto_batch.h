#pragma once

#include <cstdint>

#include "sched/batching/batching_policy.h"
#include "sched/cost_model.h"

namespace skein {

// As many requests as keep the device busy: twice SaturationTokens, or without a cost model as many
// as the token budget holds. If the step's first prompt names a deadline and can meet it alone,
// only as many as let it (sched/batching/slo_batch.h). Those that do not fit are passed over.
class AutoBatching final : public BatchingPolicy {
 public:
  // `cost` outlives the policy.
  explicit AutoBatching(const CostModel* cost) : cost_(cost) {}

  int64_t MaxTokens(const StepSoFar& step) override;
  bool SkipsToFit() const override { return true; }
  bool NeedsCosts() const override { return true; }

 private:
  const CostModel* const cost_;
};

}  // namespace skein
