#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace skein {

// The directories in which HuggingFace libraries keep downloaded models, most specific first:
// HF_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub; those that
// are set.
std::vector<std::string> HubCacheDirs();

// Finds the directory of `model`: `model` itself if it is a directory, else `org/name` in the first
// cache of `cache_dirs` that has it (models--org--name/snapshots/<revision>). An empty revision is
// that of refs/main. Nothing is downloaded: kNotFound lists the directories that were searched.
Result<std::string> ResolveModelDir(const std::string& model,
                                    const std::vector<std::string>& cache_dirs = HubCacheDirs(),
                                    const std::string& revision = "");

}  // namespace skein
