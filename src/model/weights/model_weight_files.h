#pragma once

#include <string>

#include "base/result.h"
#include "io/model_files.h"

namespace skein {

// The weights of a model directory, as ModelFiles::Open finds them. Those of a sysone directory are
// the base model's, in their place the layers that were trained (backbone.safetensors), with the
// changes of its adapter, and the head's under kCompactHeadPrefix. Those of a Kev directory are the
// decoder's, with the changes of an adapter, and those of head.pt under kKevHeadPrefix.
// kInvalidArgument names a tensor that the base model does not have, or has in another shape.
Result<ModelFiles> OpenModelFiles(const std::string& model_dir);

}  // namespace skein
