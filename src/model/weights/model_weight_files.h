#pragma once

#include <string>

#include "base/result.h"
#include "io/model_files.h"

namespace skein {

// The weights of a model directory, as ModelFiles::Open finds them. For a sysone directory, they
// are the base model's weights, in which the trained layers (backbone.safetensors) replace the
// base's, with the changes of its adapter, and the head's weights under kCompactHeadPrefix. For a
// Kev directory, they are the decoder's weights with the changes of an adapter, and the weights in
// head.pt under kKevHeadPrefix. Fails with kInvalidArgument, naming the tensor, if the base model
// lacks a tensor or has it in another shape.
Result<ModelFiles> OpenModelFiles(const std::string& model_dir);

}  // namespace skein
