#include "model/config/moe_config.h"

#include <algorithm>

#include "io/model_files.h"
#include "model/config/config_fields.h"

namespace skein {
namespace {

// Reads which layers have experts.
Status ReadSparseLayers(const JsonObject& json, ModelConfig* config) {
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

}  // namespace

Status ReadMoeConfig(const JsonObject& json, const DecoderFamily& family, ModelConfig* config) {
  const ExpertRules& rules = family.experts;
  // Newer files of the reference library have this name.
  const char* count = json.Has("num_local_experts") ? "num_local_experts" : "num_experts";
  SKEIN_RETURN_IF_ERROR(ReadOwnSize(json, family, count, kMaxExperts, &config->num_experts));
  SKEIN_RETURN_IF_ERROR(
      ReadOwnSize(json, family, "num_experts_per_tok", kMaxExperts, &config->experts_per_token));
  if (config->experts_per_token > config->num_experts) {
    return json.Error("num_experts_per_tok", "is " + std::to_string(config->experts_per_token) +
                                                 ", more than the " +
                                                 std::to_string(config->num_experts) + " experts");
  }
  SKEIN_RETURN_IF_ERROR(ReadOwnSize(json, family, rules.size_key, kMaxWidth, &config->expert_size));
  if (rules.has_shared) {
    SKEIN_RETURN_IF_ERROR(ReadOwnSize(json, family, "shared_expert_intermediate_size", kMaxWidth,
                                      &config->decoder.shared_expert_size));
  }
  if (rules.replace_mlps) config->intermediate_size = config->decoder.shared_expert_size;
  config->norm_expert_weights = rules.norms_weights;
  if (rules.has_norm_flag) {
    SKEIN_ASSIGN_OR_RETURN(config->norm_expert_weights,
                           ReadFlag(json, "norm_topk_prob", rules.norms_weights));
  }
  if (!rules.in_every_layer) return ReadSparseLayers(json, config);
  config->has_experts.assign(config->num_layers, true);
  return Status::Ok();
}

}  // namespace skein
