#include "sched/prediction/ttft_predictor.h"

#include <algorithm>
#include <cmath>

namespace skein {
namespace {

// No measurement weighs less than 1 / kMostWeight, so older measurements fade.
constexpr double kMostWeight = 16;
// The formula alone weighs as much as this many measurements.
constexpr double kPriorWeight = 0.5;
constexpr double kMaxResidual = 1.0;  // a delayed thread says nothing about the cost
constexpr int kMostSteps = 1024;      // the most steps whose times a prediction adds up

StepKind KindOf(const Step& step) {
  if (step.prefills.empty()) return StepKind::kDecode;
  return step.decodes.empty() ? StepKind::kPrefill : StepKind::kMixed;
}

}  // namespace

TtftPredictor::Place TtftPredictor::PlaceOf(double num_tokens) {
  const double size = std::clamp(std::log2(std::max(1.0, num_tokens)), 0.0, kNumSizes - 1.0);
  const int below = std::min(static_cast<int>(size), kNumSizes - 2);
  return {below, size - below};
}

double TtftPredictor::PredictUs(const StepWork& work, StepKind kind) const {
  const Place place = PlaceOf(work.num_tokens);
  const auto& sizes = residuals_[static_cast<size_t>(kind)];
  const Residual &below = sizes[place.size], &above = sizes[place.size + 1];
  const double below_weight = (1 - place.share) * below.weight;
  const double above_weight = place.share * above.weight;
  const double log_mean = (below_weight * below.log_mean + above_weight * above.log_mean) /
                          (below_weight + above_weight + kPriorWeight);
  return cost_->PredictUs(work, kind) * std::exp(log_mean);
}

void TtftPredictor::Observe(const StepWork& work, StepKind kind, double us) {
  if (!cost_->known() || us <= 0) return;
  const double left = std::log(us / cost_->PredictUs(work, kind));
  const double residual = std::clamp(left, -kMaxResidual, kMaxResidual);
  const Place place = PlaceOf(work.num_tokens);
  auto& sizes = residuals_[static_cast<size_t>(kind)];
  for (const auto& [size, share] :
       {Place{place.size, 1 - place.share}, {place.size + 1, place.share}}) {
    Residual& one = sizes[size];
    if (share <= 0) continue;
    one.weight = std::min(kMostWeight, one.weight + share);
    one.log_mean += share / one.weight * (residual - one.log_mean);
  }
}

void TtftPredictor::Observe(const Step& step, double us) { Observe(step.work, KindOf(step), us); }

double TtftPredictor::PredictPromptUs(const Step& step, const StepRow& row) const {
  const StepKind kind = KindOf(step);
  double sum_us = PredictUs(step.work, kind);
  int64_t begin = int64_t{row.begin()} + row.num_tokens;
  const auto end = static_cast<int64_t>(row.tokens().size());
  if (begin >= end) return sum_us;
  StepWork decodes;
  for (const StepRow& decode : step.decodes) decodes += WorkOf(1, decode.begin());
  const int64_t chunk = std::max(step.NumPrefillTokens(), (end - begin) / kMostSteps + 1);
  while (begin < end) {
    const int64_t num_tokens = std::min(chunk, end - begin);
    StepWork work = WorkOf(num_tokens, begin);
    work += decodes;
    sum_us += PredictUs(work, kind);
    begin += num_tokens;
  }
  return sum_us;
}

void TtftPredictor::NotePlanned(const Step& step) const {
  for (const StepRow& row : step.prefills) {
    if (row.prefix != nullptr) continue;
    RequestRecord* request = row.sequence->request;
    if (request->first_iteration != step.id) continue;
    request->predicted_us = PredictPromptUs(step, row);
  }
}

}  // namespace skein
