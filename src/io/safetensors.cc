#include "io/safetensors.h"

#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "io/json_file.h"

namespace skein {
namespace {

constexpr char kSingleFile[] = "model.safetensors";
constexpr char kIndexFile[] = "model.safetensors.index.json";

// The name of a shard must be a plain file name: an index must not lead out of the model's
// directory.
bool IsPlainFileName(std::string_view name) {
  return !name.empty() && name[0] != '.' &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  SKEIN_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  SKEIN_ASSIGN_OR_RETURN(SafetensorsHeader header,
                         ParseSafetensorsHeader(file.bytes(), file.bytes().size(), path));
  return SafetensorsFile(std::move(file), std::move(header));
}

Result<TensorView> SafetensorsFile::Find(std::string_view name) const {
  const auto it = header_.tensors.find(name);
  if (it == header_.tensors.end()) {
    return Status(StatusCode::kNotFound, path() + " has no tensor '" + std::string(name) + "'");
  }
  const TensorInfo& info = it->second;
  if (!info.dtype) {
    return Status(StatusCode::kUnsupported, path() + ": tensor '" + std::string(name) +
                                                "' has dtype " + info.file_dtype +
                                                "; supported are F32, BF16 and F16");
  }
  return TensorView{*info.dtype, info.shape, file_.bytes().data() + info.begin,
                    static_cast<size_t>(info.end - info.begin)};
}

Result<ModelFiles> ModelFiles::Open(const std::string& model_dir) {
  const std::string single = model_dir + "/" + kSingleFile, index = model_dir + "/" + kIndexFile;
  ModelFiles files;
  std::error_code error;
  if (std::filesystem::exists(single, error)) {
    SKEIN_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(single));
    files.files_.push_back(std::move(file));
    for (const auto& entry : files.files_[0].header().tensors) {
      files.shard_of_.emplace(entry.first, 0);
    }
  } else if (std::filesystem::exists(index, error)) {
    SKEIN_RETURN_IF_ERROR(files.OpenShards(model_dir, index));
  } else {
    return Status(StatusCode::kNotFound,
                  model_dir + " has neither " + kSingleFile + " nor " + kIndexFile);
  }
  return files;
}

Status ModelFiles::OpenShards(const std::string& model_dir, const std::string& index_path) {
  SKEIN_ASSIGN_OR_RETURN(const JsonFile json, JsonFile::Load(index_path));
  SKEIN_ASSIGN_OR_RETURN(const std::optional<JsonObject> weight_map,
                         json.root().Object("weight_map"));
  if (!weight_map) return json.root().Error("weight_map", "is missing");
  std::map<std::string, size_t, std::less<>> index_of_shard;
  for (const auto& member : weight_map->members()) {
    std::string_view shard;
    if (member.value.get(shard) != simdjson::SUCCESS) {
      return weight_map->Error(member.key, "must name a file");
    }
    if (!IsPlainFileName(shard)) {
      return weight_map->Error(
          member.key, "names the file '" + std::string(shard) + "'; it must be a plain file name");
    }
    auto it = index_of_shard.find(shard);
    if (it == index_of_shard.end()) {
      Result<SafetensorsFile> file = SafetensorsFile::Open(model_dir + "/" + std::string(shard));
      if (!file.ok()) {
        return Status(file.status().code(), index_path + " names a shard that cannot be used: " +
                                                file.status().message());
      }
      it = index_of_shard.emplace(shard, files_.size()).first;
      files_.push_back(std::move(file).value());
    }
    if (!files_[it->second].header().tensors.contains(member.key)) {
      return weight_map->Error(member.key,
                               "is not in " + std::string(shard) + ", where the index says it is");
    }
    if (!shard_of_.emplace(member.key, it->second).second) {
      return weight_map->Error(member.key, "appears twice");
    }
  }
  return Status::Ok();
}

std::vector<std::string> ModelFiles::Names() const {
  std::vector<std::string> names;
  names.reserve(shard_of_.size());
  for (const auto& entry : shard_of_) names.push_back(entry.first);
  return names;
}

Result<TensorView> ModelFiles::Find(std::string_view name) const {
  const auto it = shard_of_.find(name);
  if (it == shard_of_.end()) {
    return Status(StatusCode::kNotFound,
                  "the model's files have no tensor '" + std::string(name) + "'");
  }
  return files_[it->second].Find(name);
}

Result<TensorView> ModelFiles::Find(std::string_view name,
                                    const std::vector<int64_t>& shape) const {
  SKEIN_ASSIGN_OR_RETURN(TensorView view, Find(name));
  if (view.shape != shape) {
    return Status(StatusCode::kInvalidArgument, "tensor '" + std::string(name) + "' has shape " +
                                                    ShapeString(view.shape) +
                                                    "; the config asks for " + ShapeString(shape));
  }
  return view;
}

const TensorInfo& ModelFiles::Info(std::string_view name) const {
  const auto it = shard_of_.find(name);
  SKEIN_CHECK(it != shard_of_.end());
  return files_[it->second].header().tensors.find(name)->second;
}

void ModelFiles::ReleasePages(const TensorView& view) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(view.data);
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t last = (begin + view.bytes) / page * page;
  if (first < last) (void)madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace skein
