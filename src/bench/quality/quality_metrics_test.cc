#include "bench/quality/quality_metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace skein {
namespace {

JudgedItem Judged(std::vector<double> probabilities, size_t answer) {
  JudgedItem item{std::move(probabilities), {}, answer};
  for (size_t i = 0; i < item.probabilities.size(); ++i) {
    item.labels.push_back(std::string(1, static_cast<char>('a' + i)));
  }
  return item;
}

TEST(QualityMetricsTest, FiguresByHand) {
  const std::vector<JudgedItem> items = {Judged({0.8, 0.2}, 0), Judged({0.6, 0.4}, 1),
                                         Judged({0.5, 0.5}, 0), Judged({0.1, 0.9}, 1)};
  EXPECT_DOUBLE_EQ(AccuracyOf(items), 0.75);
  EXPECT_DOUBLE_EQ(ChanceAccuracyOf(items), 0.5);
  EXPECT_NEAR(BrierOf(items), (0.08 + 0.72 + 0.5 + 0.02) / 4, 1e-12);
  EXPECT_NEAR(CrossEntropyOf(items),
              -(std::log(0.8) + std::log(0.4) + std::log(0.5) + std::log(0.9)) / 4, 1e-12);
  EXPECT_NEAR(MeanAbsoluteErrorOf(items), (0.2 + 0.6 + 0.5 + 0.1) / 4, 1e-12);
  // The items by their bins: 0.5 (right), 0.6 (wrong), 0.8 (right), 0.9 (right).
  EXPECT_NEAR(CalibrationErrorOf(items), (0.5 + 0.6 + 0.2 + 0.1) / 4, 1e-12);
  // For label "a", positives have 0.8 and 0.5, negatives 0.6 and 0.1: three of four pairs are in
  // order.
  EXPECT_DOUBLE_EQ(MeanAucOf(items).value(), 0.75);
  EXPECT_DOUBLE_EQ(AccuracyOf({}), 0);
  EXPECT_DOUBLE_EQ(CalibrationErrorOf({}), 0);
}

TEST(QualityMetricsTest, ConfusionCountsRightByGivenLabels) {
  std::vector<JudgedItem> items = {Judged({0.8, 0.2}, 0), Judged({0.6, 0.4}, 1),
                                   Judged({0.1, 0.9}, 1), Judged({0.1, 0.2, 0.7}, 0)};
  std::swap(items[2].labels[0], items[2].labels[1]);  // now "a" is the right label and the answer
  const Confusion confusion = ConfusionOf(items);
  EXPECT_EQ(confusion.labels, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(confusion.counts, (std::vector<std::vector<int64_t>>{{2, 0, 1}, {1, 0, 0}, {0, 0, 0}}));
  EXPECT_TRUE(ConfusionOf({}).labels.empty());
}

TEST(QualityMetricsTest, ThresholdsReachTheirAccuracy) {
  // The answers are right at 0.9, 0.8 and 0.6, and wrong at 0.7 and 0.6.
  const std::vector<JudgedItem> items = {Judged({0.9, 0.1}, 0), Judged({0.8, 0.2}, 0),
                                         Judged({0.7, 0.3}, 1), Judged({0.6, 0.4}, 0),
                                         Judged({0.6, 0.4}, 1)};
  const AnswerThreshold all = ThresholdFor(items, 0.6);
  EXPECT_DOUBLE_EQ(all.threshold.value(), 0.6);
  EXPECT_DOUBLE_EQ(all.coverage, 1);
  EXPECT_DOUBLE_EQ(all.accuracy, 0.6);
  // Three of four right answers would need only one of the two items at 0.6, which have the same
  // probability.
  const AnswerThreshold most = ThresholdFor(items, 0.75);
  EXPECT_DOUBLE_EQ(most.threshold.value(), 0.8);
  EXPECT_DOUBLE_EQ(most.coverage, 0.4);
  EXPECT_DOUBLE_EQ(most.accuracy, 1);
  EXPECT_FALSE(ThresholdFor({items.data() + 2, 1}, 0.5).threshold.has_value());
  EXPECT_FALSE(ThresholdFor({}, 0.5).threshold.has_value());
}

TEST(QualityMetricsTest, MeanAbsoluteErrorOfLevels) {
  const std::vector<JudgedItem> items = {Judged({0.5, 0, 0.5}, 0), Judged({0, 0, 1}, 2)};
  EXPECT_DOUBLE_EQ(MeanAbsoluteErrorOf(items), 0.5);
}

TEST(QualityMetricsTest, AucCountsTiesAsHalf) {
  const std::vector<double> scores = {1, 1, 0, 2};
  EXPECT_DOUBLE_EQ(AucOf(scores, {true, false, false, true}).value(), 0.875);
  EXPECT_FALSE(AucOf(scores, {true, true, true, true}).has_value());
  EXPECT_FALSE(AucOf({}, {}).has_value());
}

TEST(QualityMetricsTest, AucIsTheShareOfPairsInOrder) {
  Random random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<double> scores;
    std::vector<bool> positive;
    for (int i = 0; i < 20; ++i) {
      scores.push_back(static_cast<double>(random.Between(0, 9)));
      positive.push_back(i == 0 || (i > 1 && random.OneIn(2)));
    }
    double in_order = 0;
    double pairs = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      for (size_t j = 0; j < scores.size(); ++j) {
        if (!positive[i] || positive[j]) continue;
        ++pairs;
        in_order += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
      }
    }
    EXPECT_NEAR(AucOf(scores, positive).value(), in_order / pairs, 1e-12) << round;
  }
}

TEST(QualityMetricsTest, SeveralClassesOneAgainstTheRestInAnyOrder) {
  std::vector<JudgedItem> items = {Judged({0.7, 0.2, 0.1}, 0), Judged({0.3, 0.6, 0.1}, 1),
                                   Judged({0.4, 0.1, 0.5}, 2), Judged({0.5, 0.3, 0.2}, 1)};
  // Label a: 0.7 is above all others, AUC 1. Label b: 0.6 and 0.3 are above 0.2 and 0.1, AUC 1.
  // Label c: 0.5 is above all others, AUC 1.
  EXPECT_DOUBLE_EQ(MeanAucOf(items).value(), 1);
  std::swap(items[0].probabilities[0], items[0].probabilities[2]);
  std::swap(items[0].labels[0], items[0].labels[2]);
  items[0].answer = 2;
  EXPECT_DOUBLE_EQ(MeanAucOf(items).value(), 1);
}

TEST(QualityMetricsTest, BinsHoldEveryItem) {
  const std::vector<JudgedItem> items = {Judged({1, 0}, 0), Judged({0.95, 0.05}, 1),
                                         Judged({0.3, 0.3, 0.4}, 2)};
  const std::vector<ReliabilityBin> bins = ReliabilityOf(items);
  ASSERT_EQ(bins.size(), size_t{kReliabilityBins});
  EXPECT_EQ(bins[9].count, 2);
  EXPECT_DOUBLE_EQ(bins[9].mean_confidence, 0.975);
  EXPECT_DOUBLE_EQ(bins[9].accuracy, 0.5);
  EXPECT_EQ(bins[4].count, 1);
}

TEST(QualityMetricsTest, TemperatureKeepsTheOrder) {
  const std::vector<double> p = {0.7, 0.2, 0.1};
  const std::vector<double> same = Calibrated(p, {});
  for (size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(same[i], p[i], 1e-12);
  for (const double temperature : {0.05, 0.5, 3.0, 20.0}) {
    const std::vector<double> changed = Calibrated(p, {temperature, 0});
    EXPECT_NEAR(changed[0] + changed[1] + changed[2], 1, 1e-12);
    EXPECT_TRUE(changed[0] > changed[1] && changed[1] > changed[2]) << temperature;
  }
  const std::vector<double> half = Calibrated(std::vector<double>{0.8, 0.2}, {0.5, 0});
  EXPECT_NEAR(half[0], 0.64 / 0.68, 1e-12);
  EXPECT_NEAR(Calibrated(std::vector<double>{1, 0}, {20, 0})[0], 1, 1e-12);
}

TEST(QualityMetricsTest, AnOffsetMovesTheLogOddsBeforeTheTemperature) {
  const std::vector<double> even = Calibrated(std::vector<double>{0.2, 0.8}, {2, std::log(4.0)});
  EXPECT_NEAR(even[0], 0.5, 1e-12);
  const std::vector<double> moved = Calibrated(std::vector<double>{0.5, 0.5}, {2, std::log(9.0)});
  EXPECT_NEAR(moved[0], 0.75, 1e-12);
}

// Items whose labels are drawn from true probabilities. Their probabilities are then distorted so
// that the calibration `lost` restores the true ones.
std::vector<JudgedItem> Miscalibrated(const PlattScale& lost, Random* random) {
  std::vector<JudgedItem> items;
  for (int i = 0; i < 20'000; ++i) {
    const double p = random->Uniform();
    items.push_back(Judged({p, 1 - p}, random->Uniform() < p ? 0 : 1));
    // The inverse of the calibration (z + offset) / temperature.
    std::vector<double>& told = items.back().probabilities;
    told = Calibrated(Calibrated(told, {1 / lost.temperature, 0}), {1, -lost.offset});
  }
  return items;
}

TEST(QualityMetricsTest, FitsTheCalibrationThatWasLost) {
  Random random(11);
  for (const PlattScale lost : {PlattScale{0.25, 0}, {1, 0}, {4, 0}, {1, 2}, {3, -1.5}}) {
    const std::vector<JudgedItem> items = Miscalibrated(lost, &random);
    const PlattScale fitted = FitPlattScale(items, lost.offset != 0);
    EXPECT_NEAR(fitted.temperature / lost.temperature, 1, 0.05) << lost.temperature;
    EXPECT_NEAR(fitted.offset, lost.offset, 0.1) << lost.temperature;
  }
}

TEST(QualityMetricsTest, CalibrationStaysWithinItsBounds) {
  const std::vector<JudgedItem> right = {Judged({0.6, 0.4}, 0)};
  const std::vector<JudgedItem> wrong = {Judged({0.6, 0.4}, 1)};
  EXPECT_NEAR(FitPlattScale(right, false).temperature, kFitTemperatureMin, 1e-4);
  EXPECT_NEAR(FitPlattScale(wrong, false).temperature, kFitTemperatureMax, 1e-3);
  EXPECT_EQ(FitPlattScale({}, true), PlattScale{});
  EXPECT_LE(std::abs(FitPlattScale(wrong, true).offset), kFitOffsetMax);
}

TEST(QualityMetricsTest, RanksByHand) {
  const std::vector<size_t> ranking = {2, 0, 1};
  EXPECT_DOUBLE_EQ(ReciprocalRankOf(ranking, std::vector<size_t>{0, 1}), 0.5);
  EXPECT_DOUBLE_EQ(ReciprocalRankOf(ranking, std::vector<size_t>{2}), 1);
  EXPECT_DOUBLE_EQ(ReciprocalRankOf(ranking, {}), 0);
  EXPECT_NEAR(ChanceReciprocalRank(5, 1), (1 + 0.5 + 1.0 / 3 + 0.25 + 0.2) / 5, 1e-12);
  // With two relevant documents of four, the first relevant one is at position 1 with probability
  // 1/2, at 2 with 1/3, at 3 with 1/6.
  EXPECT_NEAR(ChanceReciprocalRank(4, 2), 0.5 + 0.5 / 3 + 1.0 / 18, 1e-12);
  EXPECT_DOUBLE_EQ(ChanceReciprocalRank(3, 3), 1);
}

}  // namespace
}  // namespace skein
