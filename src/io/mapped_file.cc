#include "io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace skein {

Result<MappedFile> MappedFile::Open(const std::string& path) {
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
  MappedFile file;
  file.path_ = path;
  file.data_ = static_cast<const std::byte*>(memory);
  file.num_bytes_ = bytes;
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), num_bytes_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      num_bytes_(std::exchange(other.num_bytes_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(num_bytes_, other.num_bytes_);
  return *this;
}

}  // namespace skein
