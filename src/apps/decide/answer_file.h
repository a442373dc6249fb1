#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace skein {

// The file that answers are appended to. Beside it lies NAME.skein with the fingerprint of what was
// asked of whom: answers to other questions, or of another model, never come into one file. It
// neither changes nor cuts a file that is not its own. A file that is no regular one (a pipe,
// /dev/null) has neither fingerprint nor lock.
class AnswerFile {
 public:
  // Opens or makes the file, and locks it for this process. kInvalidArgument if another process
  // writes it, if it is not empty and has no fingerprint, or another one. The last line is cut off
  // if it is not whole.
  static Result<AnswerFile> Open(const std::string& path, const std::string& fingerprint);
  ~AnswerFile();
  AnswerFile(AnswerFile&& other) noexcept;
  AnswerFile& operator=(AnswerFile&& other) noexcept;

  int64_t num_lines() const { return num_lines_; }  // that it held when it was opened
  // Appends whole lines. Fails if the system does not take all bytes.
  Status Append(const std::string& lines);

 private:
  explicit AnswerFile(int file) : file_(file) {}
  Status Adopt(const std::string& path, const std::string& fingerprint);
  Status CountLines(const std::string& path);

  int file_ = -1;
  int64_t num_lines_ = 0;
};

}  // namespace skein
