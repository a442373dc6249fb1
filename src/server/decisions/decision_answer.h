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

// The answer that the scores of a question's options give (docs/decisions.md), all in binary64.
struct DecisionAnswer {
  std::vector<double> probabilities;  // in the order of the options
  size_t mode = 0;                    // the most likely option, ties to the first
  double mean = 0;                    // of the options' 0-based places: a score
  std::optional<double> label_mass;   // probability of all options together, before the temperature
};

// REQUIRES: at least one score, temperature > 0.
DecisionAnswer AnswerOf(const OptionScores& scores, double temperature);
DecisionAnswer AnswerOf(std::span<const float> logits, double temperature);

// Less than that of the model's next text is one of the options: the question is badly asked.
inline constexpr double kSmallLabelMass = 0.05;

// {reading, prompt, temperature, offset?, label_mass?, warning?}: how an answer came about.
Json DiagnosticsJson(const DecisionAnswer& answer, const DecisionMethod& method);

// 0: all options alike; 1: one is certain, or there is only one.
double ChoiceConfidence(const DecisionAnswer& answer);
// As above, where neighbouring levels are nearer than distant ones.
double ScoreConfidence(const DecisionAnswer& answer);

// Probability that the model gives each label as its next token.
// REQUIRES: the read wanted its log-sum-exp.
std::vector<double> TokenProbabilities(const ReadValues& read);

}  // namespace skein
