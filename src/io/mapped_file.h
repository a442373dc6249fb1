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
  // Fails with kNotFound if the file cannot be opened, and with kInvalidArgument if it is empty or
  // not a regular file.
  static Result<MappedFile> Open(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::string& path() const { return path_; }
  // The bytes of the file. Their address stays the same if the object is moved.
  std::span<const std::byte> bytes() const { return {data_, num_bytes_}; }

 private:
  MappedFile() = default;

  std::string path_;
  const std::byte* data_ = nullptr;
  size_t num_bytes_ = 0;
};

}  // namespace skein
