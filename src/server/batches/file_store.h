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

// A file as the API describes it.
struct StoredFile {
  std::string id;
  int64_t num_bytes = 0;
  int64_t created_s = 0;  // Unix time
  std::string filename;
  std::string purpose;  // "batch" or "batch_output"
};
Json FileJson(const StoredFile& file);

// The files of /v1/files in a directory: ID.data with the content, and ID.json with the
// description. A file exists once its ID.json does, so a crash leaves no incomplete file.
// Thread rule: any thread.
class FileStore {
 public:
  static constexpr size_t kFilesMax = 10000;

  // Opens or makes `folder`. `max_bytes` limits the sum of all files.
  static Result<std::unique_ptr<FileStore>> Open(const std::string& folder, int64_t max_bytes);

  // Stores a new file. kTooLarge if the sum of all files would exceed the limit.
  Result<StoredFile> Add(const std::string& filename, const std::string& purpose,
                         std::string_view bytes);
  // Moves the file at `path` into the store, under `id`. Does nothing if the store has the id
  // already, so that the call may be repeated after a crash. Moved files are kept even beyond the
  // limit.
  Status Adopt(const std::string& path, const std::string& id, const std::string& filename);

  std::optional<StoredFile> Find(const std::string& id) const;
  std::vector<StoredFile> List() const;  // the latest file first
  // The content of a file. kNotFound (param "file_id") if there is none with this id.
  Result<std::string> Read(const std::string& id) const;
  Status Remove(const std::string& id);

 private:
  FileStore(std::string folder, int64_t max_bytes)
      : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  Status Load();
  std::string PathOf(const std::string& id, const char* suffix) const;
  // Adds a file whose content lies in the folder already. REQUIRES: mutex_ is held.
  Status Publish(const StoredFile& file);

  const std::string folder_;
  const int64_t max_bytes_;
  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, StoredFile> files_;
  int64_t num_bytes_ = 0;
};

}  // namespace skein
