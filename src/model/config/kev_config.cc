#include "model/config/kev_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "io/torch/torch_file.h"
#include "model/config/base_model.h"
#include "model/config/config_fields.h"

namespace skein {
namespace {

constexpr int32_t kUsualHeadWidth = 256;  // for files that state no width

bool IsThere(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

bool IsTemperature(double value) { return std::isfinite(value) && value > 0; }

Result<KevConfig> LoadKevHeadJson(const std::string& model_dir) {
  SKEIN_ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Load(model_dir + "/" + kKevHeadJson));
  const JsonObject& json = file.root();
  KevConfig config;
  config.base_dir = model_dir;
  config.is_gguf = true;
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "head_dim", kMaxWidth, &config.head_width));
  SKEIN_ASSIGN_OR_RETURN(const auto temperatures, json.Doubles("temperature"));
  if (!temperatures || temperatures->size() != config.temperature.size() ||
      !std::ranges::all_of(*temperatures, IsTemperature)) {
    return json.Error("temperature", "must be 3 numbers above 0: choice, score and noul");
  }
  std::ranges::copy(*temperatures, config.temperature.begin());
  SKEIN_ASSIGN_OR_RETURN(const auto by_options, json.Object("temperature_by_options"));
  if (!by_options) return config;
  for (const auto& [bucket, value] : by_options->members()) {
    SKEIN_ASSIGN_OR_RETURN(const auto number, by_options->Double(bucket));
    if (!number || !IsTemperature(*number)) {
      return by_options->Error(bucket, "must be a number above 0");
    }
    config.temperature_by_options[std::string(bucket)] = *number;
  }
  return config;
}

}  // namespace

bool IsKevDir(const std::string& model_dir) {
  return IsThere(model_dir + "/" + kKevHeadFile) || IsThere(model_dir + "/" + kKevHeadJson);
}

Result<KevConfig> LoadKevConfig(const std::string& model_dir) {
  if (IsThere(model_dir + "/" + kKevHeadJson)) return LoadKevHeadJson(model_dir);
  SKEIN_ASSIGN_OR_RETURN(const TorchFile file, OpenTorchFile(model_dir + "/" + kKevHeadFile));
  const JsonObject& json = file.data.root();
  KevConfig config;
  SKEIN_ASSIGN_OR_RETURN(const auto head_width, ReadSize(json, "head_dim", kMaxWidth));
  config.head_width = head_width.value_or(kUsualHeadWidth);
  SKEIN_ASSIGN_OR_RETURN(const auto temperature, json.Double("temperature"));
  if (temperature && !IsTemperature(*temperature)) {
    return json.Error("temperature", "must be a number above 0");
  }
  config.temperature.fill(temperature.value_or(1));
  SKEIN_ASSIGN_OR_RETURN(const auto isolates, json.Bool("option_isolation"));
  if (isolates.value_or(false)) {
    return Unsupported(json, "option_isolation",
                       "is true; supported are models whose options see those before them");
  }
  SKEIN_ASSIGN_OR_RETURN(const auto special, json.Bool("special_embeddings"));
  if (special.value_or(false)) {
    return Unsupported(json, "special_embeddings",
                       "is true; supported are models with the base's embeddings");
  }
  config.has_adapter = IsThere(model_dir + "/adapter_config.json");
  if (!config.has_adapter && IsThere(model_dir + "/config.json")) {
    config.base_dir = model_dir;
    return config;
  }
  SKEIN_ASSIGN_OR_RETURN(const auto base, json.String("base"));
  if (!base) return json.Error("base", "is missing");
  SKEIN_ASSIGN_OR_RETURN(const auto revision, json.String("base_revision"));
  SKEIN_ASSIGN_OR_RETURN(config.base_dir,
                         FindBaseModel(model_dir, *base, revision.value_or(""), json.where()));
  return config;
}

Status AddKevHead(const KevConfig& kev, ModelConfig* config) {
  if (config->architecture != Architecture::kQwen35 &&
      config->architecture != Architecture::kQwen3) {
    return Status(StatusCode::kUnsupported,
                  "the base of a Kev model is " + config->ArchitectureName() +
                      "; supported are Qwen3_5 and Qwen3, whose tokenizers have its delimiters",
                  "model");
  }
  config->head = Head::kDecision;
  config->decision.compact_width = kev.head_width;
  config->decision.compact_heads = 1;
  config->decision.is_pointer = true;
  config->decision.rounds_states = false;
  return Status::Ok();
}

}  // namespace skein
