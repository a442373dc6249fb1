#include "model/weights/model_weight_files.h"

#include <filesystem>
#include <utility>

#include "io/lora_adapter.h"
#include "io/safetensors.h"
#include "io/torch/torch_file.h"
#include "model/config/clef_config.h"
#include "model/config/config.h"
#include "model/config/kev_config.h"
#include "model/config/sysone_config.h"
#include "model/weights/compact_head_weights.h"
#include "model/weights/joint_head_weights.h"

namespace skein {
namespace {

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

Result<ModelFiles> OpenSysone(const std::string& model_dir) {
  SKEIN_ASSIGN_OR_RETURN(const SysoneConfig sysone, LoadSysoneConfig(model_dir));
  SKEIN_ASSIGN_OR_RETURN(const ModelConfig config, LoadModelConfig(model_dir));
  SKEIN_ASSIGN_OR_RETURN(ModelFiles files, ModelFiles::Open(sysone.base_dir));
  // Tensor names in the package's files have no prefix; in the base model's files they have this
  // one.
  const std::string prefix = config.is_encoder() ? config.encoder.tensor_prefix : "model.";
  const std::string trained = model_dir + "/backbone.safetensors";
  if (Exists(trained)) {
    SKEIN_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(trained));
    SKEIN_RETURN_IF_ERROR(files.Replace(std::move(file), prefix));
  }
  const std::string adapter_dir = model_dir + "/adapter";
  if (Exists(adapter_dir)) {
    SKEIN_ASSIGN_OR_RETURN(LoraAdapter adapter, LoraAdapter::Open(adapter_dir));
    SKEIN_RETURN_IF_ERROR(files.Change(std::move(adapter), prefix));
  }
  SKEIN_ASSIGN_OR_RETURN(SafetensorsFile head,
                         SafetensorsFile::Open(model_dir + "/head.safetensors"));
  SKEIN_RETURN_IF_ERROR(files.Add(std::move(head), kCompactHeadPrefix));
  return files;
}

Result<ModelFiles> OpenKev(const std::string& model_dir) {
  SKEIN_ASSIGN_OR_RETURN(const KevConfig kev, LoadKevConfig(model_dir));
  SKEIN_ASSIGN_OR_RETURN(ModelFiles files, ModelFiles::Open(kev.base_dir));
  if (kev.is_gguf) return files;  // with the head
  if (kev.has_adapter) {
    // The adapter was trained on the decoder without its output matrix, so its names lack "model.".
    SKEIN_ASSIGN_OR_RETURN(LoraAdapter adapter, LoraAdapter::Open(model_dir));
    SKEIN_RETURN_IF_ERROR(files.Change(std::move(adapter), "model."));
  }
  SKEIN_ASSIGN_OR_RETURN(TorchFile head, OpenTorchFile(model_dir + "/" + kKevHeadFile));
  SKEIN_RETURN_IF_ERROR(files.Add(std::move(head.tensors), kKevHeadPrefix));
  return files;
}

Result<ModelFiles> OpenClef(const std::string& model_dir) {
  SKEIN_ASSIGN_OR_RETURN(ModelFiles files, ModelFiles::Open(model_dir));
  SKEIN_ASSIGN_OR_RETURN(SafetensorsFile head,
                         SafetensorsFile::Open(model_dir + "/" + kClefHeadFile));
  SKEIN_RETURN_IF_ERROR(files.Add(std::move(head), kJointHeadPrefix));
  return files;
}

}  // namespace

Result<ModelFiles> OpenModelFiles(const std::string& model_dir) {
  if (IsSysoneDir(model_dir)) return OpenSysone(model_dir);
  if (IsClefDir(model_dir)) return OpenClef(model_dir);
  return IsKevDir(model_dir) ? OpenKev(model_dir) : ModelFiles::Open(model_dir);
}

}  // namespace skein
