#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace skein {

// The file to which answers are appended. The file NAME.skein beside it holds a fingerprint of the
// questions and of the model, so that answers to other questions or of another model never get into
// the same file. A file that skein did not write is neither changed nor cut. A file that is not a
// regular file (a pipe, /dev/null) has neither fingerprint nor lock.
class AnswerFile {
 public:
  // Opens or makes the file, and locks it for this process. kInvalidArgument if another process is
  // writing it, or if it is not empty and has no fingerprint or another one. An incomplete last
  // line is cut off.
  static Result<AnswerFile> Open(const std::string& path, const std::string& fingerprint);
  ~AnswerFile();
  AnswerFile(AnswerFile&& other) noexcept;
  AnswerFile& operator=(AnswerFile&& other) noexcept;

  int64_t num_lines() const { return num_lines_; }  // the number when the file was opened
  // Appends complete lines. Fails if the system does not accept all bytes.
  Status Append(const std::string& lines);

 private:
  explicit AnswerFile(int file) : file_(file) {}
  Status Adopt(const std::string& path, const std::string& fingerprint);
  Status CountLines(const std::string& path);

  int file_ = -1;
  int64_t num_lines_ = 0;
};

}  // namespace skein
