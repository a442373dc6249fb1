#include "server/decisions/decision_answer.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "server/decisions/decision_method_names.h"

namespace skein {

DecisionAnswer AnswerOf(const OptionScores& scores, double temperature) {
  const std::vector<double>& logprobs = scores.logprobs;
  SKEIN_CHECK(!logprobs.empty() && temperature > 0);
  DecisionAnswer answer;
  answer.label_mass = scores.mass;
  const double max = *std::max_element(logprobs.begin(), logprobs.end());
  // Summed from the least log-probability on, so that the order of the options does not change the
  // bits.
  for (const double logprob : logprobs) {
    answer.probabilities.push_back(std::exp((logprob - max) / temperature));
  }
  std::vector<double> sorted = answer.probabilities;
  std::sort(sorted.begin(), sorted.end());
  const double sum = std::accumulate(sorted.begin(), sorted.end(), 0.0);
  for (size_t i = 0; i < logprobs.size(); ++i) {
    double& p = answer.probabilities[i];
    p /= sum;
    if (p > answer.probabilities[answer.mode]) answer.mode = i;
    answer.mean += p * static_cast<double>(i);
  }
  return answer;
}

DecisionAnswer AnswerOf(std::span<const float> logits, double temperature) {
  OptionScores scores;
  scores.logprobs.assign(logits.begin(), logits.end());
  return AnswerOf(scores, temperature);
}

Json DiagnosticsJson(const DecisionAnswer& answer, const DecisionMethod& method) {
  Json json;
  json["reading"] = ReadingName(method);
  json["prompt"] = NameOf(method.prompt);
  json["temperature"] = method.temperature;
  if (method.offset != 0) json["offset"] = method.offset;
  if (!answer.label_mass) return json;
  json["label_mass"] = *answer.label_mass;
  if (*answer.label_mass < kSmallLabelMass) {
    json["warning"] = fmt::format(
        "the model gives all options together a probability of {:.3f}: it would rather write "
        "something else. Word the question or the options differently, or try another reading",
        *answer.label_mass);
  }
  return json;
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

}  // namespace skein
