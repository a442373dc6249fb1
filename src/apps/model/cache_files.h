#pragma once

#include <functional>
#include <string>
#include <system_error>

#include "base/result.h"

namespace skein {

// Files and directories of the cache, which several processes change at the same time.

// kUnavailable: "cannot <what>: <error>".
Status Unavailable(const std::string& what, const std::error_code& error);

// Makes a directory and its parents, unless it is there.
Status MakeDirectories(const std::string& dir);

Status Rename(const std::string& from, const std::string& to);

// Holds the lock of a file as long as the object lives.
class FileLock {
 public:
  FileLock() = default;
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // Makes the file unless it is there. Waits while another process or object holds the lock, and
  // calls `on_wait` before that.
  // REQUIRES: Lock has not been called.
  Status Lock(
      const std::string& path, const std::function<void()>& on_wait = [] {});

 private:
  int fd_ = -1;
};

// The path of a directory that the constructor and the destructor remove, with everything in it.
class WorkDirectory {
 public:
  explicit WorkDirectory(std::string path);
  ~WorkDirectory();
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace skein
