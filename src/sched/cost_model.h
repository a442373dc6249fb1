#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "sched/plan.h"
#include "skein/config.h"

namespace skein {

// What the time of a step depends on; adds up over its rows.
struct StepWork {
  double num_tokens = 0;  // computed
  double num_pairs = 0;   // of a token computed and a token it attends to
  double num_rows = 0;

  StepWork& operator+=(const StepWork& other);
};

// Of one row that computes `new_tokens` tokens behind `cached_tokens`.
StepWork WorkOf(int64_t new_tokens, int64_t cached_tokens);
StepWork WorkOf(const StepPlan& plan);

double PredictUs(const CostFit& fit, const StepWork& work);

// From so many tokens on a step is hardly faster by the token: what it takes whatever is in it
// (such as reading the weights) is a tenth of its time. 0 where the fit is not known.
int64_t SaturationTokens(const CostFit& fit);

// Steps that the model's formula may miss in different ways.
enum class StepKind { kPrefill, kMixed, kDecode };

struct CostSample {
  StepWork work;
  double us = 0;
};

// The fit with the least sum of squared relative errors whose coefficients are not negative; of no
// samples, one that is not known. REQUIRES: every time is above 0.
CostFit FitCosts(std::span<const CostSample> samples);

// How long a piece of work takes, in versions: whoever orders by predictions orders anew only when
// the version changes. Measurements correct the fit in one factor, since what changes while a
// program runs is the machine's speed; a new version begins when that factor has drifted by more
// than kMaxDrift. A fit of zeros predicts nothing and stays so. Not thread-safe.
class CostModel {
 public:
  static constexpr double kMaxDrift = 0.05;

  explicit CostModel(const CostFit& fit) : fit_(fit) {}

  const CostFit& fit() const { return fit_; }
  int64_t version() const { return version_; }
  bool known() const { return fit_ != CostFit{}; }
  double PredictUs(const StepWork& work) const { return skein::PredictUs(fit_, work); }
  // Corrected by what steps of this kind took; where none was measured, a mixed one by what
  // prefills took, which it is the most like, and else as above.
  double PredictUs(const StepWork& work, StepKind kind) const;
  // How far measurements have moved from this version: the factor on its times.
  double drift() const;

  // Takes a measurement of a step. True if it began a new version. REQUIRES: the work is not empty.
  bool Observe(const StepWork& work, double us);
  // Takes a measurement of a step of this kind, for predictions of that kind alone.
  void ObserveKind(StepKind kind, const StepWork& work, double us);

 private:
  // Exponentially weighted mean of log(measured / predicted), against this version.
  struct Ratio {
    double log_mean = 0;
    int32_t num_observed = 0;

    void Observe(double log_ratio);
  };

  // Of one measurement, clamped.
  double LogRatio(const StepWork& work, double us) const;

  CostFit fit_;
  int64_t version_ = 0;
  Ratio drift_;
  std::array<Ratio, 3> kinds_;  // by StepKind
};

}  // namespace skein
