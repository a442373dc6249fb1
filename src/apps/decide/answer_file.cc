#include "apps/decide/answer_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace skein {
namespace {

constexpr char kSuffix[] = ".skein";

Status Refuse(const std::string& path, const std::string& why) {
  return {StatusCode::kInvalidArgument, "output: " + path + " " + why, "output"};
}

Status Failed(const std::string& path) {
  return Refuse(path, std::string("cannot be written: ") + std::strerror(errno));
}

}  // namespace

Result<AnswerFile> AnswerFile::Open(const std::string& path, const std::string& fingerprint) {
  // The file is opened only once, hence no O_EXCL and no second call of open: opening a pipe waits
  // for its reader.
  AnswerFile answers(open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (answers.file_ < 0) return Failed(path);
  struct stat info {};
  if (fstat(answers.file_, &info) != 0) return Failed(path);
  if (!S_ISREG(info.st_mode)) return answers;
  if (flock(answers.file_, LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK ? Refuse(path, "is being written by another process")
                                : Failed(path);
  }
  SKEIN_RETURN_IF_ERROR(answers.Adopt(path, fingerprint));
  SKEIN_RETURN_IF_ERROR(answers.CountLines(path));
  return answers;
}

AnswerFile::~AnswerFile() {
  if (file_ >= 0) close(file_);  // releases the lock
}

AnswerFile::AnswerFile(AnswerFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), num_lines_(other.num_lines_) {}

AnswerFile& AnswerFile::operator=(AnswerFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(num_lines_, other.num_lines_);
  return *this;
}

Status AnswerFile::Adopt(const std::string& path, const std::string& fingerprint) {
  const std::string beside = path + kSuffix;
  std::string found;
  {
    std::ifstream file(beside);
    std::getline(file, found);
  }
  if (found == fingerprint) return Status::Ok();
  struct stat info {};
  if (fstat(file_, &info) != 0) return Failed(path);
  if (info.st_size > 0) {
    return Refuse(path, found.empty() ? "holds something else, since there is no " + beside
                                      : "holds answers to other questions or of another model");
  }
  std::ofstream file(beside);
  file << fingerprint << "\n" << std::flush;
  return file ? Status::Ok() : Failed(beside);
}

Status AnswerFile::CountLines(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  off_t whole = 0;
  std::string line;
  while (std::getline(file, line) && !file.eof()) {
    ++num_lines_;
    whole += static_cast<off_t>(line.size()) + 1;
  }
  return ftruncate(file_, whole) == 0 ? Status::Ok() : Failed(path);
}

Status AnswerFile::Append(const std::string& lines) {
  size_t done = 0;
  while (done < lines.size()) {
    const ssize_t count = write(file_, lines.data() + done, lines.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return {StatusCode::kInvalidArgument,
              std::string("output: the answers could not be written: ") + std::strerror(errno),
              "output"};
    }
    done += static_cast<size_t>(count);
  }
  return Status::Ok();
}

}  // namespace skein
