#pragma once

#include <string>

#include "apps/model/known_models.h"
#include "base/result.h"

namespace skein {

// The directory of fetched models: SKEIN_CACHE, otherwise XDG_CACHE_HOME/skein, otherwise
// ~/.cache/skein. kNotFound if none of these variables is set.
Result<std::string> CacheDir();

// The directory of the fetched model with this name: <cache_dir>/models/<name>.
std::string FetchedModelDir(const std::string& cache_dir, const std::string& name);

// The name under which a model is served: that of its directory or GGUF file, otherwise `model`.
std::string NameOfModel(const std::string& model);

// Finds the directory that MODEL names: MODEL itself if it is a directory, otherwise a known model
// in the cache, otherwise the result of ResolveModelDir. For a GGUF file, or a directory that holds
// one and no model, the result is a directory in the cache that describes the file and links to it.
// If a known model has not been fetched, kNotFound says how to fetch it.
Result<std::string> FindModelDir(const std::string& model);

// The decision adapter that belongs to the fetched model in this directory; empty if there is none.
std::string DecisionAdapterOf(const std::string& model_dir);

// The name of the model to serve if none is given: the default known model, if it has been fetched.
// Otherwise kNotFound says what to do.
Result<std::string> FetchedDefaultModel();

}  // namespace skein
