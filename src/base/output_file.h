#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace skein {

// A new file to which bytes are written at any offsets, in any order. Move-only; Write is
// thread-safe.
class OutputFile {
 public:
  // Creates a file of `bytes` zeros. An existing file of that name is replaced; processes that have
  // it open or mapped keep its old contents. Fails with kUnavailable and the system's reason.
  static Result<OutputFile> Create(const std::string& path, int64_t bytes);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;

  const std::string& path() const { return path_; }
  // Writes bytes from `offset` on.
  Status Write(int64_t offset, std::span<const std::byte> bytes) const;
  // Fails if the system could not keep the written data. A second call does nothing.
  Status Close();

 private:
  OutputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_ = -1;
};

}  // namespace skein
