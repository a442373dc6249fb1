#pragma once

#include <cstdint>

#include "sched/batching/batching_policy.h"
#include "sched/cost_model.h"

namespace skein {

// Takes as many requests as keep the device busy: twice SaturationTokens of tokens, or the whole
// token budget if there is no cost model. If the step's first prompt names a deadline and can meet
// it when computed alone, it takes only as many as still let the prompt meet it
// (sched/batching/slo_batch.h). Requests that do not fit are passed over.
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
