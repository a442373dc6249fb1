#include "apps/host/decision_model_traits.h"

#include <filesystem>

#include "apps/read_json.h"
#include "model/config/laya_config.h"

namespace skein {
namespace {

// The special token of this name, which is a string or an object with its content.
std::string TokenOf(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) return "";
  const Json& token = found->is_object() ? found->value("content", Json()) : *found;
  return token.is_string() ? token.get<std::string>() : "";
}

}  // namespace

Result<DecisionModelTraits> LoadDecisionModelTraits(const std::string& model_dir) {
  SKEIN_ASSIGN_OR_RETURN(const LayaConfig config, LoadLayaConfig(model_dir));
  DecisionModelTraits traits;
  traits.family = "laya";
  traits.max_len = config.max_len;
  traits.head_max_len = config.head_max_len;
  traits.temperature = config.temperature;
  traits.temperature_by_options = config.temperature_by_options;
  const std::string dir = TokenizerDirOf(model_dir);
  const std::string path = dir + "/tokenizer_config.json";
  const std::string map_path = dir + "/special_tokens_map.json";
  SKEIN_ASSIGN_OR_RETURN(const Json json, ReadJsonObject(path));
  Json map = Json::object();
  if (std::filesystem::exists(map_path)) {
    SKEIN_ASSIGN_OR_RETURN(map, ReadJsonObject(map_path));
  }
  if (json.value("truncation_side", Json("right")) == "left") {
    return Status(StatusCode::kUnsupported,
                  path + ": 'truncation_side' is 'left'; options are cut on the right");
  }
  for (const auto& [name, token] :
       {std::pair("cls_token", &traits.cls_token), std::pair("sep_token", &traits.sep_token),
        std::pair("mask_token", &traits.mask_token)}) {
    *token = TokenOf(json, name);
    if (token->empty()) *token = TokenOf(map, name);
    if (token->empty()) {
      return Status(StatusCode::kInvalidArgument,
                    path + ": '" + name + "' is missing; decisions are encoded with it");
    }
  }
  return traits;
}

std::string TokenizerDirOf(const std::string& model_dir) {
  return IsLayaDir(model_dir) ? model_dir + "/tokenizer" : model_dir;
}

}  // namespace skein
