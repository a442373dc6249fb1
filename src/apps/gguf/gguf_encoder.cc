#include "apps/gguf/gguf_encoder.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/gguf/gguf_keys.h"
#include "apps/gguf/gguf_labels.h"
#include "server/json/json.h"

namespace skein {
namespace {

constexpr char kWords[] = "token_embd.weight";
constexpr char kDense[] = "cls.weight", kProjection[] = "dense_2.weight";
constexpr char kSegments[] = "token_types.weight";

Status Refused(const GgufModel& file, const std::string& problem) {
  return Status(StatusCode::kUnsupported, file.path() + ": " + problem);
}

// The type in which a config.json of the original model would state the weights.
Result<const char*> WeightType(const GgufModel& file) {
  std::map<std::string_view, int64_t> elements;
  for (const std::string& name : file.Names()) {
    SKEIN_ASSIGN_OR_RETURN(const GgufTensor tensor, file.Find(name));
    elements[tensor.type->name] += tensor.num_rows() * tensor.row_elements();
  }
  int64_t all = 0;
  for (const auto& [type, count] : elements) all += count;
  if (2 * elements["F32"] > all) return "float32";
  return 2 * elements["F16"] > all ? "float16" : "bfloat16";
}

// The names of a config's members.
struct Members {
  const char *hidden, *mlp, *layers, *heads, *positions, *epsilon;
};
constexpr Members kMembers = {"hidden_size",         "intermediate_size",       "num_hidden_layers",
                              "num_attention_heads", "max_position_embeddings", "layer_norm_eps"};
constexpr Members kModernMembers = {
    "hidden_size",         "intermediate_size",       "num_hidden_layers",
    "num_attention_heads", "max_position_embeddings", "norm_eps"};
// The published NomicBERT has GPT-2's names.
constexpr Members kNomicMembers = {"n_embd", "n_inner",     "n_layer",
                                   "n_head", "n_positions", "layer_norm_epsilon"};

// The width of the MLPs of the first `num_layers` layers: a number for all layers, or one for each.
Result<int64_t> ReadMlpWidth(const GgufKeys& keys, int64_t num_layers) {
  constexpr char kKey[] = "feed_forward_length";
  SKEIN_ASSIGN_OR_RETURN(const auto widths, keys.IntOrInts(kKey));
  if (widths.empty()) return keys.Error(kKey, "is missing");
  if (widths.size() > 1 && std::ssize(widths) < num_layers) {
    return keys.Error(kKey, "has " + std::to_string(widths.size()) + " elements, but there are " +
                                std::to_string(num_layers) + " layers");
  }
  const int64_t count = std::min(num_layers, std::ssize(widths));
  for (const int64_t width : std::span(widths).first(static_cast<size_t>(count))) {
    if (width == widths.front()) continue;
    return keys.Unsupported(kKey, "is " + std::to_string(widths.front()) + " and " +
                                      std::to_string(width) + "; only one width is supported");
  }
  return widths.front();
}

// The number of layers of a decision model's head, which follow the encoder's.
Result<int64_t> NumHeadLayers(const GgufKeys& keys, int64_t num_layers) {
  SKEIN_ASSIGN_OR_RETURN(const auto type, keys.String("decision.type"));
  if (!type) return int64_t{0};
  SKEIN_ASSIGN_OR_RETURN(const auto count, keys.Int("decision.block_count"));
  if (!count || (*count >= 0 && *count < num_layers)) return count.value_or(0);
  return keys.Error("decision.block_count", "is " + std::to_string(*count) + ", of " +
                                                std::to_string(num_layers) + " layers in all");
}

Status ReadSizes(const GgufModel& file, const GgufKeys& keys, const Members& members,
                 Json* config) {
  SKEIN_ASSIGN_OR_RETURN(const GgufTensor words, file.Find(kWords));
  (*config)["vocab_size"] = words.num_rows();
  SKEIN_RETURN_IF_ERROR(keys.Require("embedding_length", members.hidden, config));
  SKEIN_RETURN_IF_ERROR(keys.RequireCount("block_count", kMaxLayers, members.layers, config));
  const auto of_all = (*config)[members.layers].get<int64_t>();
  SKEIN_ASSIGN_OR_RETURN(const int64_t of_head, NumHeadLayers(keys, of_all));
  const int64_t num_layers = of_all - of_head;
  (*config)[members.layers] = num_layers;
  SKEIN_ASSIGN_OR_RETURN((*config)[members.mlp], ReadMlpWidth(keys, num_layers));
  SKEIN_RETURN_IF_ERROR(keys.Require("attention.head_count", members.heads, config));
  SKEIN_RETURN_IF_ERROR(keys.Require("context_length", members.positions, config));
  return keys.RequireDouble("attention.layer_norm_epsilon", members.epsilon, config);
}

Status ReadSegments(const GgufModel& file, Json* config) {
  (*config)["type_vocab_size"] = 0;
  if (!file.Has(kSegments)) return Status::Ok();
  SKEIN_ASSIGN_OR_RETURN(const GgufTensor segments, file.Find(kSegments));
  (*config)["type_vocab_size"] = segments.num_rows();
  return Status::Ok();
}

// Files count positions from 0 for every model: their table lacks the rows that RoBERTa skips. So
// each model is a BERT.
Status ReadBert(const GgufModel& file, Json* config) {
  SKEIN_RETURN_IF_ERROR(ReadSegments(file, config));
  (*config)["hidden_act"] = "gelu";
  SKEIN_ASSIGN_OR_RETURN(const GgufTensor positions, file.Find("position_embd.weight"));
  (*config)["max_position_embeddings"] = positions.num_rows();
  return Status::Ok();
}

Status ReadNomic(const GgufModel& file, const GgufKeys& keys, Json* config) {
  SKEIN_RETURN_IF_ERROR(ReadSegments(file, config));
  (*config)["activation_function"] = "swiglu";
  return keys.RequireDouble("rope.freq_base", "rotary_emb_base", config);
}

Status ReadModern(const GgufModel& file, const GgufKeys& keys, Json* config) {
  constexpr int64_t kUsualPattern = 3;  // of files that do not state it
  SKEIN_RETURN_IF_ERROR(keys.Require("attention.sliding_window", "local_attention", config));
  SKEIN_ASSIGN_OR_RETURN(const auto pattern, keys.Int("attention.sliding_window_pattern"));
  (*config)["global_attn_every_n_layers"] = pattern.value_or(kUsualPattern);
  SKEIN_RETURN_IF_ERROR(keys.RequireDouble("rope.freq_base", "global_rope_theta", config));
  SKEIN_ASSIGN_OR_RETURN(const auto local, keys.Double("rope.freq_base_swa"));
  if (local) (*config)["local_rope_theta"] = ShortestDecimal(*local);
  SKEIN_ASSIGN_OR_RETURN(const auto activation, keys.String("hidden_activation"));
  (*config)["hidden_activation"] = activation.value_or("gelu");
  (*config)["attention_bias"] = file.Has("blk.0.attn_output.bias");
  (*config)["mlp_bias"] = file.Has("blk.0.ffn_down.bias");
  (*config)["norm_bias"] = file.Has("output_norm.bias");
  return Status::Ok();
}

// Adds what a classifier's config has.
Status ReadClassifier(const GgufModel& file, const GgufKeys& keys, const char* architecture,
                      Json* config) {
  if (!file.Has(kDense)) {
    return Refused(file, std::string("lacks the tensor '") + kDense +
                             "' in front of 'cls.output', which this classifier needs; serve the "
                             "directory from which the file was made");
  }
  (*config)["architectures"] = Json::array({architecture});
  SKEIN_RETURN_IF_ERROR(ReadGgufLabels(file, keys, config));
  // ModernBERT's. llama.cpp averages the states for every classifier; a file does not state it.
  (*config)["classifier_pooling"] = "mean";
  (*config)["classifier_activation"] = "gelu";
  (*config)["classifier_bias"] = file.Has("cls.bias");
  return Status::Ok();
}

}  // namespace

Result<Json> GgufEncoderConfigJson(const GgufModel& file, const GgufArchitecture& architecture) {
  const GgufKeys keys(file.metadata(), architecture.name);
  const std::string_view name = architecture.name;
  const bool is_modern = name == kGgufModernBert, is_nomic = name == kGgufNomicBert;
  if (file.Has(kProjection)) {
    return Refused(file, std::string("has the tensor '") + kProjection +
                             "' of a ColBERT model, whose markers no GGUF file states; serve the "
                             "directory from which the file was made");
  }
  Json config;
  config["architectures"] = Json::array({architecture.hugging_face});
  config["model_type"] = architecture.model_type;
  SKEIN_RETURN_IF_ERROR(ReadSizes(file, keys,
                                  is_nomic    ? kNomicMembers
                                  : is_modern ? kModernMembers
                                              : kMembers,
                                  &config));
  if (is_modern) {
    SKEIN_RETURN_IF_ERROR(ReadModern(file, keys, &config));
  } else {
    SKEIN_RETURN_IF_ERROR(is_nomic ? ReadNomic(file, keys, &config) : ReadBert(file, &config));
  }
  SKEIN_ASSIGN_OR_RETURN(config["torch_dtype"], WeightType(file));
  SKEIN_ASSIGN_OR_RETURN(const auto decision_type, keys.String("decision.type"));
  if (!file.Has(kGgufClasses) || decision_type) return config;
  if (is_nomic) return Refused(file, "is a NomicBERT with classes; supported is its encoder");
  if (!is_modern && !file.Has(kSegments)) {
    return Refused(file, std::string("is a classifier without the tensor '") + kSegments +
                             "', a DistilBERT, whose head the file does not state; serve the "
                             "directory from which the file was made");
  }
  SKEIN_RETURN_IF_ERROR(ReadClassifier(
      file, keys,
      is_modern ? "ModernBertForSequenceClassification" : "BertForSequenceClassification",
      &config));
  return config;
}

}  // namespace skein
