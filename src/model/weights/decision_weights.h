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

// Fails with kInvalidArgument, naming the tensor, if a tensor of the head is missing or has another
// shape.
Status CheckDecisionTensors(const ModelFiles& files, const ModelConfig& config);

// Adds the head to the weights of the encoder. The encoder's final norm becomes the norm of the
// head's input; with a compact or a joint head it stays the final norm. REQUIRES:
// CheckDecisionTensors has succeeded.
Status LoadDecisionHead(const ModelFiles& files, ModelWeights* weights);

}  // namespace skein
