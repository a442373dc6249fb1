#include "model/dense_module.h"

#include "base/convert.h"
#include "io/json_file.h"
#include "io/model_files.h"
#include "model/config/config_fields.h"

namespace skein {
namespace {

constexpr char kActivationKey[] = "activation_function";

// The names in torch. A module without a name has tanh.
constexpr struct {
  const char* name;
  Activation activation;
} kActivations[] = {{"torch.nn.modules.activation.Tanh", Activation::kTanh},
                    {"torch.nn.modules.linear.Identity", Activation::kNone},
                    {"torch.nn.modules.activation.ReLU", Activation::kRelu},
                    {"torch.nn.modules.activation.GELU", Activation::kGelu}};

Status ReadActivation(const JsonObject& json, Activation* activation) {
  SKEIN_ASSIGN_OR_RETURN(const auto name, json.String(kActivationKey));
  if (!name) return Status::Ok();
  std::string known;
  for (const auto& entry : kActivations) {
    if (*name == entry.name) {
      *activation = entry.activation;
      return Status::Ok();
    }
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return Unsupported(json, kActivationKey, "is '" + *name + "'; supported are " + known);
}

Status CheckPlain(const JsonObject& json, const std::string& input) {
  SKEIN_ASSIGN_OR_RETURN(const auto residual, json.Bool("use_residual"));
  if (residual.value_or(false)) {
    return Unsupported(json, "use_residual", "is true; only false is supported");
  }
  for (const char* key : {"module_input_name", "module_output_name"}) {
    SKEIN_ASSIGN_OR_RETURN(const auto name, json.String(key));
    if (name && *name != input) {
      return Unsupported(json, key, "is '" + *name + "'; only '" + input + "' is supported");
    }
  }
  return Status::Ok();
}

}  // namespace

Result<DenseModule> LoadDenseModule(const std::string& dir, bool of_tokens) {
  SKEIN_ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Load(dir + "/config.json"));
  const JsonObject& json = file.root();
  DenseModule module;
  module.dir = dir;
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "in_features", kMaxWidth, &module.in_features));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "out_features", kMaxWidth, &module.out_features));
  SKEIN_ASSIGN_OR_RETURN(module.has_bias, ReadFlag(json, "bias", true));
  SKEIN_RETURN_IF_ERROR(ReadActivation(json, &module.activation));
  SKEIN_RETURN_IF_ERROR(CheckPlain(json, of_tokens ? "token_embeddings" : "sentence_embedding"));
  return module;
}

Result<DenseWeights> LoadDenseWeights(const DenseModule& module, DType dtype) {
  SKEIN_ASSIGN_OR_RETURN(const ModelFiles files, ModelFiles::Open(module.dir));
  const int64_t n = module.out_features, k = module.in_features;
  SKEIN_ASSIGN_OR_RETURN(const TensorView matrix, files.Find("linear.weight", {n, k}));
  DenseWeights weights;
  weights.activation = module.activation;
  std::vector<float> wide(static_cast<size_t>(n * k));
  Widen(matrix.data, matrix.dtype, wide.size(), wide.data());
  weights.weight = PackedWeight(module.out_features, module.in_features, dtype);
  weights.weight.PackRows(0, module.out_features, wide.data(), DType::kF32);
  if (!module.has_bias) return weights;
  SKEIN_ASSIGN_OR_RETURN(const TensorView bias, files.Find("linear.bias", {n}));
  weights.bias.resize(static_cast<size_t>(n));
  Widen(bias.data, bias.dtype, weights.bias.size(), weights.bias.data());
  return weights;
}

}  // namespace skein
