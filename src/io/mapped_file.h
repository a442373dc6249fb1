#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace skein {

// A regular file, mapped read-only. Move-only; reading is thread-safe. The file must not shrink
// while it is mapped: a read beyond its new end would raise SIGBUS.
class MappedFile {
 public:
  // kNotFound if it cannot be opened; kInvalidArgument if it is empty or no regular file.
  static Result<MappedFile> Open(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::string& path() const { return path_; }
  // The bytes; their address survives a move of the object.
  std::span<const std::byte> bytes() const { return {data_, num_bytes_}; }

 private:
  MappedFile() = default;

  std::string path_;
  const std::byte* data_ = nullptr;
  size_t num_bytes_ = 0;
};

}  // namespace skein
