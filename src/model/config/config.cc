#include "model/config/config.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>

#include "io/json_file.h"
#include "io/model_files.h"
#include "kernels/packed_weight.h"
#include "model/config/config_fields.h"
#include "model/config/encoder_config.h"
#include "model/config/modernbert_config.h"
#include "model/config/moe_config.h"
#include "model/config/rope_config.h"
#include "model/weights/tensor_list.h"

namespace skein {
namespace {

struct ArchitectureName {
  const char* name;
  const char* model_type;
  Architecture architecture;
  Head head = Head::kLanguageModel;
  bool reward_mlp = false;
};

constexpr ArchitectureName kArchitectures[] = {
    {"LlamaForCausalLM", "llama", Architecture::kLlama},
    {"MistralForCausalLM", "mistral", Architecture::kMistral},
    {"Qwen2ForCausalLM", "qwen2", Architecture::kQwen2},
    {"Qwen3ForCausalLM", "qwen3", Architecture::kQwen3},
    {"Qwen3MoeForCausalLM", "qwen3_moe", Architecture::kQwen3Moe},
    {"LlamaForSequenceClassification", "llama", Architecture::kLlama, Head::kClassifier},
    {"MistralForSequenceClassification", "mistral", Architecture::kMistral, Head::kClassifier},
    {"Qwen2ForSequenceClassification", "qwen2", Architecture::kQwen2, Head::kClassifier},
    {"Qwen3ForSequenceClassification", "qwen3", Architecture::kQwen3, Head::kClassifier},
    {"Qwen2ForRewardModel", "qwen2", Architecture::kQwen2, Head::kClassifier, true},
    {"LlamaModel", "llama", Architecture::kLlama, Head::kNone},
    {"MistralModel", "mistral", Architecture::kMistral, Head::kNone},
    {"Qwen2Model", "qwen2", Architecture::kQwen2, Head::kNone},
    {"Qwen3Model", "qwen3", Architecture::kQwen3, Head::kNone},
    {"BertModel", "bert", Architecture::kBert, Head::kNone},
    {"BertForSequenceClassification", "bert", Architecture::kBert, Head::kClassifier},
    {"RobertaModel", "roberta", Architecture::kRoberta, Head::kNone},
    {"RobertaForSequenceClassification", "roberta", Architecture::kRoberta, Head::kClassifier},
    {"XLMRobertaModel", "xlm-roberta", Architecture::kXlmRoberta, Head::kNone},
    {"XLMRobertaForSequenceClassification", "xlm-roberta", Architecture::kXlmRoberta,
     Head::kClassifier},
    {"DistilBertModel", "distilbert", Architecture::kDistilBert, Head::kNone},
    {"DistilBertForSequenceClassification", "distilbert", Architecture::kDistilBert,
     Head::kClassifier},
    {"ModernBertModel", "modernbert", Architecture::kModernBert, Head::kNone},
    {"ModernBertForSequenceClassification", "modernbert", Architecture::kModernBert,
     Head::kClassifier},
    // The encoder alone, without the head that guesses masked tokens.
    {"ModernBertForMaskedLM", "modernbert", Architecture::kModernBert, Head::kNone},
};

constexpr int64_t kMaxHeadDim = 4096;

Status ReadArchitecture(const JsonObject& json, ModelConfig* config) {
  SKEIN_ASSIGN_OR_RETURN(const auto names, json.Strings("architectures"));
  if (!names || names->empty()) return json.Error("architectures", "is missing");
  if (names->size() > 1) return json.Error("architectures", "must name one architecture");
  const auto* found =
      std::find_if(std::begin(kArchitectures), std::end(kArchitectures),
                   [&](const ArchitectureName& a) { return a.name == names->front(); });
  if (found == std::end(kArchitectures)) {
    std::string known;
    for (const ArchitectureName& a : kArchitectures) {
      known += (known.empty() ? "" : ", ") + std::string(a.name);
    }
    return Unsupported(json, "architectures", "is " + names->front() + "; supported are " + known);
  }
  // The reference library chooses its code by model_type. A config whose architecture disagrees
  // with it would run there as another model.
  SKEIN_ASSIGN_OR_RETURN(const auto model_type, json.String("model_type"));
  if (model_type && *model_type != found->model_type) {
    return json.Error("model_type",
                      "is '" + *model_type + "', which does not go with " + found->name);
  }
  config->architecture = found->architecture;
  config->head = found->head;
  config->reward_mlp = found->reward_mlp;
  return Status::Ok();
}

// Refuses features of other models that this engine lacks.
Status CheckSupported(const JsonObject& json, const ModelConfig& config) {
  if (!config.is_encoder()) {
    SKEIN_ASSIGN_OR_RETURN(const auto activation, json.String("hidden_act"));
    if (activation && *activation != "silu") {
      return Unsupported(json, "hidden_act", "is '" + *activation + "'; only 'silu' is supported");
    }
  }
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (!json.Has(key)) continue;
    SKEIN_ASSIGN_OR_RETURN(const auto quantization, json.Object(key));
    if (quantization->empty()) continue;
    SKEIN_ASSIGN_OR_RETURN(const auto method, quantization->String("quant_method"));
    return Unsupported(json, key,
                       "is there (quant_method '" + method.value_or("unnamed") +
                           "'); quantized weights are not supported");
  }
  return Status::Ok();
}

Status ReadShape(const JsonObject& json, ModelConfig* config) {
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "vocab_size", kMaxWidth, &config->vocab_size));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "hidden_size", kMaxWidth, &config->hidden_size));
  SKEIN_RETURN_IF_ERROR(
      RequireSize(json, "intermediate_size", kMaxWidth, &config->intermediate_size));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "num_hidden_layers", kMaxLayers, &config->num_layers));
  SKEIN_RETURN_IF_ERROR(RequireSize(json, "num_attention_heads", kMaxHeads, &config->num_heads));
  SKEIN_RETURN_IF_ERROR(
      RequireSize(json, "max_position_embeddings", kMaxPosition, &config->max_position));

  SKEIN_ASSIGN_OR_RETURN(const auto kv_heads, ReadSize(json, "num_key_value_heads", kMaxHeads));
  // Null means one K and V per query head in every architecture. An absent field means the same
  // only for Llama.
  if (!kv_heads && !json.Contains("num_key_value_heads") &&
      config->architecture != Architecture::kLlama) {
    return json.Error("num_key_value_heads", "is missing");
  }
  config->num_kv_heads = kv_heads.value_or(config->num_heads);
  if (config->num_heads % config->num_kv_heads != 0) {
    return json.Error("num_key_value_heads",
                      "is " + std::to_string(config->num_kv_heads) + "; must divide the " +
                          std::to_string(config->num_heads) + " attention heads");
  }

  SKEIN_ASSIGN_OR_RETURN(const auto head_dim, ReadSize(json, "head_dim", kMaxHeadDim));
  if (head_dim) {
    config->head_dim = *head_dim;
  } else if (config->architecture == Architecture::kQwen3) {
    config->head_dim = 128;  // Qwen3's default, whatever the hidden size
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

Status ReadVariants(const JsonObject& json, ModelConfig* config) {
  SKEIN_ASSIGN_OR_RETURN(const auto eps, json.Double("rms_norm_eps"));
  if (!eps) return json.Error("rms_norm_eps", "is missing");
  if (!(*eps > 0) || !(*eps < 1)) {
    return json.Error("rms_norm_eps", "is " + std::to_string(*eps) + "; must be in (0, 1)");
  }
  config->rms_norm_eps = static_cast<float>(*eps);
  // The default of all decoders is an untied output matrix.
  SKEIN_ASSIGN_OR_RETURN(config->tie_embeddings, ReadFlag(json, "tie_word_embeddings", false));
  SKEIN_ASSIGN_OR_RETURN(const bool attention_bias, ReadFlag(json, "attention_bias", false));
  SKEIN_ASSIGN_OR_RETURN(const bool mlp_bias, ReadFlag(json, "mlp_bias", false));
  switch (config->architecture) {
    case Architecture::kLlama:
      config->qkv_bias = config->o_bias = attention_bias;
      config->mlp_bias = mlp_bias;
      break;
    case Architecture::kMistral:
      break;
    case Architecture::kQwen2:
      config->qkv_bias = true;
      break;
    case Architecture::kQwen3:
    case Architecture::kQwen3Moe:
      config->qkv_bias = config->o_bias = attention_bias;
      config->qk_norm = true;
      break;
    default:  // ReadEncoderConfig
      break;
  }
  return Status::Ok();
}

// Refuses a window that would hide any key from any query within the context.
Status CheckSlidingWindow(const JsonObject& json, const ModelConfig& config) {
  if (config.architecture == Architecture::kLlama) return Status::Ok();  // it has no window
  SKEIN_ASSIGN_OR_RETURN(const auto layer_types, json.Strings("layer_types"));
  for (const std::string& type : layer_types.value_or(std::vector<std::string>())) {
    if (type != "full_attention") {
      return Unsupported(json, "layer_types",
                         "holds '" + type + "'; only 'full_attention' is supported");
    }
  }
  SKEIN_ASSIGN_OR_RETURN(const auto window, json.Int("sliding_window"));
  if (config.architecture != Architecture::kMistral) {
    SKEIN_ASSIGN_OR_RETURN(const bool use_window, ReadFlag(json, "use_sliding_window", false));
    SKEIN_ASSIGN_OR_RETURN(const auto full_layers, json.Int("max_window_layers"));
    // Only layers from max_window_layers on have the window; the default of both architectures is
    // 28. In a mixture of experts all layers have it.
    const bool all_full = layer_types || full_layers.value_or(28) >= config.num_layers;
    if (!use_window || (all_full && config.num_experts == 0)) return Status::Ok();
  } else if (!json.Contains("sliding_window")) {
    return json.Error("sliding_window", "is missing (null where there is none)");
  }
  if (!window || *window >= config.max_position) return Status::Ok();
  return Unsupported(json, "sliding_window",
                     "is " + std::to_string(*window) + ", below the context of " +
                         std::to_string(config.max_position) +
                         " tokens; attention in a sliding window is not supported");
}

// nullopt if the config names no dtype.
Result<std::optional<DType>> ReadDType(const JsonObject& json) {
  const char* key = json.Has("dtype") ? "dtype" : "torch_dtype";
  SKEIN_ASSIGN_OR_RETURN(std::optional<std::string> name, json.String(key));
  if (!name || *name == "auto") return std::optional<DType>();
  if (name->starts_with("torch.")) name->erase(0, 6);
  if (*name == "float32") return std::optional<DType>(DType::kF32);
  if (*name == "bfloat16") return std::optional<DType>(DType::kBf16);
  if (*name == "float16") return std::optional<DType>(DType::kF16);
  return Unsupported(json, key, "is '" + *name + "'; supported are float32, bfloat16 and float16");
}

Result<DType> DTypeOfWeights(const std::string& model_dir, const ModelConfig& config) {
  SKEIN_ASSIGN_OR_RETURN(const ModelFiles files, ModelFiles::Open(model_dir));
  // Files of a model without a head may omit the prefix of tensor names.
  const std::string name = ListTensors(config).front().name;
  const std::string bare = "embed_tokens.weight";
  SKEIN_ASSIGN_OR_RETURN(const TensorView embedding, files.Find(files.Has(name) ? name : bare));
  // Blocks of few bits are widened to bf16 where they do not stay.
  return embedding.dtype == DType::kBlocks ? DType::kBf16 : embedding.dtype;
}

// Whether the files hold an output matrix that differs from the embedding. A model whose config
// ties the two then keeps both, as in transformers 5.
bool HasOwnOutputMatrix(const std::string& model_dir) {
  Result<ModelFiles> files = ModelFiles::Open(model_dir);
  if (!files.ok() || files->is_gguf() || !files->Has("lm_head.weight")) return false;
  Result<TensorView> output = files->Find("lm_head.weight");
  Result<TensorView> embedding = files->Find("model.embed_tokens.weight");
  if (!output.ok() || !embedding.ok() || output->shape != embedding->shape) return false;
  return output->dtype != embedding->dtype || output->bytes != embedding->bytes ||
         std::memcmp(output->data, embedding->data, output->bytes) != 0;
}

// A list of token ids, each within the vocabulary. -1 stands for no token.
Result<std::optional<std::vector<int32_t>>> ReadTokenIds(const JsonObject& json, const char* key,
                                                         int32_t vocab_size) {
  SKEIN_ASSIGN_OR_RETURN(const auto ids, json.Ints(key));
  if (!ids) return std::optional<std::vector<int32_t>>();
  std::vector<int32_t> tokens;
  for (const int64_t id : *ids) {
    if (id == -1) continue;
    if (id < 0 || id >= vocab_size) {
      return json.Error(key, "holds " + std::to_string(id) + "; must be in [0, " +
                                 std::to_string(vocab_size) + ")");
    }
    tokens.push_back(static_cast<int32_t>(id));
  }
  return std::optional<std::vector<int32_t>>(std::move(tokens));
}

Status ReadTokens(const JsonObject& json, ModelConfig* config) {
  SKEIN_ASSIGN_OR_RETURN(const auto bos, ReadTokenIds(json, "bos_token_id", config->vocab_size));
  if (bos && !bos->empty()) config->bos_token_id = bos->front();
  SKEIN_ASSIGN_OR_RETURN(auto eos, ReadTokenIds(json, "eos_token_id", config->vocab_size));
  config->eos_token_ids = std::move(eos).value_or(std::vector<int32_t>());
  return Status::Ok();
}

Status ReadGenerationConfig(const std::string& model_dir, ModelConfig* config) {
  Result<JsonFile> generation = JsonFile::Load(model_dir + "/generation_config.json");
  if (generation.status().code() == StatusCode::kNotFound) return Status::Ok();
  if (!generation.ok()) return generation.status();
  SKEIN_ASSIGN_OR_RETURN(auto ids,
                         ReadTokenIds(generation->root(), "eos_token_id", config->vocab_size));
  if (ids) config->eos_token_ids = *std::move(ids);
  return Status::Ok();
}

// Yarn's config states either the original context or the stretched one: the longer one holds.
void StretchContext(ModelConfig* config) {
  if (config->rope.type != RopeType::kYarn) return;
  const double reached =
      std::min(config->rope.original_max_position * config->rope.factor, double{kMaxPosition});
  config->max_position = std::max(config->max_position, static_cast<int32_t>(reached));
}

// Reads everything but the dtype and what other files say.
Result<ModelConfig> ReadConfig(const JsonObject& json) {
  ModelConfig config;
  SKEIN_RETURN_IF_ERROR(ReadArchitecture(json, &config));
  SKEIN_RETURN_IF_ERROR(CheckSupported(json, config));
  if (config.architecture == Architecture::kModernBert) {
    SKEIN_RETURN_IF_ERROR(ReadModernBertConfig(json, &config));
    return config;
  }
  if (config.is_encoder()) {
    SKEIN_RETURN_IF_ERROR(ReadEncoderConfig(json, &config));
    return config;
  }
  SKEIN_RETURN_IF_ERROR(ReadShape(json, &config));
  SKEIN_RETURN_IF_ERROR(ReadVariants(json, &config));
  if (config.architecture == Architecture::kQwen3Moe) {
    SKEIN_RETURN_IF_ERROR(ReadMoeConfig(json, &config));
  }
  if (config.reward_mlp) {
    config.num_classes = 1;  // a reward model has one output, whatever labels its config states
  } else if (config.head == Head::kClassifier) {
    SKEIN_ASSIGN_OR_RETURN(config.num_classes, ReadNumClasses(json));
  }
  SKEIN_ASSIGN_OR_RETURN(config.rope, ReadRopeConfig(json, config.max_position));
  StretchContext(&config);
  SKEIN_RETURN_IF_ERROR(CheckSlidingWindow(json, config));
  SKEIN_RETURN_IF_ERROR(ReadTokens(json, &config));
  return config;
}

}  // namespace

const char* NameOf(Architecture architecture) {
  for (const ArchitectureName& entry : kArchitectures) {
    if (entry.architecture == architecture) return entry.name;
  }
  return "";
}

std::string ModelConfig::ArchitectureName() const {
  for (const auto& entry : kArchitectures) {
    if (entry.architecture == architecture && entry.head == head &&
        entry.reward_mlp == reward_mlp) {
      return entry.name;
    }
  }
  return "";
}

Result<ModelConfig> LoadModelConfig(const std::string& model_dir) {
  SKEIN_ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Load(model_dir + "/config.json"));
  SKEIN_ASSIGN_OR_RETURN(ModelConfig config, ReadConfig(file.root()));
  if (config.architecture == Architecture::kModernBert) {
    SKEIN_RETURN_IF_ERROR(FindTensorPrefix(model_dir, &config));
  }
  SKEIN_ASSIGN_OR_RETURN(const std::optional<DType> dtype, ReadDType(file.root()));
  if (dtype) {
    config.file_dtype = *dtype;
  } else {
    SKEIN_ASSIGN_OR_RETURN(config.file_dtype, DTypeOfWeights(model_dir, config));
  }
  if (config.tie_embeddings && config.head == Head::kLanguageModel &&
      HasOwnOutputMatrix(model_dir)) {
    spdlog::warn(
        "{}: 'tie_word_embeddings' is true, but lm_head.weight differs from the embedding: "
        "both are used",
        model_dir);
    config.tie_embeddings = false;
  }
  SKEIN_RETURN_IF_ERROR(ReadGenerationConfig(model_dir, &config));
  return config;
}

Result<ModelConfig> ParseModelConfig(const std::string& config_json) {
  SKEIN_ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Parse(config_json, "config.json"));
  SKEIN_ASSIGN_OR_RETURN(ModelConfig config, ReadConfig(file.root()));
  SKEIN_ASSIGN_OR_RETURN(const std::optional<DType> dtype, ReadDType(file.root()));
  if (!dtype) return file.root().Error("torch_dtype", "is missing");
  config.file_dtype = *dtype;
  return config;
}

int64_t ModelConfig::NumParameters() const {
  int64_t total = 0;
  for (const ModelTensor& tensor : ListTensors(*this)) {
    int64_t size = 1;
    for (const int64_t dimension : tensor.shape) size *= dimension;
    total += size;
  }
  return total;
}

int32_t ModelConfig::intermediate_padded() const {
  return (intermediate_size + kPanelCols - 1) / kPanelCols * kPanelCols;
}

int32_t ModelConfig::expert_padded() const {
  return (expert_size + kPanelCols - 1) / kPanelCols * kPanelCols;
}

int64_t ModelConfig::KvBytesPerToken(DType dtype) const {
  return int64_t{2} * num_layers * num_kv_heads * head_dim * static_cast<int64_t>(SizeOf(dtype));
}

}  // namespace skein
