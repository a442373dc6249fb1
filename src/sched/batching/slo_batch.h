#pragma once

#include <cstdint>
#include <optional>

#include "sched/batching/batching_policy.h"
#include "sched/cost_model.h"

namespace skein {

// SLO-aware batching (FlowPrefill, Algorithm 1), for one further request. The batch has a head H,
// its most urgent request, and N tokens so far. A further request of n tokens joins if
//
//   T > L(N + n)   and   N + n < G
//
// T is the time until H's deadline, G the token budget, and L(N) the predicted time of a batch of N
// tokens. L counts H's own work and the N - n_H other tokens as one further prompt. The real
// prompts of those tokens are ignored, so L depends on their number alone and grows with it.
struct SloBatch {
  CostFit fit;
  double left_us = 0;        // T
  int64_t token_budget = 0;  // G
  StepWork head;
  int64_t num_head_tokens = 0;

  // L of a batch of H and `num_other_tokens` other tokens.
  double PredictUs(int64_t num_other_tokens) const;
  // The most tokens that a further request may have beside H and `num_other_tokens` others; below 1
  // if none may join. O(log G).
  int64_t MaxTokens(int64_t num_other_tokens) const;
};

// Takes as many requests as the deadline of the step's first request allows. Requests that do not
// fit are passed over.
class SloAwareBatching final : public BatchingPolicy {
 public:
  // `cost` outlives the policy.
  SloAwareBatching(const CostModel* cost, int64_t token_budget)
      : cost_(cost), token_budget_(token_budget) {}

  void BeginStep() override { batch_.reset(); }
  int64_t MaxTokens(const StepSoFar& step) override;
  bool SkipsToFit() const override { return true; }
  bool NeedsCosts() const override { return true; }

 private:
  const CostModel* const cost_;
  const int64_t token_budget_;
  std::optional<SloBatch> batch_;  // set when the step has a first prompt
};

}  // namespace skein
