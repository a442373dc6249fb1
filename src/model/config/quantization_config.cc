#include "model/config/quantization_config.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/config_fields.h"

namespace skein {
namespace {

constexpr std::string_view kParam = "quantization_config";

// Reads the width of the integers; 4 and 8 are supported.
Result<int32_t> ReadBits(const JsonObject& object, const char* key) {
  SKEIN_ASSIGN_OR_RETURN(const std::optional<int64_t> bits, object.Int(key));
  if (!bits) return object.Error(key, "is missing");
  if (*bits != 4 && *bits != 8) {
    return Unsupported(object, key, "is " + std::to_string(*bits) + "; supported are 4 and 8",
                       kParam);
  }
  return static_cast<int32_t>(*bits);
}

// Refuses a text other than `wanted`. An absent text counts as `wanted`.
Status RequireText(const JsonObject& object, const char* key, const std::string& wanted) {
  SKEIN_ASSIGN_OR_RETURN(const std::optional<std::string> text, object.String(key));
  if (text.value_or(wanted) == wanted) return Status::Ok();
  return Unsupported(object, key, "is '" + *text + "'; only '" + wanted + "' is supported", kParam);
}

Result<QuantizationConfig> ReadGptq(const JsonObject& object) {
  QuantizationConfig config = {.method = QuantizationMethod::kGptq};
  SKEIN_ASSIGN_OR_RETURN(config.bits, ReadBits(object, "bits"));
  SKEIN_ASSIGN_OR_RETURN(const auto format, object.String("checkpoint_format"));
  config.zeros_are_one_less = format.value_or("gptq") != "gptq_v2";
  if (config.zeros_are_one_less) {
    SKEIN_RETURN_IF_ERROR(RequireText(object, "checkpoint_format", "gptq"));
  }
  return config;
}

Result<QuantizationConfig> ReadAwq(const JsonObject& object) {
  QuantizationConfig config = {.method = QuantizationMethod::kAwq};
  SKEIN_ASSIGN_OR_RETURN(config.bits, ReadBits(object, "bits"));
  if (config.bits != 4) return Unsupported(object, "bits", "is 8; AWQ is supported with 4", kParam);
  SKEIN_RETURN_IF_ERROR(RequireText(object, "version", "gemm"));
  return config;
}

Result<QuantizationConfig> ReadFp8(const JsonObject& object) {
  QuantizationConfig config = {.method = QuantizationMethod::kFloat8};
  SKEIN_RETURN_IF_ERROR(RequireText(object, "fmt", "e4m3"));
  SKEIN_ASSIGN_OR_RETURN(const auto block, object.Ints("weight_block_size"));
  if (!block) return config;
  if (block->size() != 2 || (*block)[0] < 1 || (*block)[1] < 1 || (*block)[0] > INT32_MAX ||
      (*block)[1] > INT32_MAX) {
    return object.Error("weight_block_size", "must be two positive numbers");
  }
  config.block_rows = static_cast<int32_t>((*block)[0]);
  config.block_columns = static_cast<int32_t>((*block)[1]);
  return config;
}

Result<QuantizationConfig> ReadCompressedTensors(const JsonObject& object) {
  SKEIN_ASSIGN_OR_RETURN(const auto format, object.String("format"));
  if (!format) return object.Error("format", "is missing");
  SKEIN_ASSIGN_OR_RETURN(const auto groups, object.Object("config_groups"));
  if (!groups) return object.Error("config_groups", "is missing");
  if (groups->members().size() != 1) {
    return Unsupported(
        object, "config_groups",
        "has " + std::to_string(groups->members().size()) + " groups; supported is 1", kParam);
  }
  SKEIN_ASSIGN_OR_RETURN(const auto group, groups->Object((*groups->members().begin()).key));
  SKEIN_ASSIGN_OR_RETURN(const auto weights, group ? group->Object("weights")
                                                   : Result<std::optional<JsonObject>>(group));
  if (!weights) return object.Error("config_groups", "has a group without weights");
  QuantizationConfig config;
  SKEIN_ASSIGN_OR_RETURN(config.bits, ReadBits(*weights, "num_bits"));
  if (*format == "pack-quantized") {
    config.method = QuantizationMethod::kPacked;
  } else if (*format == "int-quantized" && config.bits == 8) {
    config.method = QuantizationMethod::kInteger;
  } else if ((*format == "float-quantized" || *format == "naive-quantized") && config.bits == 8) {
    config.method = QuantizationMethod::kFloat8;
  } else {
    return Unsupported(object, "format",
                       "is '" + *format + "' with " + std::to_string(config.bits) +
                           " bits; supported are pack-quantized, int-quantized and float-quantized",
                       kParam);
  }
  const bool is_float = config.method == QuantizationMethod::kFloat8;
  SKEIN_RETURN_IF_ERROR(RequireText(*weights, "type", is_float ? "float" : "int"));
  return config;
}

}  // namespace

Result<QuantizationConfig> ReadQuantizationConfig(const JsonObject& json) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    SKEIN_ASSIGN_OR_RETURN(const auto object, json.Object(key));
    if (!object || object->members().size() == 0) continue;
    SKEIN_ASSIGN_OR_RETURN(const auto method, object->String("quant_method"));
    if (method == "gptq") return ReadGptq(*object);
    if (method == "awq") return ReadAwq(*object);
    if (method == "fp8") return ReadFp8(*object);
    if (method == "mxfp4") return QuantizationConfig{.method = QuantizationMethod::kMxfp4};
    if (method == "compressed-tensors") return ReadCompressedTensors(*object);
    return Unsupported(json, key,
                       "has quant_method '" + method.value_or("unnamed") +
                           "'; supported are gptq, awq, fp8, mxfp4 and compressed-tensors",
                       kParam);
  }
  return QuantizationConfig();
}

}  // namespace skein
