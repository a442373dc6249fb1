#pragma once

#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "model/weights/weights.h"

namespace skein {

// Appends the logits of a decision model's actions [num_actions] to `out`. `options`: the logits of
// the question's options, at least one; they may be those in `out`. `sums` [kActionWidth]: in ·
// state + in_bias, overwritten. There are four features: the largest probability of an option, its
// lead over the next one, the entropy of all probabilities divided by that of equal ones (for at
// least two), and the number of options divided by 255.
void AppendActionLogits(const DecisionHeadWeights& head, const Kernels& kernels,
                        std::span<const float> options, float* sums, std::vector<float>* out);

}  // namespace skein
