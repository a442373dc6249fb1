#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace skein {

// The directories in which HuggingFace libraries keep downloaded models, the most specific first:
// HF_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub. Variables
// that are not set are left out.
std::vector<std::string> HubCacheDirs();

// Finds the directory of `model`: `model` itself if it is a directory, else `org/name` in the first
// cache of `cache_dirs` that has it (models--org--name/snapshots/<revision>). An empty revision
// stands for refs/main. Nothing is downloaded. If the model is not found, the error is kNotFound,
// with a list of the directories that were searched.
Result<std::string> ResolveModelDir(const std::string& model,
                                    const std::vector<std::string>& cache_dirs = HubCacheDirs(),
                                    const std::string& revision = "");

}  // namespace skein
