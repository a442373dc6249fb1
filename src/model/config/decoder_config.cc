#include "model/config/decoder_config.h"

#include <algorithm>
#include <string>

#include "model/config/config_fields.h"
#include "model/config/decoder_family.h"
#include "model/config/encoder_config.h"
#include "model/config/moe_config.h"
#include "model/config/rope_config.h"
#include "model/config/window_config.h"

namespace skein {
namespace {

constexpr int64_t kMaxHeadDim = 4096;

Status ReadHeadDim(const JsonObject& json, const DecoderFamily& family, ModelConfig* config) {
  SKEIN_ASSIGN_OR_RETURN(const auto head_dim, ReadSize(json, "head_dim", kMaxHeadDim));
  if (head_dim) {
    config->head_dim = *head_dim;
  } else if (family.head_dim > 0) {
    config->head_dim = family.head_dim;
  } else if (config->hidden_size % config->num_heads == 0) {
    config->head_dim = config->hidden_size / config->num_heads;
  } else {
    return json.Error("hidden_size", "is " + std::to_string(config->hidden_size) +
                                         ", no multiple of the " +
                                         std::to_string(config->num_heads) +
                                         " attention heads, and 'head_dim' is missing");
  }
  if (config->head_dim % 2 != 0 || config->head_dim > kMaxHeadDim) {
    return json.Error("head_dim", "is " + std::to_string(config->head_dim) +
                                      "; must be even and at most " + std::to_string(kMaxHeadDim));
  }
  if (int64_t{config->num_heads} * config->head_dim > kMaxWidth) {
    return json.Error("num_attention_heads",
                      "times 'head_dim' is above " + std::to_string(kMaxWidth));
  }
  return Status::Ok();
}

Status ReadShape(const JsonObject& json, const DecoderFamily& family, ModelConfig* config) {
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "vocab_size", kMaxWidth, &config->vocab_size));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "hidden_size", kMaxWidth, &config->hidden_size));
  SKEIN_RETURN_IF_ERROR(
      RequireSize(json, "intermediate_size", kMaxWidth, &config->intermediate_size));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "num_hidden_layers", kMaxLayers, &config->num_layers));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "num_attention_heads", kMaxHeads, &config->num_heads));
  SKEIN_RETURN_IF_ERROR(
      RequireSize(json, "max_position_embeddings", kMaxPosition, &config->max_position));

  SKEIN_ASSIGN_OR_RETURN(const auto kv_heads, ReadSize(json, "num_key_value_heads", kMaxHeads));
  // Null means one K and V per query head in every family.
  if (!kv_heads && !json.Contains("num_key_value_heads") && !family.kv_heads_may_lack) {
    return json.Error("num_key_value_heads", "is missing");
  }
  config->num_kv_heads = kv_heads.value_or(config->num_heads);
  if (config->num_heads % config->num_kv_heads != 0) {
    return json.Error("num_key_value_heads",
                      "is " + std::to_string(config->num_kv_heads) + "; must divide the " +
                          std::to_string(config->num_heads) + " attention heads");
  }
  return ReadHeadDim(json, family, config);
}

Status ReadVariants(const JsonObject& json, const DecoderFamily& family, ModelConfig* config) {
  SKEIN_ASSIGN_OR_RETURN(const auto activation, json.String("hidden_act"));
  if (activation.value_or("silu") != "silu") {
    return Unsupported(json, "hidden_act", "is '" + *activation + "'; only 'silu' is supported");
  }
  SKEIN_RETURN_IF_ERROR(ReadEpsilon(json, "rms_norm_eps", &config->decoder.rms_norm_eps));
  // The default of all these families is an untied output matrix.
  SKEIN_ASSIGN_OR_RETURN(config->tie_embeddings, ReadFlag(json, "tie_word_embeddings", false));
  SKEIN_ASSIGN_OR_RETURN(const bool attention_bias, ReadFlag(json, "attention_bias", false));
  SKEIN_ASSIGN_OR_RETURN(const bool mlp_bias, ReadFlag(json, "mlp_bias", false));
  config->o_bias = family.attention_bias && attention_bias;
  config->qkv_bias = family.qkv_bias || config->o_bias;
  config->mlp_bias = family.mlp_bias && mlp_bias;
  config->decoder.qk_norm = family.qk_norm;
  return Status::Ok();
}

// Yarn's config states either the original context or the stretched one: the longer one holds.
void StretchContext(ModelConfig* config) {
  if (config->rope.type != RopeType::kYarn) return;
  const double reached =
      std::min(config->rope.original_max_position * config->rope.factor, double{kMaxPosition});
  config->max_position = std::max(config->max_position, static_cast<int32_t>(reached));
}

}  // namespace

Status ReadDecoderConfig(const JsonObject& json, ModelConfig* config) {
  const DecoderFamily& family = FamilyOf(config->architecture);
  SKEIN_RETURN_IF_ERROR(ReadShape(json, family, config));
  SKEIN_RETURN_IF_ERROR(ReadVariants(json, family, config));
  if (config->architecture == Architecture::kQwen3Moe) {
    SKEIN_RETURN_IF_ERROR(ReadMoeConfig(json, config));
  }
  if (config->decoder.reward_mlp) {
    config->num_classes = 1;  // a reward model has one output, whatever labels its config states
  } else if (config->head == Head::kClassifier) {
    SKEIN_ASSIGN_OR_RETURN(config->num_classes, ReadNumClasses(json));
  }
  SKEIN_ASSIGN_OR_RETURN(config->rope,
                         ReadRopeConfig(json, config->max_position, family.rope_theta));
  StretchContext(config);
  return ReadWindow(json, family, config);
}

}  // namespace skein
