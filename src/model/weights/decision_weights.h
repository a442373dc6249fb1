#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "io/model_files.h"
#include "model/config/config.h"
#include "model/weights/tensor_list.h"
#include "model/weights/weights.h"

namespace skein {

// The tensors of a decision model's head, in the order of the computation.
std::vector<ModelTensor> ListDecisionTensors(const ModelConfig& config);

// kInvalidArgument, with its name, for a tensor of the head that is missing or of another shape.
Status CheckDecisionTensors(const ModelFiles& files, const ModelConfig& config);

// Adds the head to the weights of the encoder, whose final norm becomes that of the head's input;
// of a compact head it stays.
// REQUIRES: CheckDecisionTensors.
Status LoadDecisionHead(const ModelFiles& files, ModelWeights* weights);

}  // namespace skein
