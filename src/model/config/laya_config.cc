#include "model/config/laya_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string_view>

#include "model/config/config_fields.h"

namespace skein {
namespace {

constexpr int32_t kHeadDim = 64;
constexpr int32_t kMlpFactor = 4;
constexpr int64_t kMaxActions = 1024;

double ClampTemperature(simdjson::dom::element value) {
  constexpr double kMin = 0.5, kMax = 5;
  double number = 0;
  if (value.is_bool() || value.get(number) != simdjson::SUCCESS || !std::isfinite(number)) return 1;
  return std::clamp(number, kMin, kMax);
}

Status ReadTemperatures(const JsonObject& json, LayaConfig* config) {
  for (const auto& [key, value] : json.members()) {
    if (key == "temperature") {
      simdjson::dom::array list;
      if (value.get(list) != simdjson::SUCCESS || list.size() != config->temperature.size()) {
        return json.Error("temperature", "must be a list of 3 numbers: choice, score and noul");
      }
      std::ranges::transform(list, config->temperature.begin(), ClampTemperature);
    } else if (key == "temperature_by_options" && !value.is_null()) {
      simdjson::dom::object map;
      if (value.get(map) != simdjson::SUCCESS) {
        return json.Error("temperature_by_options", "must be an object of numbers");
      }
      for (const auto& [bucket, t] : map) {
        config->temperature_by_options[std::string(bucket)] = ClampTemperature(t);
      }
    }
  }
  return Status::Ok();
}

}  // namespace

bool IsLayaDir(const std::string& model_dir) {
  std::error_code error;
  return std::filesystem::exists(model_dir + "/" + kLayaConfigFile, error);
}

Result<LayaConfig> LoadLayaConfig(const std::string& model_dir) {
  SKEIN_ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Load(model_dir + "/" + kLayaConfigFile));
  const JsonObject& json = file.root();
  LayaConfig config;
  if (!json.Has("encoder")) return json.Error("encoder", "is missing");
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "head_layers", kMaxLayers, &config.head_layers));
  SKEIN_ASSIGN_OR_RETURN(const auto layout, json.String("option_layout"));
  if (layout && *layout != "sequential" && *layout != "parallel") {
    return Unsupported(json, "option_layout",
                       "is '" + *layout + "'; supported are 'sequential' and 'parallel'");
  }
  config.parallel = layout == "parallel";
  SKEIN_ASSIGN_OR_RETURN(const auto costs, json.Object("act_costs"));
  const int64_t num_actions = 1 + (costs ? static_cast<int64_t>(costs->members().size()) : 0);
  if (num_actions > kMaxActions) return json.Error("act_costs", "has too many members");
  SKEIN_ASSIGN_OR_RETURN(const auto no_actions, json.Bool(kNoActionHead));
  config.num_actions = no_actions.value_or(false) ? 0 : static_cast<int32_t>(num_actions);
  SKEIN_ASSIGN_OR_RETURN(const auto max_len, ReadSize(json, "max_len", kMaxPosition));
  SKEIN_ASSIGN_OR_RETURN(const auto head_max_len, ReadSize(json, "head_max_len", kMaxPosition));
  config.max_len = max_len.value_or(config.max_len);
  config.head_max_len = head_max_len.value_or(config.head_max_len);
  SKEIN_RETURN_IF_ERROR(ReadTemperatures(json, &config));
  return config;
}

std::string LayaHeadsProblem(int64_t width, int64_t num_heads) {
  const int64_t of_head = std::max<int64_t>(1, width / kHeadDim);
  if (num_heads == of_head) return "";
  return "is " + std::to_string(num_heads) + "; the decision head has " + std::to_string(of_head) +
         " heads, and only as many are supported";
}

Status AddLayaHead(const LayaConfig& laya, const JsonObject& encoder, ModelConfig* config) {
  const std::string problem = LayaHeadsProblem(config->hidden_size, config->num_heads);
  if (!problem.empty()) return Unsupported(encoder, "num_attention_heads", problem);
  config->head = Head::kDecision;
  config->decision.num_layers = laya.head_layers;
  config->decision.intermediate_size = kMlpFactor * config->hidden_size;
  config->decision.num_actions = laya.num_actions;
  config->num_layers += laya.head_layers;
  config->local.layers.resize(config->num_layers, false);
  config->encoder.tensor_prefix = "encoder.";
  return Status::Ok();
}

}  // namespace skein
