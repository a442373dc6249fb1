#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace skein {

// A labelled item with a model's probabilities.
struct JudgedItem {
  std::vector<double> probabilities;  // [labels], sums to 1
  // [labels], the names of the options; their order may differ between items.
  std::vector<std::string> labels;
  size_t answer = 0;  // index of the right label
};

// Figures over items. They are 0 if there are no items.

// The share of items whose most likely label is right. The first of equally likely labels counts.
double AccuracyOf(std::span<const JudgedItem> items);
// The accuracy of guessing: the mean of 1 / (number of labels).
double ChanceAccuracyOf(std::span<const JudgedItem> items);
// The mean over items of the sum over labels of (probability - truth)^2, from 0 to 2 (Brier 1950).
double BrierOf(std::span<const JudgedItem> items);
// The mean of -ln(probability of the right label). A probability counts as at least 1e-300.
double CrossEntropyOf(std::span<const JudgedItem> items);
// The mean distance between the index of the right label and the mean index by the probabilities.
double MeanAbsoluteErrorOf(std::span<const JudgedItem> items);

// The probability that a positive item has a higher score than a negative one; ties count half
// (Mann-Whitney). `positive` is [scores.size()]. Unset without both positive and negative items.
// O(n log n).
std::optional<double> AucOf(std::span<const double> scores, const std::vector<bool>& positive);
// If the items have two labels in all: the AUC of the probability of either label. If they have
// more: the mean AUC of one label against the others, over the items that offer the label. Unset if
// each label is right for all its items or for none of them.
std::optional<double> MeanAucOf(std::span<const JudgedItem> items);

// A bin of a reliability diagram: the items whose highest probability is in the bin.
struct ReliabilityBin {
  int64_t count = 0;
  double mean_confidence = 0;  // mean of the highest probabilities
  double accuracy = 0;
};
inline constexpr int kReliabilityBins = 10;
// [kReliabilityBins] bins of equal width over [0, 1]; a probability of 1 belongs to the last bin.
std::vector<ReliabilityBin> ReliabilityOf(std::span<const JudgedItem> items);
// The mean of |accuracy - confidence| over the bins, weighted by their counts (Guo et al. 2017,
// ECE).
double CalibrationErrorOf(std::span<const JudgedItem> items);

// How often items with one label got another label. The labels are those of all items, sorted.
struct Confusion {
  std::vector<std::string> labels;
  std::vector<std::vector<int64_t>> counts;  // [right label][most likely label]
};
Confusion ConfusionOf(std::span<const JudgedItem> items);

// The lowest threshold with which answers reach a target accuracy, if items whose highest
// probability is below the threshold are not answered.
struct AnswerThreshold {
  double target = 0;                // the accuracy to reach
  std::optional<double> threshold;  // unset: no threshold reaches it
  double coverage = 0;              // share of the items that are answered
  double accuracy = 0;              // of the answered items
};
AnswerThreshold ThresholdFor(std::span<const JudgedItem> items, double target);

// A change of log-probabilities z: (z + offset, for the first label) / temperature, then
// normalised.
struct PlattScale {
  double temperature = 1;  // > 0
  double offset = 0;

  bool operator==(const PlattScale&) const = default;
};
std::vector<double> Calibrated(std::span<const double> probabilities,
                               const PlattScale& calibration);

inline constexpr double kFitTemperatureMin = 0.05;
inline constexpr double kFitTemperatureMax = 20;
inline constexpr double kFitOffsetMax = 20;
// The calibration with the least cross-entropy: a temperature in [kFitTemperatureMin,
// kFitTemperatureMax] and, if wanted, an offset in [-kFitOffsetMax, kFitOffsetMax]. Found by golden
// section search: cross-entropy is convex in (1/T, offset/T), so there is only one valley. Without
// items, no change. O(items), some 1,000 passes with an offset.
PlattScale FitPlattScale(std::span<const JudgedItem> items, bool with_offset);

// 1 / (position of the first relevant document in `ranking`); `ranking` has indices, best first. 0
// if no document is relevant.
double ReciprocalRankOf(std::span<const size_t> ranking, std::span<const size_t> relevant);
// The mean of ReciprocalRankOf over all orders of `documents` documents, `relevant` of them
// relevant.
double ChanceReciprocalRank(size_t documents, size_t relevant);

}  // namespace skein
