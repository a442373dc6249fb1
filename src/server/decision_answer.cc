#include "server/decision_answer.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace skein {

DecisionAnswer AnswerOf(std::span<const float> logits, double temperature) {
  SKEIN_CHECK(!logits.empty() && temperature > 0);
  DecisionAnswer answer;
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits) {
    answer.probabilities.push_back(std::exp((static_cast<double>(logit) - max) / temperature));
    sum += answer.probabilities.back();
  }
  for (size_t i = 0; i < logits.size(); ++i) {
    double& p = answer.probabilities[i];
    p /= sum;
    if (p > answer.probabilities[answer.mode]) answer.mode = i;
    answer.mean += p * static_cast<double>(i);
  }
  return answer;
}

double ChoiceConfidence(const DecisionAnswer& answer) {
  const auto n = static_cast<double>(answer.probabilities.size());
  return n == 1 ? 1 : (n * answer.probabilities[answer.mode] - 1) / (n - 1);
}

double ScoreConfidence(const DecisionAnswer& answer) {
  const size_t n = answer.probabilities.size();
  if (n == 1) return 1;
  double spread = 0;
  double uniform = 0;
  for (size_t i = 0; i < n; ++i) {
    const double place = static_cast<double>(i);
    spread += answer.probabilities[i] * std::abs(place - static_cast<double>(answer.mode));
    uniform += std::abs(place - static_cast<double>(n - 1) / 2);
  }
  return std::max(0.0, 1 - spread / (uniform / static_cast<double>(n)));
}

std::vector<double> TokenProbabilities(const ReadValues& read) {
  std::vector<double> probabilities;
  for (float logit : read.values) {
    probabilities.push_back(
        std::exp(static_cast<double>(logit) - static_cast<double>(read.log_sum_exp)));
  }
  return probabilities;
}

double LabelMass(const ReadValues& read) {
  double mass = 0;
  for (double probability : TokenProbabilities(read)) mass += probability;
  return std::min(mass, 1.0);  // rounding
}

}  // namespace skein
