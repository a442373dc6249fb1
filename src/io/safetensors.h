#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "io/mapped_file.h"
#include "io/safetensors_header.h"
#include "io/tensor_view.h"

namespace skein {

// One safetensors file, mapped read-only (MappedFile). Move-only; reading is thread-safe.
class SafetensorsFile {
 public:
  // Fails as MappedFile::Open and ParseSafetensorsHeader do.
  static Result<SafetensorsFile> Open(const std::string& path);
  // For a file of another format, whose reader has found and checked the tensors
  // (io/torch/torch_file.h).
  SafetensorsFile(MappedFile file, SafetensorsHeader header)
      : file_(std::move(file)), header_(std::move(header)) {}

  const SafetensorsHeader& header() const { return header_; }
  const std::string& path() const { return file_.path(); }
  size_t bytes() const { return file_.bytes().size(); }

  // The bytes of one of header()'s tensors.
  std::span<const std::byte> Bytes(const TensorInfo& info) const {
    return file_.bytes().subspan(info.begin, info.end - info.begin);
  }
  // Fails with kNotFound if there is no such tensor, and with kUnsupported if its type has no
  // DType.
  Result<TensorView> Find(std::string_view name) const;

 private:
  MappedFile file_;
  SafetensorsHeader header_;
};

}  // namespace skein
