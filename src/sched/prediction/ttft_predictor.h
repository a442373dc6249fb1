#pragma once

#include <array>
#include <cstdint>

#include "sched/cost_model.h"
#include "sched/step.h"

namespace skein {

// Predicts the time from a request's first step to its first token, when that step is planned: of
// the step as it is, with its other prompts and its decodes, and of further steps with the rest of
// the prompt beside the same decodes. It does not know of requests that will arrive.
//
// The cost model's formula misses steps of some sizes more than others. So the predictor learns
// what is left, while the server runs: for each kind of step the logarithm of measured over
// predicted time, at sizes of 1, 2, 4, ... tokens, and between two of them in proportion. No policy
// asks it: its predictions need not grow with the work. Not thread-safe. Allocates nothing.
class TtftPredictor {
 public:
  // `cost` outlives the predictor.
  explicit TtftPredictor(const CostModel* cost) : cost_(cost) {}

  // Sets RequestRecord::predicted_us of the requests whose first step this is. REQUIRES: step.work
  // is set.
  void NotePlanned(const Step& step) const;
  // The step took `us`.
  void Observe(const Step& step, double us);

  double PredictUs(const StepWork& work, StepKind kind) const;
  void Observe(const StepWork& work, StepKind kind, double us);

 private:
  static constexpr int kNumSizes = 20;

  // The part that the formula misses at one size.
  struct Residual {
    double log_mean = 0;
    double weight = 0;  // of measurements; at most kMostWeight
  };
  // The sizes around a number of tokens, and the share of the second one.
  struct Place {
    int size = 0;
    double share = 0;
  };

  static Place PlaceOf(double num_tokens);
  double PredictPromptUs(const Step& step, const StepRow& row) const;

  const CostModel* const cost_;
  std::array<std::array<Residual, kNumSizes>, 3> residuals_{};  // by StepKind
};

}  // namespace skein
