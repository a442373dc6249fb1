#include "apps/model/cache_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

namespace skein {
namespace {

namespace fs = std::filesystem;

Status Failed(const char* what, const std::string& path) {
  return Unavailable(what + (" " + path), std::error_code(errno, std::generic_category()));
}

void RemoveAll(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

}  // namespace

Status Unavailable(const std::string& what, const std::error_code& error) {
  return Status(StatusCode::kUnavailable, "cannot " + what + ": " + error.message());
}

Status MakeDirectories(const std::string& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  return error ? Unavailable("create " + dir, error) : Status::Ok();
}

Status Rename(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  return error ? Unavailable("rename " + from + " to " + to, error) : Status::Ok();
}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

Status FileLock::Lock(const std::string& path, const std::function<void()>& on_wait) {
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) return Failed("open", path);
  if (flock(fd_, LOCK_EX | LOCK_NB) == 0) return Status::Ok();
  on_wait();
  while (flock(fd_, LOCK_EX) != 0) {
    if (errno != EINTR) return Failed("lock", path);
  }
  return Status::Ok();
}

WorkDirectory::WorkDirectory(std::string path) : path_(std::move(path)) { RemoveAll(path_); }

WorkDirectory::~WorkDirectory() { RemoveAll(path_); }

}  // namespace skein
