#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace skein {

// Where HuggingFace libraries keep downloaded models, most specific first: HF_HUB_CACHE,
// HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub; those that are set.
std::vector<std::string> HubCacheDirs();

// The directory that MODEL names: itself if it is one, else `org/name` in the first cache of
// `cache_dirs` that has it (models--org--name/snapshots/<revision of refs/main>). Nothing is
// downloaded: kNotFound says where it looked.
Result<std::string> ResolveModelDir(const std::string& model,
                                    const std::vector<std::string>& cache_dirs = HubCacheDirs());

}  // namespace skein
