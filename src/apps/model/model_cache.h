#pragma once

#include <string>

#include "apps/model/known_models.h"
#include "base/result.h"

namespace skein {

// The directory of fetched models: SKEIN_CACHE, else XDG_CACHE_HOME/skein, else ~/.cache/skein.
// kNotFound where none of these variables is set.
Result<std::string> CacheDir();

// The directory that a model of that name has once it is fetched: <cache_dir>/models/<name>.
std::string FetchedModelDir(const std::string& cache_dir, const std::string& name);

// The name that a model is served under: a directory's or a GGUF file's own, else `model`.
std::string NameOfModel(const std::string& model);

// The directory that MODEL names: itself if it is one, else a known model in the cache, else what
// ResolveModelDir finds. For a GGUF file, or a directory that holds one and no model, it is a
// directory in the cache that describes the file and links to it. kNotFound for a known model that
// is not fetched says how to fetch it.
Result<std::string> FindModelDir(const std::string& model);

// The decision adapter that comes along with the fetched model of that directory; empty: none.
std::string DecisionAdapterOf(const std::string& model_dir);

// The name of the model to serve where none is given: the default known model, if it is fetched.
// kNotFound says what to do.
Result<std::string> FetchedDefaultModel();

}  // namespace skein
