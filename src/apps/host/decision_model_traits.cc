#include "apps/host/decision_model_traits.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "apps/read_json.h"
#include "model/config/clef_config.h"
#include "model/config/kev_config.h"
#include "model/config/laya_config.h"
#include "model/config/sysone_config.h"

namespace skein {
namespace {

// The special token of this name. In the file it is a string, or an object with the string as its
// content.
std::string TokenOf(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) return "";
  const Json& token = found->is_object() ? found->value("content", Json()) : *found;
  return token.is_string() ? token.get<std::string>() : "";
}

// Members of a tokenizer's configuration, and the variables for the tokens that they name.
using NamedTokens = std::vector<std::pair<const char*, std::string*>>;

Status ReadSpecialTokens(const std::string& dir, const NamedTokens& tokens) {
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
  for (const auto& [name, token] : tokens) {
    *token = TokenOf(json, name);
    if (token->empty()) *token = TokenOf(map, name);
    if (token->empty()) {
      return Status(StatusCode::kInvalidArgument,
                    path + ": '" + name + "' is missing; decisions are encoded with it");
    }
  }
  return Status::Ok();
}

// The room, in tokens, that a step has for a question and its state, the longer one apart.
constexpr int32_t kUsualQuestionTokens = 1024;

Result<DecisionModelTraits> LayaTraits(const std::string& model_dir) {
  SKEIN_ASSIGN_OR_RETURN(const LayaConfig config, LoadLayaConfig(model_dir));
  DecisionModelTraits traits;
  traits.family = "laya";
  traits.max_len = config.max_len;
  traits.usual_len = std::min(config.max_len, config.head_max_len + kUsualQuestionTokens);
  traits.head_max_len = config.head_max_len;
  traits.parallel = config.parallel;
  traits.temperature = config.temperature;
  traits.temperature_by_options = config.temperature_by_options;
  SKEIN_RETURN_IF_ERROR(
      ReadSpecialTokens(TokenizerDirOf(model_dir), {{"cls_token", &traits.cls_token},
                                                    {"sep_token", &traits.sep_token},
                                                    {"mask_token", &traits.mask_token}}));
  return traits;
}

Result<DecisionModelTraits> SysoneModelTraits(const std::string& model_dir) {
  SKEIN_ASSIGN_OR_RETURN(const SysoneConfig config, LoadSysoneConfig(model_dir));
  DecisionModelTraits traits;
  traits.family = "sysone";
  traits.max_len = config.max_len;
  traits.usual_len = std::min(config.max_len, config.max_state_tokens + kUsualQuestionTokens);
  traits.parallel = config.parallel;
  traits.temperature = config.temperature;
  traits.temperature_by_options = config.temperature_by_options;
  SysoneTraits& sysone = traits.sysone.emplace();
  sysone.base = config.architecture;
  sysone.base_dir = config.base_dir;
  sysone.encoder = config.is_encoder();
  sysone.max_state_tokens = config.max_state_tokens;
  sysone.max_option_tokens = config.max_option_tokens;
  sysone.task_lines = config.prompt.task_lines;
  sysone.question = config.prompt.question;
  sysone.choice_option = config.prompt.choice_option;
  sysone.score_option = config.prompt.score_option;
  sysone.noul_labels = config.prompt.noul_labels;
  NamedTokens tokens;
  if (sysone.encoder) {
    const bool euro = config.architecture == "eurobert";
    tokens = {{euro ? "bos_token" : "cls_token", &traits.cls_token},
              {euro ? "eos_token" : "sep_token", &traits.sep_token},
              {"mask_token", &traits.mask_token}};
  } else if (config.architecture != "qwen3") {
    tokens = {{"bos_token", &sysone.bos_token}};
  }
  SKEIN_RETURN_IF_ERROR(ReadSpecialTokens(config.base_dir, tokens));
  return traits;
}

// The room, in tokens, that a step has for a question's options: 255 options of eight tokens.
constexpr int32_t kUsualOptionTokens = 2048;

Result<DecisionModelTraits> KevModelTraits(const std::string& model_dir,
                                           const ModelConfig& config) {
  SKEIN_ASSIGN_OR_RETURN(const KevConfig kev, LoadKevConfig(model_dir));
  DecisionModelTraits traits;
  traits.family = "kev";
  traits.max_len = config.max_position;
  traits.usual_len = std::min(config.max_position, kUsualOptionTokens);
  traits.temperature = kev.temperature;
  traits.temperature_by_options = kev.temperature_by_options;
  traits.kev = {NameOf(config.architecture), kev.base_dir};
  return traits;
}

DecisionModelTraits ClefModelTraits(const ModelConfig& config) {
  DecisionModelTraits traits;
  traits.family = "clef";
  traits.max_len = std::min(config.max_position, kClefMaxLen);
  traits.usual_len = traits.max_len;
  traits.clef = {NameOf(config.architecture)};
  return traits;
}

}  // namespace

Result<DecisionModelTraits> LoadDecisionModelTraits(const std::string& model_dir,
                                                    const ModelConfig& config) {
  if (IsSysoneDir(model_dir)) return SysoneModelTraits(model_dir);
  if (config.decision.is_joint()) return ClefModelTraits(config);
  return IsKevDir(model_dir) ? KevModelTraits(model_dir, config) : LayaTraits(model_dir);
}

std::string TokenizerDirOf(const std::string& model_dir) {
  if (IsLayaDir(model_dir)) return model_dir + "/tokenizer";
  if (IsSysoneDir(model_dir)) {
    Result<SysoneConfig> config = LoadSysoneConfig(model_dir);
    return config.ok() ? config->base_dir : model_dir;
  }
  if (!IsKevDir(model_dir)) return model_dir;
  Result<KevConfig> config = LoadKevConfig(model_dir);
  return config.ok() ? config->base_dir : model_dir;
}

}  // namespace skein
