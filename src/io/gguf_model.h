#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/gguf_file.h"

namespace skein {

// A model in GGUF files: one file, or parts named <name>-00001-of-0000N.gguf in the same directory.
// All parts are opened and checked at once. Move-only; reading is thread-safe.
class GgufModel {
 public:
  // `path`: the only file, or the first part. Fails as GgufFile::Open does. Also fails, naming the
  // part, if a part is missing, has another number or repeats a tensor.
  static Result<GgufModel> Open(const std::string& path);

  const std::string& path() const { return files_.front().path(); }
  // The metadata of the first part. Other parts only say which part they are.
  const GgufMetadata& metadata() const { return files_.front().metadata(); }

  // Names of all tensors, sorted.
  std::vector<std::string> Names() const;
  bool Has(std::string_view name) const { return file_of_.contains(name); }
  Result<GgufTensor> Find(std::string_view name) const;  // kNotFound if it does not exist

 private:
  GgufModel() = default;
  Status Add(const std::string& path);

  std::vector<GgufFile> files_;
  std::map<std::string, size_t, std::less<>> file_of_;  // tensor name -> index in files_
};

}  // namespace skein
