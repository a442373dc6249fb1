#include "model/config/encoders/rotating_bert_config.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "model/config/config_fields.h"
#include "model/config/encoders/encoder_config.h"
#include "model/config/rope_config.h"

namespace skein {
namespace {

// The names of members: the published NomicBERT has GPT-2's.
struct RotatingKeys {
  const char *hidden, *mlp, *layers, *heads, *positions, *epsilon;
};
constexpr RotatingKeys kLibraryKeys = {
    "hidden_size",         "intermediate_size",       "num_hidden_layers",
    "num_attention_heads", "max_position_embeddings", "layer_norm_eps"};
constexpr RotatingKeys kPublishedNomicKeys = {"n_embd", "n_inner",     "n_layer",
                                              "n_head", "n_positions", "layer_norm_epsilon"};

Status ReadRotatingShape(const JsonObject& json, const RotatingKeys& keys, ModelConfig* config) {
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "vocab_size", kMaxWidth, &config->vocab_size));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, keys.hidden, kMaxWidth, &config->hidden_size));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, keys.mlp, kMaxWidth, &config->intermediate_size));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, keys.layers, kMaxLayers, &config->num_layers));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, keys.heads, kMaxHeads, &config->num_heads));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, keys.positions, kMaxPosition, &config->max_position));
  SKEIN_RETURN_IF_ERROR(ReadEpsilon(json, keys.epsilon, &config->encoder.layer_norm_eps));
  SKEIN_RETURN_IF_ERROR(ReadNumSegments(json, config));
  config->num_kv_heads = config->num_heads;
  // Pairs of elements of a head are rotated.
  if (config->hidden_size % (2 * int64_t{config->num_heads}) != 0) {
    return json.Error(keys.hidden, "is " + std::to_string(config->hidden_size) +
                                       ", no multiple of twice the " +
                                       std::to_string(config->num_heads) + " attention heads");
  }
  config->head_dim = config->hidden_size / config->num_heads;
  SKEIN_ASSIGN_OR_RETURN(const auto head_dim, json.Int("head_dim"));
  if (head_dim.value_or(config->head_dim) != config->head_dim) {
    return Unsupported(json, "head_dim",
                       "is " + std::to_string(*head_dim) + "; only " +
                           std::to_string(config->head_dim) + " is supported");
  }
  return Status::Ok();
}

Status RequireFlagIs(const JsonObject& json, const char* key, bool wanted) {
  SKEIN_ASSIGN_OR_RETURN(const bool flag, ReadFlag(json, key, wanted));
  if (flag == wanted) return Status::Ok();
  return Unsupported(json, key,
                     std::string("is ") + (flag ? "true" : "false") + "; only " +
                         (wanted ? "true" : "false") + " is supported");
}

Status RequireTextIs(const JsonObject& json, const char* key, const char* wanted) {
  SKEIN_ASSIGN_OR_RETURN(const auto text, json.String(key));
  if (text.value_or(wanted) == wanted) return Status::Ok();
  return Unsupported(json, key,
                     "is '" + *text + "'; only '" + std::string(wanted) + "' is supported");
}

// A number that must be the one of the models without a feature; null and absent are that one.
Status RequireNumberIs(const JsonObject& json, const char* key, double wanted) {
  SKEIN_ASSIGN_OR_RETURN(const auto number, json.Double(key));
  if (number.value_or(wanted) == wanted) return Status::Ok();
  return Unsupported(
      json, key,
      "is " + std::to_string(*number) + "; only " + std::to_string(wanted) + " is supported");
}

Status ReadNomic(const JsonObject& json, ModelConfig* config) {
  for (const char* key : {"prenorm", "parallel_block", "causal", "qkv_proj_bias", "mlp_fc1_bias",
                          "mlp_fc2_bias", "rotary_emb_interleaved", "use_rms_norm"}) {
    SKEIN_RETURN_IF_ERROR(RequireFlagIs(json, key, false));
  }
  for (const char* key :
       {"moe_every_n_layers", "num_experts", "rotary_emb_scale_base", "rotary_scaling_factor"}) {
    SKEIN_RETURN_IF_ERROR(RequireNumberIs(json, key, 0));
  }
  SKEIN_RETURN_IF_ERROR(RequireNumberIs(json, "rotary_emb_fraction", 1));
  config->activation = Activation::kSilu;
  if (json.Has("rotary_emb_base")) {
    SKEIN_RETURN_IF_ERROR(RequireTextIs(json, "activation_function", "swiglu"));
    SKEIN_ASSIGN_OR_RETURN(config->rope, ReadPlainRope(json, "rotary_emb_base"));
    return Status::Ok();
  }
  constexpr double kUsualTheta = 1000;
  SKEIN_RETURN_IF_ERROR(ReadActivation(json, "hidden_act", &config->activation));
  SKEIN_ASSIGN_OR_RETURN(config->rope,
                         ReadRopeConfig(json, config->max_position, {.theta = kUsualTheta}));
  return Status::Ok();
}

// The published GTE stretches its rope in a way that only it knows (Su, "Transformer upgrade path
// 11", fixed base): theta grows by the factor, and every frequency is divided by its 2 / d-th
// power.
Result<RopeConfig> ReadNtkRope(const JsonObject& json, const JsonObject& scaling,
                               int32_t head_dim) {
  if (scaling.Has("mixed_b")) {
    return Unsupported(scaling, "mixed_b", "is there; only null is supported");
  }
  SKEIN_ASSIGN_OR_RETURN(RopeConfig rope, ReadPlainRope(json, "rope_theta"));
  SKEIN_ASSIGN_OR_RETURN(const auto factor, scaling.Double("factor"));
  constexpr double kMaxFactor = 1000;
  if (!factor || !(*factor >= 1 && *factor <= kMaxFactor)) {
    return scaling.Error("factor", "must be a number in [1, 1000]");
  }
  rope.theta *= *factor;
  rope.type = RopeType::kLinear;
  rope.factor = std::pow(*factor, 2.0 / head_dim);
  return rope;
}

Status ReadGte(const JsonObject& json, ModelConfig* config) {
  SKEIN_RETURN_IF_ERROR(RequireTextIs(json, "position_embedding_type", "rope"));
  SKEIN_RETURN_IF_ERROR(RequireTextIs(json, "layer_norm_type", "layer_norm"));
  SKEIN_RETURN_IF_ERROR(RequireFlagIs(json, "logn_attention_scale", false));
  SKEIN_RETURN_IF_ERROR(RequireFlagIs(json, "pack_qkv", true));
  SKEIN_RETURN_IF_ERROR(ReadActivation(json, "hidden_act", &config->activation));
  config->qkv_bias = config->o_bias = config->mlp_bias = true;
  SKEIN_ASSIGN_OR_RETURN(const auto scaling, json.Object("rope_scaling"));
  if (scaling) {
    SKEIN_ASSIGN_OR_RETURN(const auto type, scaling->String("type"));
    if (type == "ntk") {
      SKEIN_ASSIGN_OR_RETURN(config->rope, ReadNtkRope(json, *scaling, config->head_dim));
      return Status::Ok();
    }
  }
  constexpr double kUsualTheta = 160000;
  SKEIN_ASSIGN_OR_RETURN(config->rope,
                         ReadRopeConfig(json, config->max_position, {.theta = kUsualTheta}));
  return Status::Ok();
}

}  // namespace

Status ReadRotatingBertConfig(const JsonObject& json, ModelConfig* config) {
  const bool nomic = config->architecture == Architecture::kNomicBert;
  config->encoder.rotates = true;
  SKEIN_RETURN_IF_ERROR(ReadRotatingShape(
      json, nomic && json.Has("n_embd") ? kPublishedNomicKeys : kLibraryKeys, config));
  SKEIN_RETURN_IF_ERROR(nomic ? ReadNomic(json, config) : ReadGte(json, config));
  if (config->head != Head::kClassifier) return Status::Ok();
  config->encoder.tensor_prefix = "new.";
  SKEIN_ASSIGN_OR_RETURN(config->num_classes, ReadNumClasses(json));
  return Status::Ok();
}

}  // namespace skein
