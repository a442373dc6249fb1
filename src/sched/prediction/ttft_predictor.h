#pragma once

#include <array>
#include <cstdint>

#include "sched/cost_model.h"
#include "sched/step.h"

namespace skein {

// Predicts the time from a request's first step to its first token, when that step is planned. It
// adds the time of that step, with its other prompts and its decodes, and the times of further
// steps, with the rest of the prompt and the same decodes. Requests that will arrive are not known.
//
// The error of the cost model's formula depends on the size of the step. So the predictor learns
// this error while the server runs. For each kind of step, it learns the logarithm of measured over
// predicted time at sizes of 1, 2, 4, ... tokens, and interpolates between two sizes. No policy
// uses the predictor, since its predictions need not grow with the work. Not thread-safe. Allocates
// nothing.
class TtftPredictor {
 public:
  // `cost` outlives the predictor.
  explicit TtftPredictor(const CostModel* cost) : cost_(cost) {}

  // Sets RequestRecord::predicted_us of the requests that begin with this step. REQUIRES: step.work
  // is set.
  void NotePlanned(const Step& step) const;
  // The step took `us`.
  void Observe(const Step& step, double us);

  // Forgets all errors: the cost model has another fit.
  void Forget() { residuals_ = {}; }

  double PredictUs(const StepWork& work, StepKind kind) const;
  void Observe(const StepWork& work, StepKind kind, double us);

 private:
  static constexpr int kNumSizes = 20;

  // The error of the formula at one size.
  struct Residual {
    double log_mean = 0;
    double weight = 0;  // sum over measurements, at most kMostWeight
  };
  // The two sizes around a number of tokens: the smaller one, and the share of the larger one.
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
