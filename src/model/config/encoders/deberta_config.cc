#include "model/config/encoders/deberta_config.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "model/config/config_fields.h"
#include "model/config/encoders/encoder_config.h"

namespace skein {
namespace {

constexpr int64_t kMaxSpan = 512;     // bounds the scratch memory of a tile of attention
constexpr int64_t kSpanMultiple = 8;  // twice the span is whole panels of a product
constexpr int64_t kMaxDebertaTokens = 32768;

Status ReadDebertaShape(const JsonObject& json, ModelConfig* config) {
  SKEIN_RETURN_IF_ERROR(ReadEncoderSizes(json, kMaxDebertaTokens, config));
  if (config->hidden_size % config->num_heads != 0) {
    return json.Error("hidden_size", "is " + std::to_string(config->hidden_size) +
                                         ", no multiple of the " +
                                         std::to_string(config->num_heads) + " attention heads");
  }
  config->head_dim = config->hidden_size / config->num_heads;
  return Status::Ok();
}

// Refuses a size that the reference would use in place of another one.
Status RequireSame(const JsonObject& json, const char* key, int32_t size, const char* other) {
  SKEIN_ASSIGN_OR_RETURN(const auto found, json.Int(key));
  if (!found || *found == size) return Status::Ok();
  return Unsupported(json, key,
                     "is " + std::to_string(*found) + "; only " + std::to_string(size) +
                         " is supported, as " + other + " says");
}

// Published configs have a list, or a text like "p2c|c2p".
Status RequireBothTerms(const JsonObject& json) {
  constexpr char kKey[] = "pos_att_type";
  std::vector<std::string> types;
  Result<std::optional<std::string>> text = json.String(kKey);
  if (text.ok() && *text) {
    for (size_t begin = 0; begin <= (*text)->size();) {
      const size_t end = std::min((*text)->find('|', begin), (*text)->size());
      types.push_back((*text)->substr(begin, end - begin));
      begin = end + 1;
    }
  } else {
    SKEIN_ASSIGN_OR_RETURN(const auto list, json.Strings(kKey));
    types = list.value_or(types);
  }
  std::ranges::sort(types);
  if (types == std::vector<std::string>{"c2p", "p2c"}) return Status::Ok();
  return Unsupported(json, kKey, "must name c2p and p2c, and nothing else");
}

Status ReadRelativeAttention(const JsonObject& json, ModelConfig* config) {
  RelativeAttention& relative = config->encoder.relative;
  SKEIN_ASSIGN_OR_RETURN(const bool is_relative, ReadFlag(json, "relative_attention", false));
  if (!is_relative) {
    return Unsupported(json, "relative_attention", "is false; only true is supported");
  }
  SKEIN_RETURN_IF_ERROR(RequireBothTerms(json));
  // Absent, 0 and -1 mean none.
  SKEIN_ASSIGN_OR_RETURN(const auto distances, json.Int("max_relative_positions"));
  SKEIN_ASSIGN_OR_RETURN(const auto buckets, json.Int("position_buckets"));
  const int64_t most = distances.value_or(-1) < 1 ? config->max_position : *distances;
  const int64_t span = buckets.value_or(-1) > 0 ? *buckets : most;
  const char* const key = buckets.value_or(-1) > 0 ? "position_buckets" : "max_relative_positions";
  if (span > kMaxSpan || span % kSpanMultiple != 0 || most > kMaxPosition) {
    return Unsupported(json, key,
                       "makes " + std::to_string(span) + " distances; supported are multiples of " +
                           std::to_string(kSpanMultiple) + " up to " + std::to_string(kMaxSpan));
  }
  if (buckets.value_or(-1) > 0 && most <= span / 2 + 1) {
    return json.Error("max_relative_positions",
                      "is " + std::to_string(most) + "; must be above half of the " +
                          std::to_string(span) + " position_buckets by 2 at least");
  }
  relative.span = static_cast<int32_t>(span);
  relative.max_distance = buckets.value_or(-1) > 0 ? static_cast<int32_t>(most) : 0;
  SKEIN_ASSIGN_OR_RETURN(relative.shares_projections, ReadFlag(json, "share_att_key", false));
  SKEIN_ASSIGN_OR_RETURN(const auto norm, json.String("norm_rel_ebd"));
  relative.normed = norm == "layer_norm";
  if (norm.value_or("none") != "none" && !relative.normed) {
    return Unsupported(json, "norm_rel_ebd",
                       "is '" + *norm + "'; supported are 'none' and 'layer_norm'");
  }
  return Status::Ok();
}

Status ReadDebertaClassifier(const JsonObject& json, ModelConfig* config) {
  SKEIN_ASSIGN_OR_RETURN(config->num_classes, ReadNumClasses(json));
  SKEIN_RETURN_IF_ERROR(
      RequireSame(json, "pooler_hidden_size", config->hidden_size, "hidden_size"));
  config->encoder.head_activation = Activation::kGelu;
  if (!json.Has("pooler_hidden_act")) return Status::Ok();
  return ReadActivation(json, "pooler_hidden_act", &config->encoder.head_activation);
}

}  // namespace

Status ReadDebertaConfig(const JsonObject& json, ModelConfig* config) {
  SKEIN_RETURN_IF_ERROR(ReadDebertaShape(json, config));
  SKEIN_RETURN_IF_ERROR(RequireSame(json, "embedding_size", config->hidden_size, "hidden_size"));
  SKEIN_RETURN_IF_ERROR(RequireSame(json, "attention_head_size", config->head_dim,
                                    "hidden_size over num_attention_heads"));
  SKEIN_RETURN_IF_ERROR(RequireSame(json, "conv_kernel_size", 0, "a model without a convolution"));
  SKEIN_RETURN_IF_ERROR(ReadActivation(json, "hidden_act", &config->activation));
  SKEIN_RETURN_IF_ERROR(ReadEpsilon(json, "layer_norm_eps", &config->encoder.layer_norm_eps));
  SKEIN_ASSIGN_OR_RETURN(const auto segments, json.Int("type_vocab_size"));
  if (segments.value_or(0) != 0) {
    SKEIN_RETURN_IF_ERROR(
        RequireSize(json, "type_vocab_size", kMaxWidth, &config->encoder.num_segments));
  }
  SKEIN_ASSIGN_OR_RETURN(const bool has_positions, ReadFlag(json, "position_biased_input", true));
  config->encoder.has_positions = has_positions;
  SKEIN_RETURN_IF_ERROR(ReadRelativeAttention(json, config));
  return config->head == Head::kClassifier ? ReadDebertaClassifier(json, config) : Status::Ok();
}

}  // namespace skein
