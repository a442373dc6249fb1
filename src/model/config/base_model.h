#pragma once

#include <string>

#include "base/result.h"

namespace skein {

// The directory of the model on which a decision model was trained: the folder `base` in the
// decision model's directory, else `name`, a directory or a model in the local HuggingFace cache at
// `revision` (empty: the main one). kNotFound says where it was looked for; `where` names the file
// that names the base.
Result<std::string> FindBaseModel(const std::string& model_dir, const std::string& name,
                                  const std::string& revision, const std::string& where);

}  // namespace skein
