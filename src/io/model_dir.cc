#include "io/model_dir.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "io/json_file.h"

namespace skein {
namespace {

constexpr size_t kMaxRefBytes = 4096;

bool IsPlainName(std::string_view name) {
  return !name.empty() && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

// Maps "org/name" to "models--org--name". Some models have no org. Returns an empty string if
// `model` is not a name of this form.
std::string CacheFolder(const std::string& model) {
  const size_t slash = model.find('/');
  const std::string first = model.substr(0, slash);
  if (!IsPlainName(first)) return "";
  if (slash == std::string::npos) return "models--" + first;
  const std::string second = model.substr(slash + 1);
  return IsPlainName(second) ? "models--" + first + "--" + second : "";
}

bool IsDirectory(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

}  // namespace

std::vector<std::string> HubCacheDirs() {
  constexpr struct {
    const char* variable;
    const char* below;
  } kPlaces[] = {{"HF_HUB_CACHE", ""},
                 {"HF_HOME", "/hub"},
                 {"XDG_CACHE_HOME", "/huggingface/hub"},
                 {"HOME", "/.cache/huggingface/hub"}};
  std::vector<std::string> dirs;
  for (const auto& place : kPlaces) {
    const char* value = std::getenv(place.variable);
    if (value != nullptr && *value != '\0') dirs.push_back(std::string(value) + place.below);
  }
  return dirs;
}

Result<std::string> ResolveModelDir(const std::string& model,
                                    const std::vector<std::string>& cache_dirs,
                                    const std::string& revision) {
  if (IsDirectory(model)) return model;
  const std::string folder = CacheFolder(model);
  if (folder.empty()) {
    return Status(StatusCode::kNotFound, "no directory '" + model + "'", "model");
  }
  std::string looked;
  for (const std::string& cache : cache_dirs) {
    const std::string root = cache + "/" + folder;
    looked += "\n  " + root;
    if (!IsDirectory(root)) continue;
    std::string wanted = revision;
    if (revision.empty()) {
      const Result<std::string> ref = ReadFile(root + "/refs/main", kMaxRefBytes);
      if (!ref.ok()) {
        looked += ": " + ref.status().message();
        continue;
      }
      wanted = ref.value();
      wanted.erase(wanted.find_last_not_of(" \r\n") + 1);
    }
    const std::string snapshot = root + "/snapshots/" + wanted;
    if (IsPlainName(wanted) && IsDirectory(snapshot)) return snapshot;
    looked += revision.empty() ? ": refs/main names the revision '" : ": the revision '";
    looked +=
        wanted + (revision.empty() ? "', which is not in snapshots" : "' is not in snapshots");
  }
  return Status(StatusCode::kNotFound,
                "no directory '" + model + "', and no such model in the local HuggingFace cache " +
                    "(nothing is downloaded); looked in:\n  " + model + looked,
                "model");
}

}  // namespace skein
