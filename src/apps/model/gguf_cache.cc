#include "apps/model/gguf_cache.h"

#include <fmt/format.h>

#include <filesystem>
#include <functional>

#include "apps/gguf/gguf_convert.h"
#include "apps/model/cache_files.h"
#include "apps/read_file.h"
#include "io/safetensors_writer.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

constexpr char kDescriptionFingerprint[] = "/skein-gguf.txt";
constexpr char kLink[] = "/model.gguf";

std::string NameOfDescription(const std::string& path) {
  return fmt::format("{}-{:016x}", fs::path(path).stem().string(), std::hash<std::string>()(path));
}

// The properties of a GGUF file on which its description depends, its path first.
Result<std::string> GgufFingerprint(const std::string& path) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  const auto time = error ? fs::file_time_type() : fs::last_write_time(path, error);
  if (error) return Status(StatusCode::kNotFound, "cannot read " + path + ": " + error.message());
  return path + "\n" + std::to_string(bytes) + "\n" +
         std::to_string(time.time_since_epoch().count()) + "\n" +
         std::to_string(kGgufConverterVersion) + "\n";
}

bool IsDescribed(const std::string& dir, const std::string& fingerprint) {
  const Result<std::string> there = ReadFile(dir + kDescriptionFingerprint);
  return there.ok() && there.value() == fingerprint;
}

// Writes the fingerprint last: HasAdditions compares with its time.
Status WriteDescription(const std::string& path, const std::string& fingerprint,
                        const std::string& dir) {
  SKEIN_RETURN_IF_ERROR(MakeDirectories(dir));
  SKEIN_RETURN_IF_ERROR(WriteGgufDescription(path, dir));
  SKEIN_RETURN_IF_ERROR(WriteFile(dir + kDescriptionFingerprint, fingerprint));
  std::error_code error;
  fs::create_symlink(path, dir + kLink, error);
  return error ? Unavailable("link " + dir + kLink + " to " + path, error) : Status::Ok();
}

// Whether a file or directory is newer than the fingerprint: a decision profile, for example. True
// if this cannot be determined.
bool HasAdditions(const std::string& dir) {
  std::error_code error;
  const fs::file_time_type written = fs::last_write_time(dir + kDescriptionFingerprint, error);
  fs::recursive_directory_iterator it(dir, error);
  for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
    if (it->path() == dir + kLink) continue;  // its time is that of the file
    const fs::file_time_type time = it->last_write_time(error);
    if (error || time > written) return true;
  }
  return static_cast<bool>(error);
}

// Whether WriteDescription made this directory of a file that is gone, and nothing was added since.
bool IsLeftOver(const fs::path& dir) {
  std::error_code error;
  if (fs::symlink_status(dir, error).type() != fs::file_type::directory) return false;
  const std::string file = fs::read_symlink(dir.string() + kLink, error).string();
  if (error || dir.filename() != NameOfDescription(file)) return false;
  const Result<std::string> fingerprint = ReadFile(dir.string() + kDescriptionFingerprint);
  if (!fingerprint.ok() || !fingerprint.value().starts_with(file + "\n")) return false;
  if (HasAdditions(dir.string())) return false;
  // A file that cannot be looked at, in a directory without permission for example, is not gone.
  return fs::status(file, error).type() == fs::file_type::not_found;
}

// Renames come first, so that no process finds a part of a directory.
void MoveLeftOvers(const std::string& root, const std::string& to) {
  std::error_code error;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (IsLeftOver(it->path()))
      fs::rename(it->path(), fs::path(to) / it->path().filename(), ignored);
  }
}

}  // namespace

Result<std::string> DescribeInCache(const std::string& file, const std::string& cache_dir) {
  std::error_code error;
  const std::string path = fs::canonical(file, error).string();
  SKEIN_ASSIGN_OR_RETURN(const std::string fingerprint, GgufFingerprint(path));
  const std::string root = cache_dir + "/gguf", dir = root + "/" + NameOfDescription(path);
  if (IsDescribed(dir, fingerprint)) return dir;

  SKEIN_RETURN_IF_ERROR(MakeDirectories(root));
  FileLock lock;
  SKEIN_RETURN_IF_ERROR(lock.Lock(root + "/.lock"));
  if (IsDescribed(dir, fingerprint)) return dir;  // another process has made it meanwhile

  // Under the lock, no other process uses this name.
  const WorkDirectory work(root + "/.work");
  const std::string out = work.path() + "/new";
  SKEIN_RETURN_IF_ERROR(WriteDescription(path, fingerprint, out));
  if (fs::exists(dir, error)) SKEIN_RETURN_IF_ERROR(Rename(dir, work.path() + "/old"));
  SKEIN_RETURN_IF_ERROR(Rename(out, dir));
  MoveLeftOvers(root, work.path());
  return dir;
}

}  // namespace skein
