#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace skein {

// A labelled item and what a model said of it.
struct JudgedItem {
  std::vector<double> probabilities;  // [labels], sums to 1
  std::vector<std::string> labels;    // [labels], the classes; their order may differ by item
  size_t answer = 0;                  // the right one
};

// Figures of judged items. An empty span gives 0.

// Share of the items whose most likely label is the right one; equal ones count as the first.
double AccuracyOf(std::span<const JudgedItem> items);
// The accuracy of guessing: the mean of 1 / labels.
double ChanceAccuracyOf(std::span<const JudgedItem> items);
// Mean over items of the sum over labels of (probability - truth)^2, from 0 to 2 (Brier 1950).
double BrierOf(std::span<const JudgedItem> items);
// Mean of -ln(probability of the right label); a probability counts as at least 1e-300.
double CrossEntropyOf(std::span<const JudgedItem> items);
// Mean distance between the answer's place and the mean of the places by their probabilities.
double MeanAbsoluteErrorOf(std::span<const JudgedItem> items);

// Probability that a positive item has the higher score than a negative one, ties counted as half
// (Mann-Whitney). `positive` is [scores.size()]. Unset without both kinds. O(n log n).
std::optional<double> AucOf(std::span<const double> scores, const std::vector<bool>& positive);
// Two labels in all: AUC of the probability of either. More: the mean over the labels of one
// against the rest, over the items that have the label. Unset if no label has both kinds.
std::optional<double> MeanAucOf(std::span<const JudgedItem> items);

// A bin of a reliability diagram: the items whose highest probability lies in it.
struct ReliabilityBin {
  int64_t count = 0;
  double mean_confidence = 0;  // mean of the highest probabilities
  double accuracy = 0;
};
inline constexpr int kReliabilityBins = 10;
// [kReliabilityBins] of equal width over [0, 1]; 1 belongs to the last.
std::vector<ReliabilityBin> ReliabilityOf(std::span<const JudgedItem> items);
// Mean of |accuracy - confidence| of the bins, weighted by their counts (Guo et al. 2017, ECE).
double CalibrationErrorOf(std::span<const JudgedItem> items);

// How often an item of one label was given another. The labels are those of all items, sorted.
struct Confusion {
  std::vector<std::string> labels;
  std::vector<std::vector<int64_t>> counts;  // [right label][most likely label]
};
Confusion ConfusionOf(std::span<const JudgedItem> items);

// The least highest probability at which the answers reach an accuracy, if those below are left
// out.
struct AnswerThreshold {
  double target = 0;                // of the accuracy
  std::optional<double> threshold;  // unset: no answers reach it
  double coverage = 0;              // share of the items that are answered
  double accuracy = 0;              // of those
};
AnswerThreshold ThresholdFor(std::span<const JudgedItem> items, double target);

// A change of log-probabilities z: (z + offset of the first) / temperature, normalised again.
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
// The calibration of least cross-entropy with a temperature in [kFitTemperatureMin,
// kFitTemperatureMax] and, if wanted, an offset in [-kFitOffsetMax, kFitOffsetMax], by golden
// sections: cross-entropy is convex in (1/T, offset/T), so there is one valley. The identity
// without items. O(items), some 1,000 passes with an offset.
PlattScale FitPlattScale(std::span<const JudgedItem> items, bool with_offset);

// 1 / place of the first relevant document in `ranking` (indices, best first); 0 if none is there.
double ReciprocalRankOf(std::span<const size_t> ranking, std::span<const size_t> relevant);
// Its mean over all orders of `documents` of which `relevant` are relevant.
double ChanceReciprocalRank(size_t documents, size_t relevant);

}  // namespace skein
