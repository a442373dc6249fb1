#pragma once

#include <string>

#include "base/result.h"

namespace skein {

// Returns <cache_dir>/gguf/<name of the file>-<hash of its path>, a directory with the description
// of a GGUF file and a link to the file. It is made unless it is there and the file has not changed
// since. Descriptions of files that are gone are then removed, unless something was added to them
// or changed in them. Processes and threads may call this at the same time: one makes a description
// while the others wait.
Result<std::string> DescribeInCache(const std::string& file, const std::string& cache_dir);

}  // namespace skein
