#include "bench/quality/quality_summary.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>

namespace skein {
namespace {

// The items as they were answered, and as calibrated by a fit to the other half. Both are
// [judgements].
struct Judged {
  std::vector<JudgedItem> raw;
  std::vector<JudgedItem> calibrated;
  std::vector<int> halves;
};

void AddJudged(const QualityItem& item, const QualityAnswer& answer, Judged* judged) {
  if (item.type != QualityType::kRelevance) {
    judged->raw.push_back({answer.probabilities, item.labels, item.answer});
    judged->halves.push_back(item.half);
    return;
  }
  for (size_t i = 0; i < item.documents.size(); ++i) {
    const double p = answer.probabilities[i];
    const bool relevant = std::ranges::find(item.relevant, i) != item.relevant.end();
    judged->raw.push_back({{p, 1 - p}, {"relevant", "other"}, relevant ? size_t{0} : size_t{1}});
    judged->halves.push_back(item.half);
  }
}

// The answered items of a run; if `task` is not null, only those of this task.
std::vector<size_t> Answered(const std::vector<QualityItem>& items, const QualityRun& run,
                             const std::string* task) {
  std::vector<size_t> places;
  for (size_t i = 0; i < run.items.size(); ++i) {
    if (!run.answers[i].refusal.empty()) continue;
    if (task == nullptr || items[run.items[i]].task == *task) places.push_back(i);
  }
  return places;
}

Judged JudgedOf(const std::vector<QualityItem>& items, const QualityRun& run,
                const std::vector<size_t>& places) {
  Judged judged;
  for (const size_t i : places) AddJudged(items[run.items[i]], run.answers[i], &judged);
  return judged;
}

// Whether the type's probabilities are those of yes, which have an offset.
bool HasOffset(QualityType type) {
  return type == QualityType::kPredicate || type == QualityType::kRelevance;
}

PlattScale FitHalf(const Judged& judged, QualityType type, int half) {
  std::vector<JudgedItem> own;
  for (size_t i = 0; i < judged.raw.size(); ++i) {
    if (judged.halves[i] == half) own.push_back(judged.raw[i]);
  }
  return FitPlattScale(own, HasOffset(type));
}

void Calibrate(const std::array<PlattScale, 2>& half_calibrations, Judged* judged) {
  judged->calibrated = judged->raw;
  for (size_t i = 0; i < judged->raw.size(); ++i) {
    std::vector<double>& p = judged->calibrated[i].probabilities;
    const auto other = static_cast<size_t>(1 - judged->halves[i]);
    p = Calibrated(p, half_calibrations[other]);
  }
}

std::optional<double> MeanOf(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void AddRanking(const std::vector<QualityItem>& items, const QualityRun& run,
                const std::vector<size_t>& places, QualityFigures* figures) {
  std::vector<double> first, chance_first, reciprocal, chance;
  for (const size_t i : places) {
    const QualityItem& item = items[run.items[i]];
    const std::vector<double>& scores = run.answers[i].probabilities;
    std::vector<size_t> ranking(scores.size());
    std::iota(ranking.begin(), ranking.end(), size_t{0});
    std::stable_sort(ranking.begin(), ranking.end(),
                     [&](size_t a, size_t b) { return scores[a] > scores[b]; });
    reciprocal.push_back(ReciprocalRankOf(ranking, item.relevant));
    chance.push_back(ChanceReciprocalRank(scores.size(), item.relevant.size()));
    first.push_back(reciprocal.back() == 1 ? 1 : 0);
    chance_first.push_back(static_cast<double>(item.relevant.size()) /
                           static_cast<double>(scores.size()));
  }
  figures->accuracy = MeanOf(first).value_or(0);
  figures->chance_accuracy = MeanOf(chance_first).value_or(0);
  figures->mrr = MeanOf(reciprocal);
  figures->chance_mrr = MeanOf(chance);
}

void AddProbabilityFigures(const Judged& judged, QualityFigures* figures) {
  figures->brier = BrierOf(judged.raw);
  figures->brier_calibrated = BrierOf(judged.calibrated);
  figures->calibration_error = CalibrationErrorOf(judged.raw);
  figures->calibration_error_calibrated = CalibrationErrorOf(judged.calibrated);
  figures->cross_entropy = CrossEntropyOf(judged.raw);
  figures->cross_entropy_calibrated = CrossEntropyOf(judged.calibrated);
}

QualityFigures FiguresOf(const std::vector<QualityItem>& items, const QualityRun& run,
                         const std::vector<size_t>& places,
                         const std::array<PlattScale, 2>& half_calibrations) {
  QualityFigures figures;
  figures.items = static_cast<int64_t>(places.size());
  if (places.empty()) return figures;
  Judged judged = JudgedOf(items, run, places);
  figures.auc = MeanAucOf(judged.raw);
  if (run.method.probabilities) {
    Calibrate(half_calibrations, &judged);
    AddProbabilityFigures(judged, &figures);
  }
  if (run.type == QualityType::kRelevance) {
    AddRanking(items, run, places, &figures);
  } else {
    figures.accuracy = AccuracyOf(judged.raw);
    if (HasOffset(run.type)) figures.accuracy_calibrated = AccuracyOf(judged.calibrated);
    figures.chance_accuracy = ChanceAccuracyOf(judged.raw);
  }
  if (run.type == QualityType::kScore) {
    figures.level_error = MeanAbsoluteErrorOf(judged.raw);
    figures.level_error_calibrated = MeanAbsoluteErrorOf(judged.calibrated);
  }
  std::vector<double> flips, masses, tokens;
  for (const size_t i : places) {
    const QualityAnswer& answer = run.answers[i];
    if (answer.flipped) flips.push_back(*answer.flipped ? 1 : 0);
    if (answer.label_mass) masses.push_back(*answer.label_mass);
    tokens.push_back(static_cast<double>(answer.input_tokens));
  }
  figures.flips = MeanOf(flips);
  figures.label_mass = MeanOf(masses);
  figures.input_tokens = MeanOf(tokens).value_or(0);
  return figures;
}

int64_t RefusedOf(const std::vector<QualityItem>& items, const QualityRun& run,
                  const std::string* task) {
  int64_t refused = 0;
  for (size_t i = 0; i < run.items.size(); ++i) {
    const bool counted = task == nullptr || items[run.items[i]].task == *task;
    if (counted && !run.answers[i].refusal.empty()) ++refused;
  }
  return refused;
}

// Sets accuracy, its chance, AUC and MRR of the type to means in which each task counts the same.
void AverageOverTasks(QualitySummary* summary) {
  std::vector<double> accuracy, calibrated, chance, auc, mrr, chance_mrr;
  for (const auto& [task, figures] : summary->tasks) {
    if (figures.items == 0) continue;
    accuracy.push_back(figures.accuracy);
    if (figures.accuracy_calibrated) calibrated.push_back(*figures.accuracy_calibrated);
    chance.push_back(figures.chance_accuracy);
    if (figures.auc) auc.push_back(*figures.auc);
    if (figures.mrr) mrr.push_back(*figures.mrr);
    if (figures.chance_mrr) chance_mrr.push_back(*figures.chance_mrr);
  }
  summary->figures.accuracy = MeanOf(accuracy).value_or(0);
  summary->figures.accuracy_calibrated = MeanOf(calibrated);
  summary->figures.chance_accuracy = MeanOf(chance).value_or(0);
  summary->figures.auc = MeanOf(auc);
  summary->figures.mrr = MeanOf(mrr);
  summary->figures.chance_mrr = MeanOf(chance_mrr);
}

double ValueOf(const QualityFigures& figures) {
  return figures.mrr.value_or(figures.accuracy_calibrated.value_or(figures.accuracy));
}

// The judgements as the server gives them with this calibration. A decision model has its own
// temperatures.
std::vector<JudgedItem> ServedOf(const std::vector<QualityItem>& items, const QualityRun& run,
                                 const std::vector<size_t>& places, const PlattScale& calibration) {
  std::vector<JudgedItem> judged = JudgedOf(items, run, places).raw;
  if (run.method.own) return judged;
  for (JudgedItem& item : judged) item.probabilities = Calibrated(item.probabilities, calibration);
  return judged;
}

void AddServed(const std::vector<QualityItem>& items, const QualityRun& run,
               QualitySummary* summary) {
  if (run.type == QualityType::kRelevance || !run.method.probabilities) return;
  const std::vector<JudgedItem> all =
      ServedOf(items, run, Answered(items, run, nullptr), summary->calibration);
  for (const double target : kAccuracyTargets) {
    summary->thresholds.push_back(ThresholdFor(all, target));
  }
  for (const auto& [task, figures] : summary->tasks) {
    const std::vector<size_t> places = Answered(items, run, &task);
    summary->confusions.emplace_back(
        task, ConfusionOf(ServedOf(items, run, places, summary->calibration)));
  }
}

}  // namespace

QualitySummary Summarize(const std::vector<QualityItem>& items, const QualityRun& run) {
  QualitySummary summary;
  const std::vector<size_t> places = Answered(items, run, nullptr);
  Judged judged = JudgedOf(items, run, places);
  if (run.method.probabilities) {
    summary.calibration = FitPlattScale(judged.raw, HasOffset(run.type));
    summary.half_calibrations = {FitHalf(judged, run.type, 0), FitHalf(judged, run.type, 1)};
    Calibrate(summary.half_calibrations, &judged);
    summary.bins = ReliabilityOf(judged.raw);
    summary.bins_calibrated = ReliabilityOf(judged.calibrated);
  }
  summary.figures = FiguresOf(items, run, places, summary.half_calibrations);
  summary.figures.refused = RefusedOf(items, run, nullptr);
  for (const size_t index : run.items) {
    const std::string& task = items[index].task;
    const auto known = [&](const auto& entry) { return entry.first == task; };
    if (std::ranges::any_of(summary.tasks, known)) continue;
    summary.tasks.emplace_back(
        task, FiguresOf(items, run, Answered(items, run, &task), summary.half_calibrations));
    summary.tasks.back().second.refused = RefusedOf(items, run, &task);
  }
  AverageOverTasks(&summary);
  AddServed(items, run, &summary);
  return summary;
}

std::optional<size_t> ChooseBest(const std::vector<QualityRun>& runs,
                                 const std::vector<QualitySummary>& summaries, QualityType type) {
  std::vector<size_t> candidates;
  int64_t fewest_refused = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].type != type || summaries[i].figures.items == 0) continue;
    candidates.push_back(i);
    fewest_refused = std::min(fewest_refused, summaries[i].figures.refused);
  }
  std::erase_if(candidates,
                [&](size_t i) { return summaries[i].figures.refused > fewest_refused; });
  double best = 0;
  for (const size_t i : candidates) best = std::max(best, ValueOf(summaries[i].figures));
  std::erase_if(candidates,
                [&](size_t i) { return ValueOf(summaries[i].figures) < best - kChoiceMargin; });
  if (candidates.empty()) return std::nullopt;
  return *std::ranges::min_element(candidates, {}, [&](size_t i) {
    const QualityFigures& figures = summaries[i].figures;
    const double none = std::numeric_limits<double>::infinity();
    return std::tuple(figures.cross_entropy_calibrated.value_or(none), figures.input_tokens, i);
  });
}

DecisionProfile WithMethod(DecisionProfile profile, const QualityRun& run,
                           const PlattScale& calibration) {
  if (run.method.own) return profile;
  DecisionMethod method = run.method.method;
  method.temperature = calibration.temperature;
  method.offset = calibration.offset;
  switch (run.type) {
    case QualityType::kPredicate:
      profile.predicate = method;
      break;
    case QualityType::kChoice:
      profile.choice = method;
      break;
    case QualityType::kScore:
      profile.score = method;
      break;
    case QualityType::kRelevance:
      profile.relevance = method;
      break;
  }
  return profile;
}

}  // namespace skein
