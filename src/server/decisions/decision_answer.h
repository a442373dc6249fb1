#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "server/decisions/question_reading.h"
#include "server/json/json.h"
#include "skein/decision_method.h"
#include "skein/request.h"

namespace skein {

// The answer computed from the scores of a question's options (docs/decisions.md), all in binary64.
struct DecisionAnswer {
  std::vector<double> probabilities;  // in the order of the options
  size_t mode = 0;                    // the most likely option; of equal ones the first
  double mean = 0;                    // the answer of a score: the mean of the options' indices
  std::optional<double> label_mass;   // probability of all options together, before the temperature
};

// REQUIRES: at least one score, temperature > 0.
DecisionAnswer AnswerOf(const OptionScores& scores, double temperature);
DecisionAnswer AnswerOf(std::span<const float> logits, double temperature);

// If the label mass is smaller, the model's next text is probably none of the options: the question
// is badly asked.
inline constexpr double kSmallLabelMass = 0.05;

// Makes {reading, prompt, temperature, offset?, label_mass?, warning?}: how an answer was obtained.
Json DiagnosticsJson(const DecisionAnswer& answer, const DecisionMethod& method);

// 0: all options are equally likely; 1: one option is certain, or there is only one.
double ChoiceConfidence(const DecisionAnswer& answer);
// The same for a score. Probability on levels near the most likely one lowers the confidence less
// than probability on distant levels.
double ScoreConfidence(const DecisionAnswer& answer);

// The probability of each label as the model's next token.
// REQUIRES: the read asked for its log-sum-exp.
std::vector<double> TokenProbabilities(const ReadValues& read);

}  // namespace skein
