#include "bench/quality/quality_metrics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace skein {
namespace {

constexpr double kLeastProbability = 1e-300;

size_t ModeOf(const JudgedItem& item) {
  return static_cast<size_t>(std::ranges::max_element(item.probabilities) -
                             item.probabilities.begin());
}

double MeanOf(std::span<const JudgedItem> items,
              const std::function<double(const JudgedItem&)>& figure) {
  double sum = 0;
  for (const JudgedItem& item : items) {
    SKEIN_CHECK(item.answer < item.probabilities.size());
    sum += figure(item);
  }
  return items.empty() ? 0 : sum / static_cast<double>(items.size());
}

double LogOf(double probability) { return std::log(std::max(probability, kLeastProbability)); }

// The scores of one label, and whether the label is right for the item of each score.
struct LabelScores {
  std::vector<double> scores;
  std::vector<bool> positive;
};

}  // namespace

Confusion ConfusionOf(std::span<const JudgedItem> items) {
  std::map<std::string, size_t> places;
  for (const JudgedItem& item : items) {
    for (const std::string& label : item.labels) places.emplace(label, 0);
  }
  Confusion confusion;
  for (auto& [label, place] : places) {
    place = confusion.labels.size();
    confusion.labels.push_back(label);
  }
  confusion.counts.assign(places.size(), std::vector<int64_t>(places.size()));
  for (const JudgedItem& item : items) {
    ++confusion.counts[places.at(item.labels[item.answer])][places.at(item.labels[ModeOf(item)])];
  }
  return confusion;
}

AnswerThreshold ThresholdFor(std::span<const JudgedItem> items, double target) {
  // The highest probability, and whether its label is right.
  std::vector<std::pair<double, bool>> judged;
  for (const JudgedItem& item : items) {
    const size_t mode = ModeOf(item);
    judged.emplace_back(item.probabilities[mode], mode == item.answer);
  }
  std::ranges::sort(judged, std::greater());
  AnswerThreshold best = {.target = target};
  int64_t right = 0;
  for (size_t i = 0; i < judged.size(); ++i) {
    right += judged[i].second ? 1 : 0;
    // All items with the probability of the threshold are answered.
    if (i + 1 < judged.size() && judged[i + 1].first == judged[i].first) continue;
    const auto count = static_cast<double>(i + 1);
    const double accuracy = static_cast<double>(right) / count;
    if (accuracy < target) continue;
    best = {target, judged[i].first, count / static_cast<double>(judged.size()), accuracy};
  }
  return best;
}

double AccuracyOf(std::span<const JudgedItem> items) {
  return MeanOf(items, [](const JudgedItem& item) { return ModeOf(item) == item.answer ? 1 : 0; });
}

double ChanceAccuracyOf(std::span<const JudgedItem> items) {
  return MeanOf(items, [](const JudgedItem& item) {
    return 1 / static_cast<double>(item.probabilities.size());
  });
}

double BrierOf(std::span<const JudgedItem> items) {
  return MeanOf(items, [](const JudgedItem& item) {
    double sum = 0;
    for (size_t i = 0; i < item.probabilities.size(); ++i) {
      const double off = item.probabilities[i] - (i == item.answer ? 1 : 0);
      sum += off * off;
    }
    return sum;
  });
}

double CrossEntropyOf(std::span<const JudgedItem> items) {
  return MeanOf(items,
                [](const JudgedItem& item) { return -LogOf(item.probabilities[item.answer]); });
}

double MeanAbsoluteErrorOf(std::span<const JudgedItem> items) {
  return MeanOf(items, [](const JudgedItem& item) {
    double mean = 0;
    for (size_t i = 0; i < item.probabilities.size(); ++i) {
      mean += item.probabilities[i] * static_cast<double>(i);
    }
    return std::abs(mean - static_cast<double>(item.answer));
  });
}

std::optional<double> AucOf(std::span<const double> scores, const std::vector<bool>& positive) {
  SKEIN_CHECK(scores.size() == positive.size());
  const size_t num_positive = static_cast<size_t>(std::ranges::count(positive, true));
  const size_t num_negative = scores.size() - num_positive;
  if (num_positive == 0 || num_negative == 0) return std::nullopt;
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return scores[i]; });
  // Equal scores share their mean rank.
  double rank_sum = 0;
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    size_t positives = 0;
    while (end < order.size() && scores[order[end]] == scores[order[begin]]) {
      positives += positive[order[end++]] ? 1 : 0;
    }
    rank_sum += static_cast<double>(positives) * static_cast<double>(begin + 1 + end) / 2;
    begin = end;
  }
  const double least =
      static_cast<double>(num_positive) * static_cast<double>(num_positive + 1) / 2;
  return (rank_sum - least) /
         (static_cast<double>(num_positive) * static_cast<double>(num_negative));
}

std::optional<double> MeanAucOf(std::span<const JudgedItem> items) {
  std::map<std::string, LabelScores> labels;
  for (const JudgedItem& item : items) {
    for (size_t i = 0; i < item.labels.size(); ++i) {
      LabelScores& label = labels[item.labels[i]];
      label.scores.push_back(item.probabilities[i]);
      label.positive.push_back(i == item.answer);
    }
  }
  double sum = 0;
  int count = 0;
  for (const auto& [name, label] : labels) {
    const std::optional<double> auc = AucOf(label.scores, label.positive);
    if (!auc) continue;
    if (labels.size() == 2) return auc;
    sum += *auc;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

std::vector<ReliabilityBin> ReliabilityOf(std::span<const JudgedItem> items) {
  std::vector<ReliabilityBin> bins(kReliabilityBins);
  for (const JudgedItem& item : items) {
    const size_t mode = ModeOf(item);
    const double confidence = item.probabilities[mode];
    const int place = static_cast<int>(confidence * kReliabilityBins);
    ReliabilityBin& bin = bins[static_cast<size_t>(std::clamp(place, 0, kReliabilityBins - 1))];
    ++bin.count;
    bin.mean_confidence += confidence;
    bin.accuracy += mode == item.answer ? 1 : 0;
  }
  for (ReliabilityBin& bin : bins) {
    if (bin.count == 0) continue;
    bin.mean_confidence /= static_cast<double>(bin.count);
    bin.accuracy /= static_cast<double>(bin.count);
  }
  return bins;
}

double CalibrationErrorOf(std::span<const JudgedItem> items) {
  double sum = 0;
  for (const ReliabilityBin& bin : ReliabilityOf(items)) {
    sum += static_cast<double>(bin.count) * std::abs(bin.accuracy - bin.mean_confidence);
  }
  return items.empty() ? 0 : sum / static_cast<double>(items.size());
}

std::vector<double> Calibrated(std::span<const double> probabilities,
                               const PlattScale& calibration) {
  SKEIN_CHECK(calibration.temperature > 0 && !probabilities.empty());
  std::vector<double> changed;
  for (const double p : probabilities) changed.push_back(LogOf(p));
  changed[0] += calibration.offset;
  const double max = *std::ranges::max_element(changed);
  double sum = 0;
  for (double& p : changed) {
    p = std::exp((p - max) / calibration.temperature);
    sum += p;
  }
  for (double& p : changed) p /= sum;
  return changed;
}

namespace {

// The point in [low, high] at which a function with one valley is smallest.
double LeastOf(const std::function<double(double)>& loss, double low, double high,
               double tolerance) {
  const double golden = (std::sqrt(5.0) - 1) / 2;
  double left = high - golden * (high - low);
  double right = low + golden * (high - low);
  double loss_left = loss(left);
  double loss_right = loss(right);
  while (high - low > tolerance) {
    if (loss_left <= loss_right) {
      high = right;
      right = left;
      loss_right = loss_left;
      left = high - golden * (high - low);
      loss_left = loss(left);
    } else {
      low = left;
      left = right;
      loss_left = loss_right;
      right = low + golden * (high - low);
      loss_right = loss(right);
    }
  }
  return (low + high) / 2;
}

double CalibratedCrossEntropy(std::span<const JudgedItem> items, const PlattScale& calibration) {
  double sum = 0;
  for (const JudgedItem& item : items) {
    sum -= LogOf(Calibrated(item.probabilities, calibration)[item.answer]);
  }
  return sum / static_cast<double>(items.size());
}

}  // namespace

PlattScale FitPlattScale(std::span<const JudgedItem> items, bool with_offset) {
  if (items.empty()) return {};
  const double tolerance = with_offset ? 1e-4 : 1e-6;
  const auto at = [&](double log_temperature) {
    PlattScale calibration{std::exp(log_temperature), 0};
    if (!with_offset) return calibration;
    calibration.offset = LeastOf(
        [&](double offset) {
          return CalibratedCrossEntropy(items, {calibration.temperature, offset});
        },
        -kFitOffsetMax, kFitOffsetMax, tolerance);
    return calibration;
  };
  return at(LeastOf([&](double x) { return CalibratedCrossEntropy(items, at(x)); },
                    std::log(kFitTemperatureMin), std::log(kFitTemperatureMax), tolerance));
}

double ReciprocalRankOf(std::span<const size_t> ranking, std::span<const size_t> relevant) {
  for (size_t place = 0; place < ranking.size(); ++place) {
    if (std::ranges::find(relevant, ranking[place]) == relevant.end()) continue;
    return 1 / static_cast<double>(place + 1);
  }
  return 0;
}

double ChanceReciprocalRank(size_t documents, size_t relevant) {
  // `none_yet` is the probability that no relevant document is at a position before this one.
  double none_yet = 1;
  double sum = 0;
  for (size_t place = 0; place < documents; ++place) {
    const double hit =
        std::min(static_cast<double>(relevant) / static_cast<double>(documents - place), 1.0);
    sum += none_yet * hit / static_cast<double>(place + 1);
    none_yet *= 1 - hit;
  }
  return sum;
}

}  // namespace skein
