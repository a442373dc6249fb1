#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "io/mapped_file.h"
#include "io/safetensors_header.h"

namespace skein {

// Called while weights are read, with the bytes read so far and the total.
using LoadProgress = std::function<void(int64_t bytes_done, int64_t bytes_total)>;

// A tensor of a mapped file, row-major.
struct TensorView {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  const std::byte* data = nullptr;  // of any alignment
  size_t bytes = 0;                 // product of shape * SizeOf(dtype)
};

// One safetensors file, mapped read-only (MappedFile). Move-only; reading is thread-safe.
class SafetensorsFile {
 public:
  // Fails as MappedFile::Open and ParseSafetensorsHeader do.
  static Result<SafetensorsFile> Open(const std::string& path);

  const SafetensorsHeader& header() const { return header_; }
  const std::string& path() const { return file_.path(); }
  size_t bytes() const { return file_.bytes().size(); }

  // kNotFound if there is no such tensor; kUnsupported if its dtype is no DType.
  Result<TensorView> Find(std::string_view name) const;

 private:
  SafetensorsFile(MappedFile file, SafetensorsHeader header)
      : file_(std::move(file)), header_(std::move(header)) {}

  MappedFile file_;
  SafetensorsHeader header_;
};

// The weights of a model directory: model.safetensors, else the shards that
// model.safetensors.index.json names. Every shard is opened and checked at once.
class ModelFiles {
 public:
  static Result<ModelFiles> Open(const std::string& model_dir);

  // Names of all tensors, sorted.
  std::vector<std::string> Names() const;
  bool Has(std::string_view name) const { return shard_of_.contains(name); }
  Result<TensorView> Find(std::string_view name) const;
  // Finds a tensor of exactly this shape; the error names both shapes.
  Result<TensorView> Find(std::string_view name, const std::vector<int64_t>& shape) const;
  // The header's entry; REQUIRES: Has(name).
  const TensorInfo& Info(std::string_view name) const;

  // Tells the system that the pages wholly within `view` will not be read again soon and may be
  // dropped. A later read takes them from the file again. Thread-safe.
  static void ReleasePages(const TensorView& view);

 private:
  ModelFiles() = default;
  Status OpenShards(const std::string& model_dir, const std::string& index_path);

  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t, std::less<>> shard_of_;  // tensor name -> index in files_
};

}  // namespace skein
