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

// How good the answers of one method to some items are. "Calibrated" figures use a temperature and,
// for predicates and relevance, an offset that were fitted to the other half of the items.
struct QualityFigures {
  int64_t items = 0;    // answered items
  int64_t refused = 0;  // refused items, which count in no other figure
  // The share of right answers; for relevance, of queries whose first document is relevant.
  double accuracy = 0;
  double chance_accuracy = 0;
  std::optional<double> accuracy_calibrated;  // only predicates: an offset changes the answers
  std::optional<double> auc;                  // for relevance over all documents of all queries
  // For relevance, each document is judged alone. Unset if scores are not probabilities.
  std::optional<double> brier, brier_calibrated;
  std::optional<double> calibration_error, calibration_error_calibrated;
  std::optional<double> cross_entropy, cross_entropy_calibrated;
  std::optional<double> level_error, level_error_calibrated;  // only scores, in levels
  std::optional<double> flips;                                // only choices
  std::optional<double> mrr, chance_mrr;                      // only relevance
  std::optional<double> label_mass;                           // mean
  double input_tokens = 0;                                    // mean
};

// The results of one method for one type of question.
struct QualitySummary {
  // Figures of all items of the type. Accuracy, its chance, AUC and MRR are means over its tasks.
  QualityFigures figures;
  std::vector<std::pair<std::string, QualityFigures>> tasks;
  PlattScale calibration;                       // fitted on all items
  std::array<PlattScale, 2> half_calibrations;  // each fitted on one half
  std::vector<ReliabilityBin> bins, bins_calibrated;
  std::vector<std::pair<std::string, Confusion>> confusions;  // by task; empty for relevance
  // Thresholds for kAccuracyTargets, for the probabilities that the server gives: with
  // `calibration`; those of a decision model unchanged. Empty for relevance and for scores that are
  // not probabilities.
  std::vector<AnswerThreshold> thresholds;
};
inline constexpr double kAccuracyTargets[] = {0.8, 0.9, 0.95, 0.99};

QualitySummary Summarize(const std::vector<QualityItem>& items, const QualityRun& run);

// The best run of one type, by the runs' summaries. Only the runs with the fewest refusals and with
// a mean accuracy (predicates: calibrated; relevance: MRR) within kChoiceMargin of the best take
// part. Among them, the least calibrated cross-entropy decides, then the fewest tokens. Methods
// without probabilities count as if they had the largest cross-entropy. nullopt if no run has
// answers.
inline constexpr double kChoiceMargin = 0.01;
std::optional<size_t> ChooseBest(const std::vector<QualityRun>& runs,
                                 const std::vector<QualitySummary>& summaries, QualityType type);

// The profile in which questions of `run`'s type are asked with its method and this calibration. A
// profile cannot contain a model's own way of ranking, and then stays unchanged.
DecisionProfile WithMethod(DecisionProfile profile, const QualityRun& run,
                           const PlattScale& calibration);

}  // namespace skein
