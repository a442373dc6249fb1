#include "io/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "io/json_file.h"

namespace skein {
namespace {

constexpr char kSingleFile[] = "model.safetensors";
constexpr char kIndexFile[] = "model.safetensors.index.json";

// A shard is named by a plain file name: an index must not lead out of the model's directory.
bool IsPlainFileName(std::string_view name) {
  return !name.empty() && name[0] != '.' &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return Status(StatusCode::kNotFound, "cannot open " + path + ": " + std::strerror(errno));
  }
  struct stat info {};
  void* memory = MAP_FAILED;
  const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const size_t bytes = regular ? static_cast<size_t>(info.st_size) : 0;
  if (bytes > 0) memory = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  const int map_error = errno;
  close(fd);
  if (!regular) return Status(StatusCode::kInvalidArgument, path + " is not a regular file");
  if (bytes == 0) return Status(StatusCode::kInvalidArgument, path + " is empty");
  if (memory == MAP_FAILED) {
    return Status(StatusCode::kInvalidArgument,
                  "cannot map " + path + ": " + std::strerror(map_error));
  }
  SafetensorsFile file;
  file.path_ = path;
  file.data_ = static_cast<const std::byte*>(memory);
  file.bytes_ = bytes;
  SKEIN_ASSIGN_OR_RETURN(file.header_, ParseSafetensorsHeader({file.data_, bytes}, bytes, path));
  return file;
}

SafetensorsFile::~SafetensorsFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), bytes_);
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      header_(std::move(other.header_)) {}

SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(header_, other.header_);
  return *this;
}

Result<TensorView> SafetensorsFile::Find(std::string_view name) const {
  const auto it = header_.tensors.find(name);
  if (it == header_.tensors.end()) {
    return Status(StatusCode::kNotFound, path_ + " has no tensor '" + std::string(name) + "'");
  }
  const TensorInfo& info = it->second;
  if (!info.dtype) {
    return Status(StatusCode::kUnsupported, path_ + ": tensor '" + std::string(name) +
                                                "' has dtype " + info.file_dtype +
                                                "; supported are F32, BF16 and F16");
  }
  return TensorView{*info.dtype, info.shape, data_ + info.begin,
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

int64_t ModelFiles::total_bytes() const {
  int64_t total = 0;
  for (const auto& [name, shard] : shard_of_) {
    const TensorInfo& info = files_[shard].header().tensors.find(name)->second;
    total += static_cast<int64_t>(info.end - info.begin);
  }
  return total;
}

void ModelFiles::ReleasePages(const TensorView& view) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(view.data);
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t last = (begin + view.bytes) / page * page;
  if (first < last) (void)madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace skein
