#include "apps/model/output_dir.h"

#include <filesystem>
#include <vector>

namespace skein {
namespace {

namespace fs = std::filesystem;

bool IsModelFile(const std::string& name) {
  const bool weights = name.starts_with("model") && name.find(".safetensors") != std::string::npos;
  return weights || name == "config.json" || name == "generation_config.json" ||
         name == "tokenizer.json" || name == "tokenizer_config.json" ||
         name == "chat_template.jinja";
}

}  // namespace

Status PrepareModelDirectory(const std::string& dir, bool force) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error || !fs::is_directory(dir)) {
    return Status(StatusCode::kInvalidArgument,
                  "cannot create the directory " + dir + ": " + error.message(), "dir");
  }
  std::vector<fs::path> old_files;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    if (!force)
      return Status(StatusCode::kInvalidArgument,
                    dir + " is not empty; --force replaces the model in it", "dir");
    if (IsModelFile(it->path().filename().string())) old_files.push_back(it->path());
  }
  if (error)
    return Status(StatusCode::kInvalidArgument,
                  "cannot read the directory " + dir + ": " + error.message(), "dir");
  for (const fs::path& path : old_files) {
    if (!fs::remove(path, error)) {
      return Status(StatusCode::kInvalidArgument,
                    "cannot replace " + path.string() + ": " + error.message(), "dir");
    }
  }
  return Status::Ok();
}

}  // namespace skein
