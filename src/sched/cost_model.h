#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "sched/plan.h"
#include "skein/config.h"

namespace skein {

// The quantities that a step's time depends on. They add up over the step's rows.
struct StepWork {
  double num_tokens = 0;  // computed tokens
  double num_pairs = 0;   // pairs of a computed token and a token it attends to
  double num_rows = 0;

  StepWork& operator+=(const StepWork& other);
};

// The work of one row that computes `new_tokens` tokens behind `cached_tokens`.
StepWork WorkOf(int64_t new_tokens, int64_t cached_tokens);
StepWork WorkOf(const StepPlan& plan);

double PredictUs(const CostFit& fit, const StepWork& work);

// The number of tokens from which on a larger step hardly costs less per token. At this number, the
// constant cost of a step, such as reading the weights, is a tenth of the step's time. 0 if the fit
// is not known.
int64_t SaturationTokens(const CostFit& fit);

// The kinds of steps, for each of which the model's formula may have a different error.
enum class StepKind { kPrefill, kMixed, kDecode };

struct CostSample {
  StepWork work;
  double us = 0;
};

// Finds the fit with non-negative coefficients that has the least sum of squared relative errors.
// Without samples, the fit is not known. REQUIRES: every time is above 0.
CostFit FitCosts(std::span<const CostSample> samples);

// Predicts the time of a piece of work. Predictions change in versions: an order that uses
// predictions computes new ranks only when the version changes. Measurements correct the fit by one
// factor, since only the machine's speed changes while a program runs. A new version begins when
// that factor has drifted by more than kMaxDrift. A fit of zeros predicts nothing and is never
// corrected. Not thread-safe.
class CostModel {
 public:
  static constexpr double kMaxDrift = 0.05;

  explicit CostModel(const CostFit& fit) : fit_(fit) {}

  const CostFit& fit() const { return fit_; }
  int64_t version() const { return version_; }
  bool known() const { return fit_ != CostFit{}; }
  // Begins a new version with this fit. Measurements so far are forgotten.
  void Adopt(const CostFit& fit);
  double PredictUs(const StepWork& work) const { return skein::PredictUs(fit_, work); }
  // The prediction, corrected by the measured times of this kind of step. A mixed step without
  // measurements is corrected by measurements of prefills, the most similar kind. Without these
  // measurements either, the result is that of PredictUs above.
  double PredictUs(const StepWork& work, StepKind kind) const;
  // The drift of the measurements from this version, as a factor of its times.
  double drift() const;

  // Takes a measurement of a step. Returns true if the measurement began a new version. REQUIRES:
  // the work is not empty.
  bool Observe(const StepWork& work, double us);
  // Takes a measurement of a step of this kind, which corrects only predictions of the same kind.
  void ObserveKind(StepKind kind, const StepWork& work, double us);

 private:
  // The exponentially weighted mean of log(measured / predicted), relative to this version.
  struct Ratio {
    double log_mean = 0;
    int32_t num_observed = 0;

    void Observe(double log_ratio);
  };

  // The log ratio of one measurement, clamped.
  double LogRatio(const StepWork& work, double us) const;

  CostFit fit_;
  int64_t version_ = 0;
  Ratio drift_;
  std::array<Ratio, 3> kinds_;  // by StepKind
};

}  // namespace skein
