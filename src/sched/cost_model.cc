#include "sched/cost_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "base/check.h"

namespace skein {
namespace {

constexpr int kNumTerms = 4;
using Terms = std::array<double, kNumTerms>;

// The weight of a new measurement in the drift, and the number of measurements before the drift
// counts.
constexpr double kObservationWeight = 1.0 / 16;
constexpr int32_t kMinObservations = 16;
// The bound on the log ratio of a single measurement: a delayed thread says nothing about the cost.
constexpr double kMaxLogRatio = 1.0;

Terms TermsOf(const StepWork& work) { return {1, work.num_tokens, work.num_pairs, work.num_rows}; }

// The sums of a least-squares fit. Each sample is scaled so that its time is 1.
struct Squares {
  std::array<Terms, kNumTerms> products{};
  Terms targets{};
};

// Solves for the terms in `subset`, a bit for each; the other terms are 0. Returns nullopt if the
// terms are dependent or one is negative.
std::optional<Terms> Solve(const Squares& squares, uint32_t subset) {
  std::array<int, kNumTerms> index{};
  int n = 0;
  for (int i = 0; i < kNumTerms; ++i) {
    if ((subset >> i & 1) != 0) index[n++] = i;
  }
  std::array<std::array<double, kNumTerms + 1>, kNumTerms> rows{};
  Terms scale{};  // terms differ by many orders of magnitude
  for (int i = 0; i < n; ++i) {
    scale[i] = std::sqrt(squares.products[index[i]][index[i]]);
    if (scale[i] == 0) return std::nullopt;
  }
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      rows[i][j] = squares.products[index[i]][index[j]] / (scale[i] * scale[j]);
    }
    rows[i][n] = squares.targets[index[i]] / scale[i];
  }
  for (int pivot = 0; pivot < n; ++pivot) {
    const auto best = std::max_element(
        rows.begin() + pivot, rows.begin() + n,
        [&](const auto& a, const auto& b) { return std::abs(a[pivot]) < std::abs(b[pivot]); });
    std::swap(rows[pivot], *best);
    if (std::abs(rows[pivot][pivot]) < 1e-9) return std::nullopt;
    for (int i = 0; i < n; ++i) {
      if (i == pivot) continue;
      const double factor = rows[i][pivot] / rows[pivot][pivot];
      for (int j = pivot; j <= n; ++j) rows[i][j] -= factor * rows[pivot][j];
    }
  }
  Terms solution{};
  for (int i = 0; i < n; ++i) {
    const double value = rows[i][n] / rows[i][i];
    if (value < 0) return std::nullopt;
    solution[index[i]] = value / scale[i];
  }
  return solution;
}

double SquaredError(std::span<const CostSample> samples, const Terms& solution) {
  double sum = 0;
  for (const CostSample& sample : samples) {
    const Terms terms = TermsOf(sample.work);
    double predicted = 0;
    for (int i = 0; i < kNumTerms; ++i) predicted += solution[i] * terms[i];
    sum += (predicted / sample.us - 1) * (predicted / sample.us - 1);
  }
  return sum;
}

}  // namespace

StepWork& StepWork::operator+=(const StepWork& other) {
  num_tokens += other.num_tokens;
  num_pairs += other.num_pairs;
  num_rows += other.num_rows;
  return *this;
}

StepWork WorkOf(int64_t new_tokens, int64_t cached_tokens) {
  const auto count = static_cast<double>(new_tokens);
  // The i-th new token attends to cached_tokens + i + 1 tokens.
  return {count, count * (static_cast<double>(cached_tokens) + (count + 1) / 2), 1};
}

StepWork WorkOf(const StepPlan& plan) {
  StepWork work;
  const auto add = [&work](const std::vector<PlanRow>& rows) {
    for (const PlanRow& row : rows) work += WorkOf(std::ssize(row.tokens), row.begin);
  };
  if (const auto* oneshot = std::get_if<OneShotPlan>(&plan)) add(oneshot->rows);
  if (const auto* decode = std::get_if<DecodePlan>(&plan)) add(decode->rows);
  if (const auto* mixed = std::get_if<MixedPlan>(&plan)) {
    add(mixed->prefills);
    add(mixed->decodes);
  }
  return work;
}

double PredictUs(const CostFit& fit, const StepWork& work) {
  return fit.step_us + fit.token_us * work.num_tokens + fit.pair_us * work.num_pairs +
         fit.row_us * work.num_rows;
}

CostFit FitCosts(std::span<const CostSample> samples) {
  if (samples.empty()) return {};
  Squares squares;
  for (const CostSample& sample : samples) {
    SKEIN_CHECK(sample.us > 0);
    Terms terms = TermsOf(sample.work);
    for (double& term : terms) term /= sample.us;
    for (int i = 0; i < kNumTerms; ++i) {
      for (int j = 0; j < kNumTerms; ++j) squares.products[i][j] += terms[i] * terms[j];
      squares.targets[i] += terms[i];
    }
  }
  // There are only four terms, so every subset of non-zero terms is tried.
  Terms best{};
  double best_error = std::numeric_limits<double>::infinity();
  for (uint32_t subset = 1; subset < (1u << kNumTerms); ++subset) {
    const std::optional<Terms> solution = Solve(squares, subset);
    if (!solution) continue;
    const double error = SquaredError(samples, *solution);
    if (error >= best_error) continue;
    best = *solution;
    best_error = error;
  }
  return {.step_us = best[0], .token_us = best[1], .pair_us = best[2], .row_us = best[3]};
}

int64_t SaturationTokens(const CostFit& fit) {
  constexpr double kFixedShare = 0.1;
  constexpr double kMost = 1 << 30;
  if (fit.token_us <= 0) return 0;
  return static_cast<int64_t>(
      std::min(kMost, fit.step_us / fit.token_us * (1 - kFixedShare) / kFixedShare));
}

void CostModel::Ratio::Observe(double log_ratio) {
  // At first, the mean is a plain one, so that the first measurements weigh no more than later
  // ones.
  const double weight = std::max(kObservationWeight, 1.0 / ++num_observed);
  log_mean += weight * (log_ratio - log_mean);
}

void CostModel::Adopt(const CostFit& fit) {
  fit_ = fit;
  ++version_;
  drift_ = {};
  kinds_ = {};
}

double CostModel::LogRatio(const StepWork& work, double us) const {
  return std::clamp(std::log(us / PredictUs(work)), -kMaxLogRatio, kMaxLogRatio);
}

double CostModel::PredictUs(const StepWork& work, StepKind kind) const {
  const Ratio& own = kinds_[static_cast<size_t>(kind)];
  const bool borrows = kind == StepKind::kMixed && own.num_observed == 0;
  const Ratio& ratio = borrows ? kinds_[static_cast<size_t>(StepKind::kPrefill)] : own;
  return PredictUs(work) * std::exp(ratio.log_mean);
}

void CostModel::ObserveKind(StepKind kind, const StepWork& work, double us) {
  if (!known() || us <= 0) return;
  kinds_[static_cast<size_t>(kind)].Observe(LogRatio(work, us));
}

double CostModel::drift() const { return std::exp(drift_.log_mean); }

bool CostModel::Observe(const StepWork& work, double us) {
  if (!known() || us <= 0) return false;
  drift_.Observe(LogRatio(work, us));
  if (drift_.num_observed < kMinObservations ||
      std::abs(drift_.log_mean) <= std::log1p(kMaxDrift)) {
    return false;
  }
  const double factor = drift();
  fit_ = {.step_us = fit_.step_us * factor,
          .token_us = fit_.token_us * factor,
          .pair_us = fit_.pair_us * factor,
          .row_us = fit_.row_us * factor};
  for (Ratio& kind : kinds_) {
    if (kind.num_observed > 0) kind.log_mean -= drift_.log_mean;
  }
  ++version_;
  drift_ = {};
  return true;
}

}  // namespace skein
