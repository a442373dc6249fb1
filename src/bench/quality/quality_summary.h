#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/quality/quality.h"
#include "bench/quality/quality_items.h"
#include "bench/quality/quality_metrics.h"
#include "skein/decision_method.h"

namespace skein {

// How good the answers of one method are about some items. "Calibrated" figures are of
// probabilities with the temperature and, of predicates and relevance, the offset that were fitted
// on the other half of the items.
struct QualityFigures {
  int64_t items = 0;    // that were answered
  int64_t refused = 0;  // in no other figure
  // Share of right answers; of relevance, of queries whose first document is relevant.
  double accuracy = 0;
  double chance_accuracy = 0;
  std::optional<double> accuracy_calibrated;  // of predicates: an offset moves the border
  std::optional<double> auc;                  // of relevance: over all documents of all queries
  // Relevance judges each document alone. Unset if scores are no probabilities.
  std::optional<double> brier, brier_calibrated;
  std::optional<double> calibration_error, calibration_error_calibrated;
  std::optional<double> cross_entropy, cross_entropy_calibrated;
  std::optional<double> level_error, level_error_calibrated;  // of scores, in levels
  std::optional<double> flips;                                // of choices
  std::optional<double> mrr, chance_mrr;                      // of relevance
  std::optional<double> label_mass;                           // mean
  double input_tokens = 0;                                    // mean
};

// One method and one type of question.
struct QualitySummary {
  // Figures of all items of the type; accuracy, its chance, AUC and MRR are means over its tasks.
  QualityFigures figures;
  std::vector<std::pair<std::string, QualityFigures>> tasks;
  PlattScale calibration;                       // fitted on all items
  std::array<PlattScale, 2> half_calibrations;  // fitted on one half each
  std::vector<ReliabilityBin> bins, bins_calibrated;
  std::vector<std::pair<std::string, Confusion>> confusions;  // by task; none of relevance
  // By kAccuracyTargets, of the probabilities as they are served: at `calibration`, of a decision
  // model as they are. None of relevance and of scores that are no probabilities.
  std::vector<AnswerThreshold> thresholds;
};
inline constexpr double kAccuracyTargets[] = {0.8, 0.9, 0.95, 0.99};

QualitySummary Summarize(const std::vector<QualityItem>& items, const QualityRun& run);

// The best of the runs of one type, by their summaries: of those with the fewest refusals and a
// mean accuracy (predicates: calibrated; relevance: MRR) within kChoiceMargin of the best, the one
// of least calibrated cross-entropy, then of fewest tokens. Methods without probabilities count as
// of the largest. nullopt: none has answers.
inline constexpr double kChoiceMargin = 0.01;
std::optional<size_t> ChooseBest(const std::vector<QualityRun>& runs,
                                 const std::vector<QualitySummary>& summaries, QualityType type);

// The profile with `run`'s type asked by its method, calibrated so. A model's own way of ranking
// is not said in a profile: it stays as it is.
DecisionProfile WithMethod(DecisionProfile profile, const QualityRun& run,
                           const PlattScale& calibration);

}  // namespace skein
