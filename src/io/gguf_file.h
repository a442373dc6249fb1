#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/gguf_header.h"
#include "io/mapped_file.h"

namespace skein {

// A tensor of a mapped GGUF file, row-major; a row is the last dimension.
struct GgufTensor {
  const GgufType* type = nullptr;
  std::vector<int64_t> shape;
  const std::byte* data = nullptr;  // of any alignment

  int64_t row_elements() const { return shape.back(); }
  int64_t num_rows() const;
  // Writes rows [first_row, first_row + num_rows) to `out`: [num_rows, row_elements()].
  // REQUIRES: these rows exist.
  void ReadRows(int64_t first_row, int64_t num_rows, float* out) const;
};

// One GGUF file, mapped read-only (MappedFile). Move-only; reading is thread-safe.
class GgufFile {
 public:
  // Fails as MappedFile::Open and ParseGgufHeader do.
  static Result<GgufFile> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const GgufHeader& header() const { return header_; }
  const GgufMetadata& metadata() const { return header_.metadata; }

  // Names of all tensors, sorted.
  std::vector<std::string> Names() const;
  bool Has(std::string_view name) const { return header_.tensors.contains(name); }
  Result<GgufTensor> Find(std::string_view name) const;  // kNotFound if it does not exist

 private:
  GgufFile(MappedFile file, GgufHeader header)
      : file_(std::move(file)), header_(std::move(header)) {}

  MappedFile file_;
  GgufHeader header_;
};

}  // namespace skein
