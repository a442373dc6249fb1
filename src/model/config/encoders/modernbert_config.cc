#include "model/config/encoders/modernbert_config.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/config/config_fields.h"
#include "model/config/encoders/encoder_config.h"
#include "model/config/rope_config.h"
#include "model/config/window_config.h"

namespace skein {
namespace {

Status ReadShape(const JsonObject& json, ModelConfig* config) {
  SKEIN_RETURN_IF_ERROR(ReadEncoderSizes(json, kMaxPosition, config));
  // The elements of a head are rotated in pairs, so their number must be even.
  if (config->hidden_size % (2 * int64_t{config->num_heads}) != 0) {
    return json.Error("hidden_size", "is " + std::to_string(config->hidden_size) +
                                         ", no multiple of twice the " +
                                         std::to_string(config->num_heads) + " attention heads");
  }
  config->head_dim = config->hidden_size / config->num_heads;
  return Status::Ok();
}

Status ReadVariants(const JsonObject& json, ModelConfig* config) {
  SKEIN_RETURN_IF_ERROR(ReadActivation(json, "hidden_activation", &config->activation));
  SKEIN_RETURN_IF_ERROR(ReadEpsilon(json, "norm_eps", &config->encoder.layer_norm_eps));
  SKEIN_ASSIGN_OR_RETURN(config->encoder.norm_bias, ReadFlag(json, "norm_bias", false));
  SKEIN_ASSIGN_OR_RETURN(config->mlp_bias, ReadFlag(json, "mlp_bias", false));
  SKEIN_ASSIGN_OR_RETURN(config->qkv_bias, ReadFlag(json, "attention_bias", false));
  config->o_bias = config->qkv_bias;
  return Status::Ok();
}

// Every n-th layer is global, beginning with the first.
Status ReadGlobalEvery(const JsonObject& json, ModelConfig* config) {
  constexpr char kKey[] = "global_attn_every_n_layers";
  SKEIN_ASSIGN_OR_RETURN(const auto every, ReadSize(json, kKey, kMaxLayers));
  if (!every) return json.Error(kKey, "is missing, and so is 'layer_types'");
  for (int32_t i = 0; i < config->num_layers; ++i) {
    config->local.layers.push_back(i % *every != 0);
  }
  return Status::Ok();
}

Status ReadLocalLayers(const JsonObject& json, ModelConfig* config) {
  SKEIN_ASSIGN_OR_RETURN(auto layers, ReadLayerTypes(json, config->num_layers));
  if (layers) {
    config->local.layers = *std::move(layers);
  } else {
    SKEIN_RETURN_IF_ERROR(ReadGlobalEvery(json, config));
  }
  // The window's size counts both sides.
  int32_t window = 0;
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "local_attention", kMaxPosition, &window));
  config->local.before = config->local.after = window / 2;
  return Status::Ok();
}

// The rope of one type of layers: its object in rope_parameters, else a theta in config.json.
Result<RopeConfig> ReadRopeOf(const JsonObject& json, const char* type, const char* theta_key,
                              int32_t max_position) {
  SKEIN_ASSIGN_OR_RETURN(const auto all, json.Object("rope_parameters"));
  if (!all) return ReadPlainRope(json, theta_key);
  SKEIN_ASSIGN_OR_RETURN(const auto parameters, all->Object(type));
  if (!parameters) return all->Error(type, "is missing");
  return ReadRopeParameters(*parameters, max_position);
}

Status ReadRopes(const JsonObject& json, ModelConfig* config) {
  if (json.Has("rope_scaling")) {
    return Unsupported(json, "rope_scaling",
                       "is there; 'rope_parameters' scale ModernBERT's ropes");
  }
  SKEIN_ASSIGN_OR_RETURN(
      config->rope, ReadRopeOf(json, "full_attention", "global_rope_theta", config->max_position));
  // Without their own theta, local layers have that of global layers.
  if (!json.Has("rope_parameters") && !json.Has("local_rope_theta")) {
    config->local.rope = config->rope;
    return Status::Ok();
  }
  SKEIN_ASSIGN_OR_RETURN(config->local.rope, ReadRopeOf(json, "sliding_attention",
                                                        "local_rope_theta", config->max_position));
  return Status::Ok();
}

// Reads the head that predicts masked tokens. Older configs state none of its members.
Status ReadMaskedHead(const JsonObject& json, ModelConfig* config) {
  SKEIN_ASSIGN_OR_RETURN(config->encoder.head_bias, ReadFlag(json, "classifier_bias", false));
  SKEIN_ASSIGN_OR_RETURN(config->encoder.output_bias, ReadFlag(json, "decoder_bias", true));
  config->encoder.head_activation = Activation::kGelu;
  if (!json.Has("classifier_activation")) return Status::Ok();
  return ReadActivation(json, "classifier_activation", &config->encoder.head_activation);
}

Status ReadClassifier(const JsonObject& json, ModelConfig* config) {
  SKEIN_ASSIGN_OR_RETURN(config->num_classes, ReadNumClasses(json));
  SKEIN_ASSIGN_OR_RETURN(config->encoder.head_bias, ReadFlag(json, "classifier_bias", false));
  SKEIN_RETURN_IF_ERROR(
      ReadActivation(json, "classifier_activation", &config->encoder.head_activation));
  SKEIN_ASSIGN_OR_RETURN(const auto pooling, json.String("classifier_pooling"));
  if (!pooling) return json.Error("classifier_pooling", "is missing");
  if (*pooling != "cls" && *pooling != "mean") {
    return Unsupported(json, "classifier_pooling",
                       "is '" + *pooling + "'; supported are 'cls' and 'mean'");
  }
  config->encoder.classifies_mean = *pooling == "mean";
  return Status::Ok();
}

}  // namespace

Status ReadModernBertConfig(const JsonObject& json, ModelConfig* config) {
  SKEIN_RETURN_IF_ERROR(ReadShape(json, config));
  SKEIN_RETURN_IF_ERROR(ReadVariants(json, config));
  SKEIN_RETURN_IF_ERROR(ReadLocalLayers(json, config));
  SKEIN_RETURN_IF_ERROR(ReadRopes(json, config));
  if (config->head == Head::kMaskedLanguageModel) return ReadMaskedHead(json, config);
  if (config->head != Head::kClassifier) return Status::Ok();
  config->encoder.tensor_prefix = "model.";
  return ReadClassifier(json, config);
}

}  // namespace skein
