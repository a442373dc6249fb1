#pragma once

#include <string>

#include "base/result.h"

namespace skein {

// Makes a directory for a model. Refuses a directory that is not empty; with `force` it removes
// model files in the directory instead.
Status PrepareModelDirectory(const std::string& dir, bool force);

}  // namespace skein
