#include "model/config/window_config.h"

#include <algorithm>
#include <string>
#include <utility>

#include "model/config/config_fields.h"

namespace skein {
namespace {

constexpr char kWindow[] = "sliding_window";

// Every n-th layer is global.
Result<std::vector<bool>> LayersOfPattern(const JsonObject& json, const DecoderFamily& family,
                                          const ModelConfig& config) {
  // Newer writers prefix the member with an underscore.
  const char* key =
      json.Has("_sliding_window_pattern") ? "_sliding_window_pattern" : "sliding_window_pattern";
  SKEIN_ASSIGN_OR_RETURN(const auto pattern, ReadSize(json, key, kMaxLayers));
  std::vector<bool> layers(config.num_layers);
  for (int32_t i = 0; i < config.num_layers; ++i) {
    layers[i] = (i + 1) % pattern.value_or(family.window_pattern) != 0;
  }
  return layers;
}

// The layers that have the window by the family's rule, if there are no `layer_types`.
Result<std::vector<bool>> LayersOfRule(const JsonObject& json, const DecoderFamily& family,
                                       const ModelConfig& config) {
  std::vector<bool> layers(config.num_layers, true);
  if (family.window == WindowRule::kPattern) return LayersOfPattern(json, family, config);
  if (!config.decoder.unrotated_layers.empty()) return config.decoder.unrotated_layers;  // SmolLM3
  const bool alternates = family.window == WindowRule::kAlternate;
  // In Qwen3's mixtures of experts, all layers have the window.
  if (!alternates && (family.window != WindowRule::kSwitched || config.num_experts > 0)) {
    return layers;
  }
  SKEIN_ASSIGN_OR_RETURN(const auto full_layers, json.Int("max_window_layers"));
  // The default of these architectures is 28.
  const int64_t border = full_layers.value_or(28);
  for (int32_t i = 0; i < config.num_layers; ++i) {
    layers[i] = alternates ? i % 2 == 0 && i < border : i >= border;
  }
  return layers;
}

}  // namespace

Result<std::optional<std::vector<bool>>> ReadLayerTypes(const JsonObject& json,
                                                        int32_t num_layers) {
  constexpr char kKey[] = "layer_types";
  SKEIN_ASSIGN_OR_RETURN(const auto types, json.Strings(kKey));
  if (!types) return std::optional<std::vector<bool>>();
  if (std::ssize(*types) != num_layers) {
    return json.Error(kKey, "has " + std::to_string(types->size()) + " entries; the model has " +
                                std::to_string(num_layers) + " layers");
  }
  std::vector<bool> local;
  for (const std::string& type : *types) {
    if (type != "full_attention" && type != "sliding_attention") {
      return Unsupported(
          json, kKey,
          "holds '" + type + "'; supported are 'full_attention' and 'sliding_attention'");
    }
    local.push_back(type == "sliding_attention");
  }
  return std::optional(std::move(local));
}

Status ReadWindow(const JsonObject& json, const DecoderFamily& family, ModelConfig* config) {
  if (family.window == WindowRule::kNone) return Status::Ok();
  SKEIN_ASSIGN_OR_RETURN(auto layers, ReadLayerTypes(json, config->num_layers));
  const bool is_switched =
      family.window == WindowRule::kSwitched || family.window == WindowRule::kAlternate;
  bool is_on = true;
  if (is_switched) {
    SKEIN_ASSIGN_OR_RETURN(is_on, ReadFlag(json, "use_sliding_window", false));
  }
  std::optional<int32_t> window;
  // The size of a window that is switched off may be 0.
  if (is_on) {
    SKEIN_ASSIGN_OR_RETURN(window, ReadSize(json, kWindow, kMaxPosition));
  }
  if (!is_switched && !json.Contains(kWindow)) {
    window = DefaultOf(family, kWindow);
    if (!window && !family.window_may_lack)
      return json.Error(kWindow, "is missing (null where there is none)");
  }
  if (!window && layers && std::ranges::count(*layers, true) > 0) {
    return json.Error("layer_types", "holds 'sliding_attention', but the model has no window");
  }
  // For a window on both sides, the config states the sum of the two.
  if (window && config->bidirectional) window = *window / 2 + 1;
  if (!window && family.window == WindowRule::kPattern) return json.Error(kWindow, "is null");
  if (!window) return Status::Ok();
  const bool hides_keys = *window < config->max_position;
  // Local layers may have a rope of their own, however wide the window is.
  const bool own_rope = family.local_rope_theta > 0 || family.local_rope_is_plain;
  if (!hides_keys && !own_rope) return Status::Ok();
  if (!layers) {
    SKEIN_ASSIGN_OR_RETURN(layers, LayersOfRule(json, family, *config));
  }
  if (std::ranges::count(*layers, true) == 0) return Status::Ok();
  config->local.layers = *std::move(layers);
  config->local.before = *window - 1;
  config->local.after = config->bidirectional ? *window - 1 : 0;
  return Status::Ok();
}

}  // namespace skein
