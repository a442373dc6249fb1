#include "model/config/linear_config.h"

#include <algorithm>
#include <string>
#include <vector>

#include "model/config/config_fields.h"

namespace skein {
namespace {

constexpr char kLayerTypes[] = "layer_types";

// Without `layer_types`, every n-th layer attends.
Result<std::vector<bool>> LayersOfInterval(const JsonObject& json, const DecoderFamily& family,
                                           int32_t num_layers) {
  constexpr char kKey[] = "full_attention_interval";
  SKEIN_ASSIGN_OR_RETURN(const auto stated, ReadSize(json, kKey, kMaxLayers));
  const int32_t interval = stated.value_or(DefaultOf(family, kKey).value_or(1));
  std::vector<bool> linear(num_layers);
  for (int32_t i = 0; i < num_layers; ++i) linear[i] = (i + 1) % interval != 0;
  return linear;
}

Result<std::vector<bool>> ReadLinear(const JsonObject& json, const DecoderFamily& family,
                                     int32_t num_layers) {
  SKEIN_ASSIGN_OR_RETURN(const auto types, json.Strings(kLayerTypes));
  if (!types) return LayersOfInterval(json, family, num_layers);
  if (std::ssize(*types) != num_layers) {
    return json.Error(kLayerTypes, "has " + std::to_string(types->size()) +
                                       " entries; the model has " + std::to_string(num_layers) +
                                       " layers");
  }
  std::vector<bool> linear;
  for (const std::string& type : *types) {
    if (type != "full_attention" && type != "linear_attention") {
      return Unsupported(
          json, kLayerTypes,
          "holds '" + type + "'; supported are 'full_attention' and 'linear_attention'");
    }
    linear.push_back(type == "linear_attention");
  }
  return linear;
}

Status ReadShapes(const JsonObject& json, const DecoderFamily& family, LinearLayers* linear) {
  const struct {
    const char* key;
    int64_t max;
    int32_t* out;
  } kSizes[] = {{"linear_num_key_heads", kMaxHeads, &linear->num_k_heads},
                {"linear_num_value_heads", kMaxHeads, &linear->num_v_heads},
                {"linear_key_head_dim", kMaxWidth, &linear->k_dim},
                {"linear_value_head_dim", kMaxWidth, &linear->v_dim}};
  for (const auto& size : kSizes) {
    SKEIN_ASSIGN_OR_RETURN(const auto stated, ReadSize(json, size.key, size.max));
    *size.out = stated.value_or(DefaultOf(family, size.key).value_or(0));
  }
  constexpr char kWidth[] = "linear_conv_kernel_dim";
  SKEIN_ASSIGN_OR_RETURN(const auto width, ReadSize(json, kWidth, kMaxWidth));
  if (width.value_or(kConvWidth) != kConvWidth) {
    return Unsupported(json, kWidth, "is " + std::to_string(*width) + "; only 4 is supported");
  }
  if (linear->k_dim % 4 != 0 || linear->k_dim > kMaxDeltaDim) {
    return Unsupported(json, "linear_key_head_dim",
                       "is " + std::to_string(linear->k_dim) +
                           "; supported are multiples of 4 up to " + std::to_string(kMaxDeltaDim));
  }
  if (linear->v_dim % kDeltaCols != 0 || linear->v_dim > kMaxDeltaDim) {
    return Unsupported(json, "linear_value_head_dim",
                       "is " + std::to_string(linear->v_dim) + "; supported are multiples of " +
                           std::to_string(kDeltaCols) + " up to " + std::to_string(kMaxDeltaDim));
  }
  if (linear->num_v_heads % linear->num_k_heads != 0) {
    return json.Error("linear_num_value_heads",
                      "is " + std::to_string(linear->num_v_heads) + "; must be a multiple of the " +
                          std::to_string(linear->num_k_heads) + " heads of keys");
  }
  return Status::Ok();
}

}  // namespace

Status ReadLinearLayers(const JsonObject& json, const DecoderFamily& family, ModelConfig* config) {
  config->decoder.norm_offset = 1;
  config->decoder.attention_gate = true;
  for (const auto& [key, supported] :
       {std::pair("attn_output_gate", true), std::pair("attention_bias", false)}) {
    SKEIN_ASSIGN_OR_RETURN(const bool flag, ReadFlag(json, key, supported));
    if (flag != supported) {
      return Unsupported(json, key,
                         std::string("is ") + (flag ? "true" : "false") + "; only " +
                             (supported ? "true" : "false") + " is supported");
    }
  }
  SKEIN_ASSIGN_OR_RETURN(auto linear, ReadLinear(json, family, config->num_layers));
  const auto num_linear = std::ranges::count(linear, true);
  if (num_linear == 0) return Status::Ok();
  if (num_linear == config->num_layers) {
    return Unsupported(json, kLayerTypes,
                       "holds no 'full_attention'; a model without such a layer is not supported");
  }
  config->decoder.linear.layers = std::move(linear);
  config->decoder.linear.fused_ba = family.fused_linear_inputs;
  SKEIN_ASSIGN_OR_RETURN(const bool is_split, ReadFlag(json, kSplitLinearInputs, false));
  config->decoder.linear.fused_qkvz = family.fused_linear_inputs && !is_split;
  SKEIN_ASSIGN_OR_RETURN(config->decoder.linear.tiled_v_heads,
                         ReadFlag(json, kTiledValueHeads, false));
  return ReadShapes(json, family, &config->decoder.linear);
}

}  // namespace skein
