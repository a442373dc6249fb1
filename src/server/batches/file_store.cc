#include "server/batches/file_store.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "server/batches/durable_file.h"
#include "server/json/field_reader.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

constexpr char kFilePrefix[] = "file-";

Status NoSuchFile(const std::string& id) {
  return {StatusCode::kNotFound, "there is no file " + id, "file_id"};
}

std::optional<StoredFile> FileOfJson(const std::string& text) {
  const std::optional<Json> json = ParseJson(text);
  if (!json || !json->is_object()) return std::nullopt;
  FieldReader reader(*json);
  StoredFile file;
  file.id = reader.String("id").value_or("");
  file.num_bytes = reader.Int("bytes", 0, INT64_MAX).value_or(0);
  file.created_s = reader.Int("created_at", 0, INT64_MAX).value_or(0);
  file.filename = reader.String("filename").value_or("");
  file.purpose = reader.String("purpose").value_or("");
  if (!reader.status().ok() || file.id.empty()) return std::nullopt;
  return file;
}

}  // namespace

Json FileJson(const StoredFile& file) {
  Json json;
  json["id"] = file.id;
  json["object"] = "file";
  json["bytes"] = file.num_bytes;
  json["created_at"] = file.created_s;
  json["expires_at"] = nullptr;
  json["filename"] = file.filename;
  json["purpose"] = file.purpose;
  json["status"] = "processed";
  json["status_details"] = nullptr;
  return json;
}

Result<std::unique_ptr<FileStore>> FileStore::Open(const std::string& folder, int64_t max_bytes) {
  std::unique_ptr<FileStore> store(new FileStore(folder, max_bytes));
  SKEIN_RETURN_IF_ERROR(store->Load());
  return store;
}

Status FileStore::Load() {
  std::error_code error;
  fs::create_directories(folder_, error);
  fs::directory_iterator entries(folder_, error);
  if (error) {
    return {StatusCode::kInvalidArgument,
            "batch-dir: " + folder_ + " cannot be used: " + error.message(), "batch-dir"};
  }
  for (const fs::directory_entry& entry : entries) {
    if (entry.path().extension() != ".json") continue;
    SKEIN_ASSIGN_OR_RETURN(const std::string text, ReadWhole(entry.path().string()));
    const std::optional<StoredFile> file = FileOfJson(text);
    if (!file || file->id != entry.path().stem()) {
      spdlog::warn("batch-dir: {} describes no file; it is left alone", entry.path().string());
      continue;
    }
    num_bytes_ += file->num_bytes;
    files_.emplace(file->id, *file);
  }
  return Status::Ok();
}

std::string FileStore::PathOf(const std::string& id, const char* suffix) const {
  return folder_ + "/" + id + suffix;
}

Status FileStore::Publish(const StoredFile& file) {
  SKEIN_RETURN_IF_ERROR(WriteDurably(PathOf(file.id, ".json"), DumpJson(FileJson(file)) + "\n"));
  num_bytes_ += file.num_bytes;
  files_.emplace(file.id, file);
  return Status::Ok();
}

Result<StoredFile> FileStore::Add(const std::string& filename, const std::string& purpose,
                                  std::string_view bytes) {
  StoredFile file{RandomId(kFilePrefix), static_cast<int64_t>(bytes.size()), std::time(nullptr),
                  filename, purpose};
  const std::lock_guard lock(mutex_);
  if (files_.size() >= kFilesMax || num_bytes_ + file.num_bytes > max_bytes_) {
    return Status(StatusCode::kTooLarge,
                  fmt::format("a file of {} bytes does not fit beside {} files of {} bytes: at "
                              "most {} files and {} bytes (--max-batch-bytes); delete some",
                              file.num_bytes, files_.size(), num_bytes_, kFilesMax, max_bytes_),
                  "file");
  }
  SKEIN_RETURN_IF_ERROR(WriteDurably(PathOf(file.id, ".data"), bytes));
  SKEIN_RETURN_IF_ERROR(Publish(file));
  return file;
}

Status FileStore::Adopt(const std::string& path, const std::string& id,
                        const std::string& filename) {
  const std::lock_guard lock(mutex_);
  if (files_.contains(id)) return Status::Ok();
  std::error_code error;
  const std::string content = PathOf(id, ".data");
  // The content may have been moved already before a crash.
  if (fs::exists(path, error)) fs::rename(path, content, error);
  const auto size = error ? 0 : fs::file_size(content, error);
  if (error) {
    return {StatusCode::kInternal, "batch-dir: " + content + " cannot be made: " + error.message(),
            "batch-dir"};
  }
  return Publish({id, static_cast<int64_t>(size), std::time(nullptr), filename, "batch_output"});
}

std::optional<StoredFile> FileStore::Find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(id);
  if (found == files_.end()) return std::nullopt;
  return found->second;
}

std::vector<StoredFile> FileStore::List() const {
  std::vector<StoredFile> list;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, file] : files_) list.push_back(file);
  }
  std::ranges::stable_sort(
      list, [](const StoredFile& a, const StoredFile& b) { return a.created_s > b.created_s; });
  return list;
}

Result<std::string> FileStore::Read(const std::string& id) const {
  if (!Find(id)) return NoSuchFile(id);
  return ReadWhole(PathOf(id, ".data"));
}

Status FileStore::Remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(id);
  if (found == files_.end()) return NoSuchFile(id);
  std::error_code error;
  fs::remove(PathOf(id, ".json"), error);  // first: without its .json the file no longer exists
  fs::remove(PathOf(id, ".data"), error);
  num_bytes_ -= found->second.num_bytes;
  files_.erase(found);
  return Status::Ok();
}

}  // namespace skein
