#include "base/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace skein {
namespace {

Status OutputFailed(const char* what, const std::string& path) {
  return Status(StatusCode::kUnavailable,
                std::string("cannot ") + what + " " + path + ": " + std::strerror(errno));
}

}  // namespace

Result<OutputFile> OutputFile::Create(const std::string& path, int64_t bytes) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return OutputFailed("replace", path);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return OutputFailed("create", path);
  OutputFile file(path, fd);
  if (ftruncate(fd, bytes) != 0) return OutputFailed("extend", path);
  return file;
}

OutputFile::~OutputFile() { (void)Close(); }

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

Status OutputFile::Write(int64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return OutputFailed("write", path_);
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += count;
  }
  return Status::Ok();
}

Status OutputFile::Close() {
  const int fd = std::exchange(fd_, -1);
  if (fd >= 0 && close(fd) != 0) return OutputFailed("close", path_);
  return Status::Ok();
}

}  // namespace skein
