#include "model/config/decoder_config.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "model/config/config_fields.h"
#include "model/config/decoder_family.h"
#include "model/config/encoders/encoder_config.h"
#include "model/config/gpt_oss_config.h"
#include "model/config/linear_config.h"
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
  const struct {
    const char* key;
    int64_t max;
    int32_t* out;
  } kSizes[] = {{"vocab_size", kMaxWidth, &config->vocab_size},
                {"hidden_size", kMaxWidth, &config->hidden_size},
                {"num_hidden_layers", kMaxLayers, &config->num_layers},
                {"num_attention_heads", kMaxHeads, &config->num_heads},
                {"max_position_embeddings", kMaxPosition, &config->max_position}};
  for (const auto& size : kSizes) {
    SKEIN_RETURN_IF_ERROR(ReadOwnSize(json, family, size.key, size.max, size.out));
  }
  if (!family.experts.replace_mlps) {
    SKEIN_RETURN_IF_ERROR(
        ReadOwnSize(json, family, "intermediate_size", kMaxWidth, &config->intermediate_size));
  }
  constexpr char kKvHeads[] = "num_key_value_heads";
  // In every family, null means that each query head has its own K and V.
  config->num_kv_heads = config->num_heads;
  if (json.Has(kKvHeads) || !(json.Contains(kKvHeads) || family.kv_heads_may_lack)) {
    SKEIN_RETURN_IF_ERROR(ReadOwnSize(json, family, kKvHeads, kMaxHeads, &config->num_kv_heads));
  }
  if (config->num_heads % config->num_kv_heads != 0) {
    return json.Error("num_key_value_heads",
                      "is " + std::to_string(config->num_kv_heads) + "; must divide the " +
                          std::to_string(config->num_heads) + " attention heads");
  }
  return ReadHeadDim(json, family, config);
}

// Reads the activation of the gate.
Status ReadGate(const JsonObject& json, const DecoderFamily& family, ModelConfig* config) {
  if (family.is_gemma) {
    // Gemma 1 was published with `hidden_act`, in which "gelu" means the one by tanh.
    const bool first = family.architecture == Architecture::kGemma;
    const char* const key = first ? "hidden_act" : "hidden_activation";
    config->activation = Activation::kGeluTanh;
    if (!json.Has(key)) return Status::Ok();
    SKEIN_RETURN_IF_ERROR(ReadActivation(json, key, &config->activation));
    if (first && config->activation == Activation::kGelu)
      config->activation = Activation::kGeluTanh;
    return Status::Ok();
  }
  SKEIN_ASSIGN_OR_RETURN(const auto activation, json.String("hidden_act"));
  if (activation.value_or("silu") == "silu") return Status::Ok();
  return Unsupported(json, "hidden_act", "is '" + *activation + "'; only 'silu' is supported");
}

// Reads a soft cap. Null means that there is none.
Status ReadCap(const JsonObject& json, const char* key, float standard, float* out) {
  constexpr double kLeast = 1e-3, kMost = 1e6;
  *out = json.Contains(key) ? 0 : standard;
  if (!json.Has(key)) return Status::Ok();
  if (standard == 0) return Unsupported(json, key, "is there; only null is supported");
  SKEIN_ASSIGN_OR_RETURN(const auto cap, json.Double(key));
  if (!(*cap >= kLeast && *cap <= kMost)) {
    return json.Error(key, "is " + std::to_string(*cap) + "; must be null or in [0.001, 1e6]");
  }
  *out = static_cast<float>(*cap);
  return Status::Ok();
}

// Reads the members that only Gemma has.
Status ReadGemma(const JsonObject& json, const DecoderFamily& family, ModelConfig* config) {
  DecoderFields& decoder = config->decoder;
  SKEIN_RETURN_IF_ERROR(
      ReadCap(json, "attn_logit_softcapping", family.score_cap, &decoder.score_cap));
  SKEIN_RETURN_IF_ERROR(
      ReadCap(json, "final_logit_softcapping", family.logits_cap, &decoder.logits_cap));
  decoder.norm_offset = 1;
  decoder.embedding_scale = static_cast<float>(std::sqrt(double(config->hidden_size)));
  decoder.rounds_embedding_scale = true;
  if (family.architecture != Architecture::kGemma) {
    int32_t scalar = 0;
    SKEIN_RETURN_IF_ERROR(ReadOwnSize(json, family, "query_pre_attn_scalar", kMaxWidth, &scalar));
    decoder.attention_scale = 1 / std::sqrt(double(scalar));
  }
  SKEIN_ASSIGN_OR_RETURN(config->bidirectional,
                         ReadFlag(json, "use_bidirectional_attention", false));
  if (config->bidirectional && config->head != Head::kNone) {
    return Unsupported(json, "use_bidirectional_attention",
                       "is true; that is supported for models without a head");
  }
  return Status::Ok();
}

// Reads a factor; an absent factor is 1.
Result<double> ReadFactor(const JsonObject& json, const char* key) {
  SKEIN_ASSIGN_OR_RETURN(const auto factor, json.Double(key));
  if (factor && !(*factor >= 1e-6 && *factor <= 1e6)) {
    return json.Error(key, "is " + std::to_string(*factor) + "; must be in [1e-6, 1e6]");
  }
  return factor.value_or(1);
}

// Reads Granite's factors.
Status ReadMultipliers(const JsonObject& json, ModelConfig* config) {
  DecoderFields& decoder = config->decoder;
  SKEIN_ASSIGN_OR_RETURN(const double embedding, ReadFactor(json, "embedding_multiplier"));
  SKEIN_ASSIGN_OR_RETURN(decoder.attention_scale, ReadFactor(json, "attention_multiplier"));
  SKEIN_ASSIGN_OR_RETURN(const double residual, ReadFactor(json, "residual_multiplier"));
  SKEIN_ASSIGN_OR_RETURN(const double logits, ReadFactor(json, "logits_scaling"));
  decoder.embedding_scale = static_cast<float>(embedding);
  decoder.residual_scale = static_cast<float>(residual);
  decoder.logits_divisor = static_cast<float>(logits);
  return Status::Ok();
}

// Reads SmolLM3's layers without rope: the layers with a 0 in `no_rope_layers`, else every fourth
// layer.
Status ReadRotatedLayers(const JsonObject& json, ModelConfig* config) {
  constexpr char kKey[] = "no_rope_layers";
  SKEIN_ASSIGN_OR_RETURN(const auto rotated, json.Ints(kKey));
  SKEIN_ASSIGN_OR_RETURN(const auto interval, ReadSize(json, "no_rope_layer_interval", kMaxLayers));
  if (rotated && std::ssize(*rotated) < config->num_layers) {
    return json.Error(kKey, "has " + std::to_string(rotated->size()) + " entries; the model has " +
                                std::to_string(config->num_layers) + " layers");
  }
  for (int32_t i = 0; i < config->num_layers; ++i) {
    const bool rotates = rotated ? (*rotated)[i] != 0 : (i + 1) % interval.value_or(4) != 0;
    config->decoder.unrotated_layers.push_back(!rotates);
  }
  return Status::Ok();
}

Status ReadVariants(const JsonObject& json, const DecoderFamily& family, ModelConfig* config) {
  SKEIN_RETURN_IF_ERROR(ReadGate(json, family, config));
  if (family.is_gemma && !json.Has("rms_norm_eps")) {
    config->decoder.rms_norm_eps = 1e-6f;
  } else {
    SKEIN_RETURN_IF_ERROR(ReadEpsilon(json, "rms_norm_eps", &config->decoder.rms_norm_eps));
  }
  SKEIN_ASSIGN_OR_RETURN(config->tie_embeddings,
                         ReadFlag(json, "tie_word_embeddings", family.tie_embeddings));
  SKEIN_ASSIGN_OR_RETURN(const bool attention_bias, ReadFlag(json, "attention_bias", false));
  SKEIN_ASSIGN_OR_RETURN(const bool mlp_bias, ReadFlag(json, "mlp_bias", false));
  config->o_bias = family.attention_bias && attention_bias;
  config->qkv_bias = family.qkv_bias || config->o_bias;
  if (family.qkv_bias_may_lack) {
    SKEIN_ASSIGN_OR_RETURN(config->qkv_bias, ReadFlag(json, "qkv_bias", true));
  }
  if (family.may_clip && json.Has("clip_qkv")) {
    return Unsupported(json, "clip_qkv", "is there; only null is supported");
  }
  config->mlp_bias = family.mlp_bias && mlp_bias;
  config->decoder.qk_norm = family.qk_norm;
  config->decoder.qk_norm_spans_heads = family.qk_norm_spans_heads;
  config->decoder.fused_projections = family.fused_projections;
  config->decoder.norms = family.norms;
  if (family.is_gemma) return ReadGemma(json, family, config);
  if (family.has_multipliers) return ReadMultipliers(json, config);
  return family.may_not_rotate ? ReadRotatedLayers(json, config) : Status::Ok();
}

// A yarn config states either the original or the stretched context. The longer one is used.
void StretchContext(ModelConfig* config) {
  if (config->rope.type != RopeType::kYarn) return;
  const double reached =
      std::min(config->rope.original_max_position * config->rope.factor, double{kMaxPosition});
  config->max_position = std::max(config->max_position, static_cast<int32_t>(reached));
}

// Reads the ropes of global and of local layers. `rope_parameters` may have one rope for each type
// of layer.
Status ReadRopes(const JsonObject& json, const DecoderFamily& family, ModelConfig* config) {
  constexpr char kGlobal[] = "full_attention", kLocal[] = "sliding_attention";
  SKEIN_ASSIGN_OR_RETURN(const auto all, json.Object("rope_parameters"));
  if (!all || !all->Contains(kGlobal)) {
    const RopeRules rules = {family.rope_theta, family.partial_rotation ? config->head_dim : 0,
                             family.rotated_part};
    SKEIN_ASSIGN_OR_RETURN(config->rope, ReadRopeConfig(json, config->max_position, rules));
    config->local.rope = config->rope;
    if (family.local_rope_is_plain) config->local.rope = {.theta = config->rope.theta};
    if (family.local_rope_theta == 0) return Status::Ok();
    config->local.rope = {.theta = family.local_rope_theta};
    constexpr char kTheta[] = "rope_local_base_freq";
    if (!json.Has(kTheta)) return Status::Ok();
    SKEIN_ASSIGN_OR_RETURN(config->local.rope, ReadPlainRope(json, kTheta));
    return Status::Ok();
  }
  for (const auto& [type, rope] :
       {std::pair(kGlobal, &config->rope), std::pair(kLocal, &config->local.rope)}) {
    SKEIN_ASSIGN_OR_RETURN(const auto parameters, all->Object(type));
    if (!parameters) return all->Error(type, "is missing");
    SKEIN_ASSIGN_OR_RETURN(*rope, ReadRopeParameters(*parameters, config->max_position));
  }
  return Status::Ok();
}

}  // namespace

Status ReadDecoderConfig(const JsonObject& json, ModelConfig* config) {
  const DecoderFamily& family = FamilyOf(config->architecture);
  SKEIN_RETURN_IF_ERROR(ReadShape(json, family, config));
  SKEIN_RETURN_IF_ERROR(ReadVariants(json, family, config));
  if (family.has_linear_layers) SKEIN_RETURN_IF_ERROR(ReadLinearLayers(json, family, config));
  if (config->architecture == Architecture::kGptOss) {
    SKEIN_RETURN_IF_ERROR(ReadGptOss(json, config));
  }
  if (family.experts.exist) SKEIN_RETURN_IF_ERROR(ReadMoeConfig(json, family, config));
  if (config->decoder.reward_mlp) {
    config->num_classes = 1;  // a reward model has one output, whatever its labels
  } else if (config->head == Head::kClassifier) {
    SKEIN_ASSIGN_OR_RETURN(config->num_classes, ReadNumClasses(json));
  }
  SKEIN_RETURN_IF_ERROR(ReadRopes(json, family, config));
  StretchContext(config);
  return ReadWindow(json, family, config);
}

}  // namespace skein
