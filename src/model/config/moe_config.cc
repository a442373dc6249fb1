#include "model/config/moe_config.h"

#include <algorithm>

#include "model/config/config_fields.h"

namespace skein {
namespace {

constexpr int64_t kMaxExperts = 4096;

}  // namespace

Status ReadMoeConfig(const JsonObject& json, ModelConfig* config) {
  // Newer files of the reference library have this name.
  const char* count = json.Has("num_local_experts") ? "num_local_experts" : "num_experts";
  SKEIN_RETURN_IF_ERROR(RequireSize(json, count, kMaxExperts, &config->num_experts));
  SKEIN_RETURN_IF_ERROR(
      RequireSize(json, "num_experts_per_tok", kMaxExperts, &config->experts_per_token));
  if (config->experts_per_token > config->num_experts) {
    return json.Error("num_experts_per_tok", "is " + std::to_string(config->experts_per_token) +
                                                 ", more than the " +
                                                 std::to_string(config->num_experts) + " experts");
  }
  SKEIN_RETURN_IF_ERROR(
      RequireSize(json, "moe_intermediate_size", kMaxWidth, &config->expert_size));
  // If the member is absent, the default is that of the reference library.
  SKEIN_ASSIGN_OR_RETURN(config->norm_expert_weights, ReadFlag(json, "norm_topk_prob", false));
  SKEIN_ASSIGN_OR_RETURN(const auto step, ReadSize(json, "decoder_sparse_step", kMaxLayers));
  SKEIN_ASSIGN_OR_RETURN(const auto dense_layers, json.Ints("mlp_only_layers"));
  config->has_experts.resize(config->num_layers);
  for (int32_t layer = 0; layer < config->num_layers; ++layer) {
    config->has_experts[layer] = (layer + 1) % step.value_or(1) == 0;
  }
  for (const int64_t layer : dense_layers.value_or(std::vector<int64_t>())) {
    if (layer < 0 || layer >= config->num_layers) {
      return json.Error("mlp_only_layers", "holds " + std::to_string(layer) + "; must be in [0, " +
                                               std::to_string(config->num_layers) + ")");
    }
    config->has_experts[layer] = false;
  }
  if (std::ranges::count(config->has_experts, true) > 0) return Status::Ok();
  return json.Error("mlp_only_layers", "and 'decoder_sparse_step' leave no layer with experts");
}

}  // namespace skein
