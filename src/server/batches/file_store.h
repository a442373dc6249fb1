#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "server/json/json.h"

namespace skein {

// A file as the API tells of it.
struct StoredFile {
  std::string id;
  int64_t num_bytes = 0;
  int64_t created_s = 0;  // Unix time
  std::string filename;
  std::string purpose;  // "batch" or "batch_output"
};
Json FileJson(const StoredFile& file);

// The files of /v1/files in a directory: ID.data, and ID.json with what is told of it. A file is
// there once its ID.json is, so a crash leaves none half written.
// Thread rule: any thread.
class FileStore {
 public:
  static constexpr size_t kFilesMax = 10000;

  // Opens or makes `folder`. All files together have at most `max_bytes`.
  static Result<std::unique_ptr<FileStore>> Open(const std::string& folder, int64_t max_bytes);

  // Keeps a new file. kTooLarge if it does not fit in.
  Result<StoredFile> Add(const std::string& filename, const std::string& purpose,
                         std::string_view bytes);
  // Takes over the file at `path` under `id`. Does nothing if the id is there already: so it may be
  // repeated after a crash. Results are kept even beyond the limit.
  Status Adopt(const std::string& path, const std::string& id, const std::string& filename);

  std::optional<StoredFile> Find(const std::string& id) const;
  std::vector<StoredFile> List() const;  // the latest first
  // kNotFound (param "file_id").
  Result<std::string> Read(const std::string& id) const;
  Status Remove(const std::string& id);

 private:
  FileStore(std::string folder, int64_t max_bytes)
      : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  Status Load();
  std::string PathOf(const std::string& id, const char* suffix) const;
  // Makes a file whose content lies there already known. REQUIRES: mutex_ is held.
  Status Publish(const StoredFile& file);

  const std::string folder_;
  const int64_t max_bytes_;
  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, StoredFile> files_;
  int64_t num_bytes_ = 0;
};

}  // namespace skein
