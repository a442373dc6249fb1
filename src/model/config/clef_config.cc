#include "model/config/clef_config.h"

#include <filesystem>

#include "io/json_file.h"
#include "kernels/kv_layout.h"
#include "model/config/config_fields.h"

namespace skein {
namespace {

constexpr int64_t kMaxHeadLayers = 64;

}  // namespace

bool IsClefDir(const std::string& model_dir) {
  std::error_code error;
  return std::filesystem::exists(model_dir + "/" + kClefConfigFile, error);
}

Status AddClefHead(const std::string& model_dir, ModelConfig* config) {
  if (config->architecture != Architecture::kQwen35) {
    return Status(
        StatusCode::kUnsupported,
        "the decoder of a Clef model is " + config->ArchitectureName() + "; supported is Qwen3_5",
        "model");
  }
  SKEIN_ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Load(model_dir + "/" + kClefConfigFile));
  const JsonObject& json = file.root();
  JointHeadFields& head = config->decision.joint;
  int32_t hidden = 0;
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "hidden_size", kMaxWidth, &hidden));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "width", kMaxWidth, &head.width));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "heads", kMaxHeads, &head.heads));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "feedforward", kMaxWidth, &head.mlp_width));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "routing_layers", kMaxHeadLayers, &head.option_layers));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "layers", kMaxHeadLayers, &head.question_layers));
  if (hidden != config->hidden_size) {
    return json.Error("hidden_size", "is " + std::to_string(hidden) + "; the decoder's is " +
                                         std::to_string(config->hidden_size));
  }
  if (head.width % head.heads != 0) {
    return json.Error("heads", "is " + std::to_string(head.heads) +
                                   ", which does not divide the width " +
                                   std::to_string(head.width));
  }
  if (head.width / head.heads > kMaxHeadDim) {
    return Unsupported(json, "heads",
                       "is " + std::to_string(head.heads) + "; heads may be at most " +
                           std::to_string(kMaxHeadDim) + " wide");
  }
  config->head = Head::kDecision;
  return Status::Ok();
}

}  // namespace skein
