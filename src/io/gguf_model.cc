#include "io/gguf_model.h"

#include <cstdint>
#include <cstdio>
#include <utility>

namespace skein {
namespace {

constexpr char kCountKey[] = "split.count", kNumberKey[] = "split.no";
constexpr int64_t kMaxParts = 99999;  // five digits

// Returns "-00001-of-00003.gguf".
std::string PartSuffix(int64_t number, int64_t count) {
  char text[32];
  std::snprintf(text, sizeof(text), "-%05d-of-%05d.gguf", static_cast<int>(number),
                static_cast<int>(count));
  return text;
}

}  // namespace

Status GgufModel::Add(const std::string& path) {
  SKEIN_ASSIGN_OR_RETURN(GgufFile file, GgufFile::Open(path));
  SKEIN_ASSIGN_OR_RETURN(const auto number, file.metadata().Int(kNumberKey));
  if (number.value_or(0) != std::ssize(files_)) {
    return file.metadata().Error(kNumberKey, "is " + std::to_string(*number) + "; it must be " +
                                                 std::to_string(files_.size()) +
                                                 (files_.empty() ? ": name the first part" : ""));
  }
  for (const std::string& name : file.Names()) {
    if (!file_of_.emplace(name, files_.size()).second) {
      return Status(StatusCode::kInvalidArgument,
                    path + ": tensor '" + name + "' is in another part, too");
    }
  }
  files_.push_back(std::move(file));
  return Status::Ok();
}

Result<GgufModel> GgufModel::Open(const std::string& path) {
  GgufModel model;
  SKEIN_RETURN_IF_ERROR(model.Add(path));
  const GgufMetadata& metadata = model.metadata();
  SKEIN_ASSIGN_OR_RETURN(const auto found, metadata.Int(kCountKey));
  const int64_t count = found.value_or(0);
  if (count < 0 || count > kMaxParts) {
    return metadata.Error(kCountKey, "is " + std::to_string(count) + "; 0 to " +
                                         std::to_string(kMaxParts) + " are allowed");
  }
  if (count <= 1) return model;
  const std::string suffix = PartSuffix(1, count);
  if (!path.ends_with(suffix)) {
    return metadata.Error(
        kCountKey, "is " + std::to_string(count) + ", so the file's name must end with " + suffix);
  }
  const std::string stem = path.substr(0, path.size() - suffix.size());
  for (int64_t number = 2; number <= count; ++number) {
    SKEIN_RETURN_IF_ERROR(model.Add(stem + PartSuffix(number, count)));
  }
  return model;
}

std::vector<std::string> GgufModel::Names() const {
  std::vector<std::string> names;
  names.reserve(file_of_.size());
  for (const auto& entry : file_of_) names.push_back(entry.first);
  return names;
}

Result<GgufTensor> GgufModel::Find(std::string_view name) const {
  const auto it = file_of_.find(name);
  if (it == file_of_.end()) return files_.front().Find(name);
  return files_[it->second].Find(name);
}

}  // namespace skein
