#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "skein/request.h"

namespace skein {

// What the logits of a question's labels say (docs/decisions.md). In binary64 throughout.
struct DecisionAnswer {
  std::vector<double> probabilities;  // in the order of the options
  size_t mode = 0;                    // the most likely option, ties to the first
  double mean = 0;                    // of the options' 0-based places: a score
};

// REQUIRES: at least one logit, temperature > 0.
DecisionAnswer AnswerOf(std::span<const float> logits, double temperature);

// 0: all options alike; 1: one is certain, or there is only one.
double ChoiceConfidence(const DecisionAnswer& answer);
// As above, where neighbouring levels are nearer than distant ones.
double ScoreConfidence(const DecisionAnswer& answer);

// Probability that the model gives each label as its next token.
// REQUIRES: the read wanted its log-sum-exp.
std::vector<double> TokenProbabilities(const ReadValues& read);
// Probability that the model gives all labels together as its next token. As above.
double LabelMass(const ReadValues& read);

}  // namespace skein
