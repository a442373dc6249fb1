#include "bench/quality/decision_profile_file.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "apps/host/decision_profile.h"
#include "server/decisions/decision_method_names.h"
#include "server/json/json.h"

namespace skein {
namespace {

Status CannotWrite(const std::string& path, const std::string& why) {
  return Status(StatusCode::kInvalidArgument, path + " cannot be written: " + why, "--write");
}

}  // namespace

Result<WrittenProfile> WriteDecisionProfile(const DecisionProfile& profile,
                                            const std::string& model_dir,
                                            const std::string& model_name) {
  WrittenProfile written;
  std::error_code error;
  const std::string beside = model_dir + "/" + kDecisionProfileFile;
  if (access(model_dir.c_str(), W_OK) == 0) {
    written.path = beside;
  } else {
    written.path = UserDecisionProfile(model_name);
    if (written.path.empty()) {
      return CannotWrite(beside, "the directory is read-only, and HOME is not set");
    }
    std::filesystem::create_directories(std::filesystem::path(written.path).parent_path(), error);
    if (error) return CannotWrite(written.path, error.message());
    if (std::filesystem::exists(beside, error)) written.shadow = beside;
  }
  if (std::filesystem::exists(written.path, error)) {
    written.backup = written.path + ".bak";
    std::filesystem::rename(written.path, written.backup, error);
    if (error) return CannotWrite(written.backup, error.message());
  }
  std::ofstream file(written.path);
  file << DecisionProfileJson(profile).dump(2) << '\n';
  file.flush();
  if (!file) return CannotWrite(written.path, "the disk may be full");
  return written;
}

}  // namespace skein
