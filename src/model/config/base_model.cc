#include "model/config/base_model.h"

#include <filesystem>

#include "io/model_dir.h"

namespace skein {

Result<std::string> FindBaseModel(const std::string& model_dir, const std::string& name,
                                  const std::string& revision, const std::string& where) {
  std::string own = model_dir + "/base";
  std::error_code error;
  if (std::filesystem::is_directory(own, error)) return own;
  Result<std::string> found = ResolveModelDir(name, HubCacheDirs(), revision);
  if (found.ok()) return found;
  return Status(StatusCode::kNotFound,
                where + ": the base model '" + name +
                    "' is not here: put it, or a link to it, into " + own + ". " +
                    found.status().message(),
                "model");
}

}  // namespace skein
