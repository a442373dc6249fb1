#include "apps/model/model_cache.h"

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "apps/host/closest_name.h"
#include "apps/model/gguf_cache.h"
#include "apps/read_file.h"
#include "io/model_dir.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool IsFetched(const std::string& dir) { return FileExists(dir + "/config.json"); }

// The GGUF file that `model` names, or the one in a directory without a config.json; empty if there
// is none.
std::string GgufFileOf(const std::string& model) {
  constexpr std::string_view kExtension = ".gguf";
  std::error_code error;
  if (fs::is_regular_file(model, error)) return model.ends_with(kExtension) ? model : "";
  if (!fs::is_directory(model, error) || fs::exists(model + "/config.json", error)) return "";
  std::string first;  // by name; the first part of a model in several files
  for (fs::directory_iterator it(model, error), end; !error && it != end; it.increment(error)) {
    const std::string path = it->path().string();
    if (path.ends_with(kExtension) && (first.empty() || path < first)) first = path;
  }
  return first;
}

}  // namespace

Result<std::string> CacheDir() {
  if (const std::string cache = Variable("SKEIN_CACHE"); !cache.empty()) return cache;
  if (const std::string cache = Variable("XDG_CACHE_HOME"); !cache.empty()) return cache + "/skein";
  if (const std::string home = Variable("HOME"); !home.empty()) return home + "/.cache/skein";
  return Status(StatusCode::kNotFound,
                "no directory for fetched models: set SKEIN_CACHE, XDG_CACHE_HOME or HOME");
}

std::string FetchedModelDir(const std::string& cache_dir, const std::string& name) {
  return cache_dir + "/models/" + name;
}

std::string NameOfModel(const std::string& model) {
  std::error_code error;
  if (fs::is_regular_file(model, error)) {
    const std::string name = fs::path(model).stem().string();
    // A model in several parts has the name of its first part.
    const size_t part = name.find("-00001-of-");
    return name.substr(0, part);
  }
  // A name such as org/name or that of a known model is kept. A directory is named by its last
  // component.
  if (!fs::is_directory(model, error)) return model;
  auto path = fs::absolute(model).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();
  return path.filename().string();
}

Result<std::string> FindModelDir(const std::string& model) {
  const std::string gguf = GgufFileOf(model);
  if (!gguf.empty()) {
    SKEIN_ASSIGN_OR_RETURN(const std::string cache, CacheDir());
    return DescribeInCache(gguf, cache);
  }
  std::error_code error;
  if (!fs::is_directory(model, error) && FindKnownModel(model)) {
    SKEIN_ASSIGN_OR_RETURN(const std::string cache, CacheDir());
    const std::string dir = FetchedModelDir(cache, model);
    if (IsFetched(dir)) return dir;
    return Status(StatusCode::kNotFound,
                  "'" + model + "' is not fetched; `skein model fetch " + model +
                      "` does that, in Python skein.fetch('" + model + "')",
                  "model");
  }
  Result<std::string> resolved = ResolveModelDir(model);
  if (resolved.status().code() != StatusCode::kNotFound) return resolved;
  std::vector<std::string> names;
  for (const KnownModel& known : KnownModels()) names.push_back(known.name);
  return Status(StatusCode::kNotFound, resolved.status().message() + DidYouMean(model, names),
                resolved.status().param());
}

std::string DecisionAdapterOf(const std::string& model_dir) {
  const Result<std::string> cache = CacheDir();
  if (!cache.ok()) return "";
  for (const KnownModel& model : KnownModels()) {
    std::error_code error;
    if (fs::equivalent(FetchedModelDir(cache.value(), model.name), model_dir, error)) {
      return model.decision_adapter;
    }
  }
  return "";
}

Result<std::string> FetchedDefaultModel() {
  const Result<std::string> cache = CacheDir();
  const std::string name = DefaultKnownModel().name;
  if (cache.ok() && IsFetched(FetchedModelDir(cache.value(), name))) return name;
  return Status(StatusCode::kNotFound,
                "no MODEL is given and none is fetched; run `skein model fetch " + name +
                    "`, or name a model (`skein serve MODEL`, `make serve MODEL=DIR`)",
                "model");
}

}  // namespace skein
