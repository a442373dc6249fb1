#pragma once

#include <string>

#include "base/result.h"

namespace skein {

// Finds the directory of the model on which a decision model was trained. It is the folder `base`
// in the decision model's directory, else `name`: a directory, or a model in the local HuggingFace
// cache at `revision` (empty: the main revision). Fails with kNotFound, which says where the
// function looked; `where` names the file that names the base.
Result<std::string> FindBaseModel(const std::string& model_dir, const std::string& name,
                                  const std::string& revision, const std::string& where);

}  // namespace skein
