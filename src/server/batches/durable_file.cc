#include "server/batches/durable_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <utility>

namespace skein {
namespace {

Status Failure(const std::string& path, const char* what) {
  return {StatusCode::kInternal,
          "batch-dir: " + path + " cannot be " + what + ": " + std::strerror(errno), "batch-dir"};
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// Syncs the directory of `path`: a file's name is durable only once its directory is.
void SyncFolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)fsync(fd);
  close(fd);
}

}  // namespace

Status WriteDurably(const std::string& path, std::string_view bytes) {
  const std::string draft = path + ".tmp";
  const int fd = open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return Failure(draft, "written");
  const bool written = WriteAll(fd, bytes) && fsync(fd) == 0;
  const Status failure = written ? Status::Ok() : Failure(draft, "written");
  close(fd);
  if (!written) {
    unlink(draft.c_str());
    return failure;
  }
  if (rename(draft.c_str(), path.c_str()) != 0) return Failure(path, "written");
  SyncFolderOf(path);
  return Status::Ok();
}

Result<std::string> ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Failure(path, "read");
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) return Failure(path, "read");
  return bytes;
}

std::string RandomId(const std::string& prefix) {
  std::random_device device;
  char digits[25];
  std::snprintf(digits, sizeof(digits), "%08x%08x%08x", device(), device(), device());
  return prefix + digits;
}

LineFile::~LineFile() {
  if (fd_ >= 0) close(fd_);
}

LineFile::LineFile(LineFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      num_bytes_(other.num_bytes_),
      path_(std::move(other.path_)) {}

LineFile& LineFile::operator=(LineFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(num_bytes_, other.num_bytes_);
  std::swap(path_, other.path_);
  return *this;
}

Result<LineFile> LineFile::Open(const std::string& path, int64_t num_bytes) {
  LineFile file;
  file.path_ = path;
  file.num_bytes_ = num_bytes;
  file.fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file.fd_ < 0 || ftruncate(file.fd_, num_bytes) != 0) return Failure(path, "written");
  return file;
}

Status LineFile::Append(std::string_view line) {
  if (!WriteAll(fd_, line)) {
    const Status failure = Failure(path_, "written");
    (void)!ftruncate(fd_, num_bytes_);
    return failure;
  }
  num_bytes_ += static_cast<int64_t>(line.size());
  return Status::Ok();
}

Status LineFile::Sync() { return fsync(fd_) == 0 ? Status::Ok() : Failure(path_, "written"); }

}  // namespace skein
