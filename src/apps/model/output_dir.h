#pragma once

#include <string>

#include "base/result.h"

namespace skein {

// Makes a directory for a model. Refuses one that holds anything; with `force` it removes the
// model's files that are in it instead.
Status PrepareModelDirectory(const std::string& dir, bool force);

}  // namespace skein
