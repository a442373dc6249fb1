#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace skein {

// Writes a whole file atomically: a crash leaves either the old file or the new one. Errors name
// the path.
Status WriteDurably(const std::string& path, std::string_view bytes);

Result<std::string> ReadWhole(const std::string& path);

// Makes an id that nobody can guess: `prefix` and 24 hexadecimal digits.
std::string RandomId(const std::string& prefix);

// A file to which only complete lines are appended. Move-only; the destructor closes it.
class LineFile {
 public:
  LineFile() = default;
  ~LineFile();
  LineFile(LineFile&& other) noexcept;
  LineFile& operator=(LineFile&& other) noexcept;

  // Opens or makes the file and cuts off everything behind its first `num_bytes` bytes, such as an
  // incomplete line that a crash left.
  static Result<LineFile> Open(const std::string& path, int64_t num_bytes);
  // Appends a line, which must end with a newline. After a failure the file has its earlier length.
  Status Append(std::string_view line);
  // Waits until the whole file is on the disk.
  Status Sync();

 private:
  int fd_ = -1;
  int64_t num_bytes_ = 0;
  std::string path_;
};

}  // namespace skein
