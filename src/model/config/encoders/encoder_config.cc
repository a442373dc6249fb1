#include "model/config/encoders/encoder_config.h"

#include <optional>
#include <string>

#include "io/model_files.h"
#include "model/config/config_fields.h"

namespace skein {
namespace {

constexpr int64_t kMaxClasses = 1 << 20;

// MPNet's values, which its code states and its config cannot change.
constexpr int32_t kMpnetPadding = 1;
constexpr RelativeBias kMpnetBias = {.num_buckets = 32, .max_distance = 128};

// The names of the members. DistilBERT's names differ.
struct EncoderKeys {
  const char *hidden, *mlp, *layers, *heads, *activation;
};

constexpr EncoderKeys kBertKeys = {"hidden_size", "intermediate_size", "num_hidden_layers",
                                   "num_attention_heads", "hidden_act"};
constexpr EncoderKeys kDistilBertKeys = {"dim", "hidden_dim", "n_layers", "n_heads", "activation"};

Status ReadShape(const JsonObject& json, const EncoderKeys& keys, ModelConfig* config) {
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "vocab_size", kMaxWidth, &config->vocab_size));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, keys.hidden, kMaxWidth, &config->hidden_size));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, keys.mlp, kMaxWidth, &config->intermediate_size));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, keys.layers, kMaxLayers, &config->num_layers));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, keys.heads, kMaxHeads, &config->num_heads));
  SKEIN_RETURN_IF_ERROR(
      RequireSize(json, "max_position_embeddings", kMaxPosition, &config->max_position));
  config->num_kv_heads = config->num_heads;
  if (config->hidden_size % config->num_heads != 0) {
    return json.Error(keys.hidden, "is " + std::to_string(config->hidden_size) +
                                       ", no multiple of the " + std::to_string(config->num_heads) +
                                       " attention heads");
  }
  config->head_dim = config->hidden_size / config->num_heads;
  return Status::Ok();
}

// In MPNet and in RoBERTa's family, positions begin behind the padding token's row of the table.
Status ReadPositions(const JsonObject& json, ModelConfig* config) {
  SKEIN_ASSIGN_OR_RETURN(const auto type, json.String("position_embedding_type"));
  if (type && *type != "absolute") {
    return Unsupported(json, "position_embedding_type",
                       "is '" + *type + "'; only 'absolute' is supported");
  }
  const bool roberta = config->architecture == Architecture::kRoberta ||
                       config->architecture == Architecture::kXlmRoberta;
  const bool mpnet = config->architecture == Architecture::kMpnet;
  if (!roberta && !mpnet) return Status::Ok();
  SKEIN_ASSIGN_OR_RETURN(auto padding, json.Int("pad_token_id"));
  if (mpnet) padding = kMpnetPadding;
  if (!padding) return json.Error("pad_token_id", "is missing");
  if (*padding < 0 || *padding + 1 >= config->max_position) {
    return json.Error("pad_token_id", "is " + std::to_string(*padding) +
                                          "; positions start behind it, so it must be in [0, " +
                                          std::to_string(config->max_position - 1) + ")");
  }
  config->encoder.first_position = static_cast<int32_t>(*padding) + 1;
  config->max_position -= config->encoder.first_position;
  return Status::Ok();
}

Status ReadRelativeBias(const JsonObject& json, ModelConfig* config) {
  constexpr char kKey[] = "relative_attention_num_buckets";
  SKEIN_ASSIGN_OR_RETURN(const auto buckets, json.Int(kKey));
  if (buckets.value_or(kMpnetBias.num_buckets) != kMpnetBias.num_buckets) {
    return Unsupported(json, kKey,
                       "is " + std::to_string(*buckets) + "; only " +
                           std::to_string(kMpnetBias.num_buckets) + " is supported");
  }
  config->encoder.relative_bias = kMpnetBias;
  return Status::Ok();
}

}  // namespace

Status FindTensorPrefix(const std::string& model_dir, ModelConfig* config) {
  Result<ModelFiles> files = ModelFiles::Open(model_dir);
  if (files.status().code() == StatusCode::kNotFound) return Status::Ok();
  SKEIN_RETURN_IF_ERROR(files.status());
  for (const char* prefix :
       {"", "model.", "bert.", "roberta.", "distilbert.", "new.", "gte.", "deberta.", "mpnet."}) {
    for (const char* words : {"embeddings.tok_embeddings", "embeddings.word_embeddings"}) {
      const std::string name = std::string(prefix).append(words).append(".weight");
      if (files->Has(name)) config->encoder.tensor_prefix = prefix;
    }
  }
  config->encoder.library_names =
      config->encoder.rotates &&
      files->Has(config->encoder.tensor_prefix + "layers.0.self_attn.o_proj.weight");
  return Status::Ok();
}

Status ReadEncoderSizes(const JsonObject& json, int64_t max_tokens, ModelConfig* config) {
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "vocab_size", kMaxWidth, &config->vocab_size));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "hidden_size", kMaxWidth, &config->hidden_size));
  SKEIN_RETURN_IF_ERROR(
      RequireSize(json, "intermediate_size", kMaxWidth, &config->intermediate_size));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "num_hidden_layers", kMaxLayers, &config->num_layers));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "num_attention_heads", kMaxHeads, &config->num_heads));
  SKEIN_RETURN_IF_ERROR(
      RequireSize(json, "max_position_embeddings", max_tokens, &config->max_position));
  config->num_kv_heads = config->num_heads;
  return Status::Ok();
}

Status ReadActivation(const JsonObject& json, const char* key, Activation* out) {
  constexpr struct {
    const char* name;
    Activation activation;
  } kNames[] = {{"gelu", Activation::kGelu},
                {"gelu_new", Activation::kGeluTanh},
                {"gelu_pytorch_tanh", Activation::kGeluTanh},
                {"relu", Activation::kRelu},
                {"silu", Activation::kSilu}};
  SKEIN_ASSIGN_OR_RETURN(const auto name, json.String(key));
  if (!name) return json.Error(key, "is missing");
  for (const auto& entry : kNames) {
    if (*name != entry.name) continue;
    *out = entry.activation;
    return Status::Ok();
  }
  return Unsupported(json, key,
                     "is '" + *name +
                         "'; supported are 'gelu', 'gelu_new', 'gelu_pytorch_tanh', 'relu' and "
                         "'silu'");
}

Status ReadEpsilon(const JsonObject& json, const char* key, float* out) {
  SKEIN_ASSIGN_OR_RETURN(const auto eps, json.Double(key));
  if (!eps) return json.Error(key, "is missing");
  if (!(*eps > 0) || !(*eps < 1)) {
    return json.Error(key, "is " + std::to_string(*eps) + "; must be in (0, 1)");
  }
  *out = static_cast<float>(*eps);
  return Status::Ok();
}

Status ReadNumSegments(const JsonObject& json, ModelConfig* config) {
  SKEIN_ASSIGN_OR_RETURN(const auto segments, json.Int("type_vocab_size"));
  if (!segments) return json.Error("type_vocab_size", "is missing");
  if (*segments < 0 || *segments > kMaxWidth) {
    return json.Error("type_vocab_size", "is " + std::to_string(*segments) + "; must be in [0, " +
                                             std::to_string(kMaxWidth) + "]");
  }
  config->encoder.num_segments = static_cast<int32_t>(*segments);
  return Status::Ok();
}

Result<int32_t> ReadNumClasses(const JsonObject& json) {
  SKEIN_ASSIGN_OR_RETURN(const auto labels, json.Object("id2label"));
  SKEIN_ASSIGN_OR_RETURN(const auto count, ReadSize(json, "num_labels", kMaxClasses));
  if (!labels) return count.value_or(2);
  const auto size = static_cast<int64_t>(labels->members().size());
  if (size < 1 || size > kMaxClasses) {
    return json.Error("id2label", "holds " + std::to_string(size) + " labels; must be in [1, " +
                                      std::to_string(kMaxClasses) + "]");
  }
  return static_cast<int32_t>(size);
}

Status ReadEncoderConfig(const JsonObject& json, ModelConfig* config) {
  const bool distil = config->architecture == Architecture::kDistilBert;
  const EncoderKeys& keys = distil ? kDistilBertKeys : kBertKeys;
  SKEIN_RETURN_IF_ERROR(ReadShape(json, keys, config));
  SKEIN_RETURN_IF_ERROR(ReadActivation(json, keys.activation, &config->activation));
  SKEIN_RETURN_IF_ERROR(ReadPositions(json, config));
  SKEIN_ASSIGN_OR_RETURN(const bool is_decoder, ReadFlag(json, "is_decoder", false));
  if (is_decoder) return Unsupported(json, "is_decoder", "is true; only encoders are supported");
  if (distil) {
    config->encoder.layer_norm_eps = 1e-12f;  // DistilBERT's value, which its config does not state
  } else {
    SKEIN_RETURN_IF_ERROR(ReadEpsilon(json, "layer_norm_eps", &config->encoder.layer_norm_eps));
    SKEIN_RETURN_IF_ERROR(config->architecture == Architecture::kMpnet
                              ? ReadRelativeBias(json, config)
                              : ReadNumSegments(json, config));
  }
  if (config->head == Head::kClassifier) {
    SKEIN_ASSIGN_OR_RETURN(config->num_classes, ReadNumClasses(json));
  }
  return Status::Ok();
}

}  // namespace skein
