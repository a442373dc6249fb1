#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/gguf_file.h"

namespace skein {

// A model in GGUF files: one, or parts named <name>-00001-of-0000N.gguf beside each other. Every
// part is opened and checked at once. Move-only; reading is thread-safe.
class GgufModel {
 public:
  // `path`: the only file, or the first part. Fails as GgufFile::Open does; a part that is missing,
  // has another number or repeats a tensor is an error that names it.
  static Result<GgufModel> Open(const std::string& path);

  const std::string& path() const { return files_.front().path(); }
  // The first part's; the others say only which part they are.
  const GgufMetadata& metadata() const { return files_.front().metadata(); }

  // Names of all tensors, sorted.
  std::vector<std::string> Names() const;
  bool Has(std::string_view name) const { return file_of_.contains(name); }
  Result<GgufTensor> Find(std::string_view name) const;  // kNotFound if there is none

 private:
  GgufModel() = default;
  Status Add(const std::string& path);

  std::vector<GgufFile> files_;
  std::map<std::string, size_t, std::less<>> file_of_;  // of a tensor: the index in files_
};

}  // namespace skein
