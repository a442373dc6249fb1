#include "apps/gguf/description_files.h"

#include <filesystem>
#include <system_error>

#include "io/safetensors_writer.h"

namespace skein {

Status MakeDirectory(const std::string& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (!error) return Status::Ok();
  return Status(StatusCode::kInvalidArgument, dir + ": " + error.message());
}

Status WriteJson(const std::string& path, const nlohmann::ordered_json& json) {
  return WriteFile(path, json.dump(2) + "\n");
}

}  // namespace skein
