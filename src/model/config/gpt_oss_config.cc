#include "model/config/gpt_oss_config.h"

#include <string>

#include "model/config/config_fields.h"

namespace skein {
namespace {

// The kernels have the numbers of all published models.
Status CheckConstant(const JsonObject& json, const char* key, double wanted) {
  SKEIN_ASSIGN_OR_RETURN(const auto value, json.Double(key));
  if (value.value_or(wanted) == wanted) return Status::Ok();
  return Unsupported(
      json, key,
      "is " + std::to_string(*value) + "; only " + std::to_string(wanted) + " is supported");
}

}  // namespace

Status ReadGptOss(const JsonObject& json, ModelConfig* config) {
  SKEIN_RETURN_IF_ERROR(CheckConstant(json, "swiglu_alpha", 1.702));
  SKEIN_RETURN_IF_ERROR(CheckConstant(json, "swiglu_limit", 7.0));
  config->activation = Activation::kClampedSwiglu;
  config->decoder.expert_bias = true;
  config->decoder.attention_sinks = true;
  SKEIN_ASSIGN_OR_RETURN(config->o_bias, ReadFlag(json, "attention_bias", true));
  config->qkv_bias = config->o_bias;
  // The default of transformers is a yarn; a file that states none is more likely incomplete.
  if (json.Has("rope_scaling") || json.Has("rope_parameters")) return Status::Ok();
  return json.Error("rope_scaling", "is missing");
}

}  // namespace skein
