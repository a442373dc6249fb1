#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace skein {

// Writes a file whole: after a crash there is the old file or the new one. Errors name the path.
Status WriteDurably(const std::string& path, std::string_view bytes);

Result<std::string> ReadWhole(const std::string& path);

// An id that nobody can guess: `prefix` and 24 hexadecimal digits.
std::string RandomId(const std::string& prefix);

// A file that only grows, by whole lines. Move-only; closes in its destructor.
class LineFile {
 public:
  LineFile() = default;
  ~LineFile();
  LineFile(LineFile&& other) noexcept;
  LineFile& operator=(LineFile&& other) noexcept;

  // Opens or makes the file and cuts off what a crash left behind its first `num_bytes` bytes.
  static Result<LineFile> Open(const std::string& path, int64_t num_bytes);
  // `line` ends with its newline. After a failure the file ends where it did before.
  Status Append(std::string_view line);
  // Waits until all of it is on the disk.
  Status Sync();

 private:
  int fd_ = -1;
  int64_t num_bytes_ = 0;
  std::string path_;
};

}  // namespace skein
