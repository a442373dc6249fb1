#include "model/config/config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "io/json_file.h"
#include "io/model_files.h"
#include "kernels/packed_weight.h"
#include "model/config/clef_config.h"
#include "model/config/config_fields.h"
#include "model/config/decoder_config.h"
#include "model/config/encoders/colbert_config.h"
#include "model/config/encoders/deberta_config.h"
#include "model/config/encoders/encoder_config.h"
#include "model/config/encoders/modernbert_config.h"
#include "model/config/encoders/rotating_bert_config.h"
#include "model/config/encoders/sparse_config.h"
#include "model/config/kev_config.h"
#include "model/config/laya_config.h"
#include "model/config/sysone_config.h"
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
    {"Qwen2MoeForCausalLM", "qwen2_moe", Architecture::kQwen2Moe},
    {"OlmoeForCausalLM", "olmoe", Architecture::kOlmoe},
    {"MixtralForCausalLM", "mixtral", Architecture::kMixtral},
    {"GemmaForCausalLM", "gemma", Architecture::kGemma},
    {"Gemma2ForCausalLM", "gemma2", Architecture::kGemma2},
    {"Gemma3ForCausalLM", "gemma3_text", Architecture::kGemma3},
    {"Gemma3TextModel", "gemma3_text", Architecture::kGemma3, Head::kNone},
    {"Phi3ForCausalLM", "phi3", Architecture::kPhi3},
    {"Olmo2ForCausalLM", "olmo2", Architecture::kOlmo2},
    {"Olmo3ForCausalLM", "olmo3", Architecture::kOlmo3},
    {"GraniteForCausalLM", "granite", Architecture::kGranite},
    {"SmolLM3ForCausalLM", "smollm3", Architecture::kSmolLm3},
    {"Qwen3_5ForCausalLM", "qwen3_5_text", Architecture::kQwen35},
    {"Qwen3_5TextModel", "qwen3_5_text", Architecture::kQwen35, Head::kNone},
    {"GptOssForCausalLM", "gpt_oss", Architecture::kGptOss},
    {"Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", Architecture::kQwen35Moe},
    {"Qwen3NextForCausalLM", "qwen3_next", Architecture::kQwen3Next},
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
    {"NomicBertModel", "nomic_bert", Architecture::kNomicBert, Head::kNone},
    {"NewModel", "new", Architecture::kGte, Head::kNone},
    {"GteModel", "gte", Architecture::kGte, Head::kNone},
    {"NewForSequenceClassification", "new", Architecture::kGte, Head::kClassifier},
    {"GteForSequenceClassification", "gte", Architecture::kGte, Head::kClassifier},
    {"DebertaV2Model", "deberta-v2", Architecture::kDebertaV2, Head::kNone},
    {"DebertaV2ForSequenceClassification", "deberta-v2", Architecture::kDebertaV2,
     Head::kClassifier},
    {"MPNetModel", "mpnet", Architecture::kMpnet, Head::kNone},
    {"MPNetForSequenceClassification", "mpnet", Architecture::kMpnet, Head::kClassifier},
    {"ModernBertModel", "modernbert", Architecture::kModernBert, Head::kNone},
    {"ModernBertForSequenceClassification", "modernbert", Architecture::kModernBert,
     Head::kClassifier},
    // The head that predicts masked tokens is used for sparse vectors alone.
    {"BertForMaskedLM", "bert", Architecture::kBert, Head::kMaskedLanguageModel},
    {"RobertaForMaskedLM", "roberta", Architecture::kRoberta, Head::kMaskedLanguageModel},
    {"XLMRobertaForMaskedLM", "xlm-roberta", Architecture::kXlmRoberta, Head::kMaskedLanguageModel},
    {"DistilBertForMaskedLM", "distilbert", Architecture::kDistilBert, Head::kMaskedLanguageModel},
    {"DebertaV2ForMaskedLM", "deberta-v2", Architecture::kDebertaV2, Head::kMaskedLanguageModel},
    {"MPNetForMaskedLM", "mpnet", Architecture::kMpnet, Head::kMaskedLanguageModel},
    {"ModernBertForMaskedLM", "modernbert", Architecture::kModernBert, Head::kMaskedLanguageModel},
    {"HF_ColBERT", "bert", Architecture::kBert, Head::kTokenVectors},
    {"NewForMaskedLM", "new", Architecture::kGte, Head::kMaskedLanguageModel},
    {"GteForMaskedLM", "gte", Architecture::kGte, Head::kMaskedLanguageModel},
    // Only the text part is used; its members are in text_config.
    {"Gemma3ForConditionalGeneration", "gemma3", Architecture::kGemma3},
    {"Qwen3_5ForConditionalGeneration", "qwen3_5", Architecture::kQwen35},
    {"Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe", Architecture::kQwen35Moe},
};

// Reads the type of a decision model's base. The base's config may name no architecture, or one
// with a head that the base lacks. `wanted`: the type that the decision model names.
Status ReadBaseType(const JsonObject& json, const std::string& wanted, ModelConfig* config) {
  SKEIN_ASSIGN_OR_RETURN(const auto model_type, json.String("model_type"));
  if (model_type != wanted) {
    return Unsupported(json, "model_type",
                       "is '" + model_type.value_or("") +
                           "'; supported as the base of this decision model is " + wanted);
  }
  const auto* const found =
      std::ranges::find(kArchitectures, wanted, &ArchitectureName::model_type);
  // EuroBERT is a Llama in which every token attends to the whole text.
  config->architecture =
      found == std::end(kArchitectures) ? Architecture::kLlama : found->architecture;
  config->head = Head::kNone;
  return Status::Ok();
}

Status ReadArchitecture(const JsonObject& json, ModelConfig* config) {
  SKEIN_ASSIGN_OR_RETURN(auto names, json.Strings("architectures"));
  // GTE names the head of its sparse vectors beside the encoder, which alone is read.
  if (names && names->size() > 1) std::erase(*names, "NewForTokenClassification");
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
  // The reference library chooses its code by model_type. If a config's architecture disagrees with
  // its model_type, the reference would run another model.
  SKEIN_ASSIGN_OR_RETURN(const auto model_type, json.String("model_type"));
  if (model_type && *model_type != found->model_type) {
    return json.Error("model_type",
                      "is '" + *model_type + "', which does not go with " + found->name);
  }
  config->architecture = found->architecture;
  config->head = found->head;
  config->decoder.reward_mlp = found->reward_mlp;
  return Status::Ok();
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

// The dtype of the model, else that of its text part.
Result<std::optional<DType>> ReadAnyDType(const JsonObject& json) {
  SKEIN_ASSIGN_OR_RETURN(const auto dtype, ReadDType(json));
  if (dtype) return dtype;
  SKEIN_ASSIGN_OR_RETURN(const auto text, json.Object("text_config"));
  return text ? ReadDType(*text) : dtype;
}

Result<DType> DTypeOfWeights(const std::string& model_dir, const ModelConfig& config) {
  SKEIN_ASSIGN_OR_RETURN(const ModelFiles files, ModelFiles::Open(model_dir));
  SKEIN_ASSIGN_OR_RETURN(const TensorView embedding, files.Find(ListTensors(config).front().name));
  // Blocks of few bits are widened to bf16 if they are not kept.
  return embedding.dtype == DType::kBlocks ? DType::kBf16 : embedding.dtype;
}

// A list of token ids, each within the vocabulary. -1 means that there is no token.
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
  if (eos) config->eos_token_ids = *std::move(eos);
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

// Reads everything except the dtype and the facts of other files. `base_type`: the model_type of
// the base of a decision model; null for any other model.
Result<ModelConfig> ReadConfig(const JsonObject& json, const std::string* base_type = nullptr) {
  ModelConfig config;
  SKEIN_RETURN_IF_ERROR(base_type != nullptr ? ReadBaseType(json, *base_type, &config)
                                             : ReadArchitecture(json, &config));
  SKEIN_ASSIGN_OR_RETURN(config.quantization, ReadQuantizationConfig(json));
  if (config.is_encoder() && config.quantization.method != QuantizationMethod::kNone) {
    return Unsupported(json, "quantization_config",
                       "is there; quantized weights are supported for decoders only");
  }
  if (config.is_encoder()) {
    config.bidirectional = true;
    switch (config.architecture) {
      case Architecture::kModernBert:
        SKEIN_RETURN_IF_ERROR(ReadModernBertConfig(json, &config));
        break;
      case Architecture::kNomicBert:
      case Architecture::kGte:
        SKEIN_RETURN_IF_ERROR(ReadRotatingBertConfig(json, &config));
        break;
      case Architecture::kDebertaV2:
        SKEIN_RETURN_IF_ERROR(ReadDebertaConfig(json, &config));
        break;
      default:
        SKEIN_RETURN_IF_ERROR(ReadEncoderConfig(json, &config));
    }
    if (config.head == Head::kMaskedLanguageModel) {
      SKEIN_ASSIGN_OR_RETURN(config.tie_embeddings, ReadFlag(json, "tie_word_embeddings", true));
      config.encoder.predicts_masked = true;
      config.head = Head::kNone;
    }
    return config;
  }
  // A multimodal model has the members of its text part in an object of their own.
  SKEIN_ASSIGN_OR_RETURN(const auto text, json.Object("text_config"));
  SKEIN_RETURN_IF_ERROR(ReadDecoderConfig(text.value_or(json), &config));
  if (text) SKEIN_RETURN_IF_ERROR(ReadTokens(*text, &config));
  constexpr char kTie[] = "tie_word_embeddings";
  if (text && !text->Has(kTie)) {
    SKEIN_ASSIGN_OR_RETURN(config.tie_embeddings, ReadFlag(json, kTie, config.tie_embeddings));
  }
  SKEIN_RETURN_IF_ERROR(ReadTokens(json, &config));
  return config;
}

}  // namespace

int32_t Padded(int32_t mlp_size) { return (mlp_size + kPanelCols - 1) / kPanelCols * kPanelCols; }

const char* NameOf(Architecture architecture) {
  for (const ArchitectureName& entry : kArchitectures) {
    if (entry.architecture == architecture) return entry.name;
  }
  return "";
}

std::string ModelConfig::ArchitectureName() const {
  if (head == Head::kDecision) {
    if (decision.is_joint()) return "Clef";
    return decision.is_pointer ? "Kev" : decision.is_compact() ? "sysone" : "Laya";
  }
  // Only BERT has a name with ColBERT's head; other encoders have theirs without it.
  const bool is_bare = head == Head::kTokenVectors && encoder.token_width == 0;
  for (const auto& entry : kArchitectures) {
    if (entry.architecture == architecture && entry.head == (is_bare ? Head::kNone : head) &&
        entry.reward_mlp == decoder.reward_mlp) {
      return entry.name;
    }
  }
  return "";
}

namespace {

Result<ModelConfig> LoadLayaModelConfig(const std::string& model_dir) {
  SKEIN_ASSIGN_OR_RETURN(const LayaConfig laya, LoadLayaConfig(model_dir));
  SKEIN_ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Load(model_dir + "/encoder/config.json"));
  const std::string base_type = "modernbert";
  SKEIN_ASSIGN_OR_RETURN(ModelConfig config, ReadConfig(file.root(), &base_type));
  SKEIN_RETURN_IF_ERROR(AddLayaHead(laya, file.root(), &config));
  // The config's dtype is that of the first publication of the encoder, which may differ from that
  // of these weights.
  SKEIN_ASSIGN_OR_RETURN(config.file_dtype, DTypeOfWeights(model_dir, config));
  return config;
}

Result<ModelConfig> LoadSysoneModelConfig(const std::string& model_dir) {
  SKEIN_ASSIGN_OR_RETURN(const SysoneConfig sysone, LoadSysoneConfig(model_dir));
  SKEIN_ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Load(sysone.base_dir + "/config.json"));
  SKEIN_ASSIGN_OR_RETURN(ModelConfig config, ReadConfig(file.root(), &sysone.architecture));
  if (config.is_encoder()) SKEIN_RETURN_IF_ERROR(FindTensorPrefix(sysone.base_dir, &config));
  SKEIN_RETURN_IF_ERROR(AddSysoneHead(sysone, file.root(), &config));
  SKEIN_ASSIGN_OR_RETURN(config.file_dtype, DTypeOfWeights(sysone.base_dir, config));
  return config;
}

Result<ModelConfig> LoadKevModelConfig(const std::string& model_dir) {
  SKEIN_ASSIGN_OR_RETURN(const KevConfig kev, LoadKevConfig(model_dir));
  SKEIN_ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Load(kev.base_dir + "/config.json"));
  SKEIN_ASSIGN_OR_RETURN(ModelConfig config, ReadConfig(file.root()));
  SKEIN_RETURN_IF_ERROR(AddKevHead(kev, &config));
  SKEIN_ASSIGN_OR_RETURN(config.file_dtype, DTypeOfWeights(kev.base_dir, config));
  return config;
}

}  // namespace

Result<ModelConfig> LoadModelConfig(const std::string& model_dir) {
  if (IsLayaDir(model_dir)) return LoadLayaModelConfig(model_dir);
  if (IsSysoneDir(model_dir)) return LoadSysoneModelConfig(model_dir);
  if (IsKevDir(model_dir)) return LoadKevModelConfig(model_dir);
  SKEIN_ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Load(model_dir + "/config.json"));
  SKEIN_ASSIGN_OR_RETURN(ModelConfig config, ReadConfig(file.root()));
  if (IsClefDir(model_dir)) SKEIN_RETURN_IF_ERROR(AddClefHead(model_dir, &config));
  if (config.is_encoder() && (config.head != Head::kClassifier || config.encoder.rotates)) {
    SKEIN_RETURN_IF_ERROR(FindTensorPrefix(model_dir, &config));
  }
  SKEIN_ASSIGN_OR_RETURN(const auto sparse, LoadSparseFields(model_dir));
  if (sparse) SKEIN_RETURN_IF_ERROR(UseSparseHead(*sparse, &config));
  SKEIN_ASSIGN_OR_RETURN(const auto colbert, LoadColbertConfig(model_dir));
  if (colbert) SKEIN_RETURN_IF_ERROR(UseTokenVectors(model_dir, &config));
  SKEIN_ASSIGN_OR_RETURN(const std::optional<DType> dtype, ReadAnyDType(file.root()));
  if (dtype) {
    config.file_dtype = *dtype;
  } else {
    SKEIN_ASSIGN_OR_RETURN(config.file_dtype, DTypeOfWeights(model_dir, config));
  }
  SKEIN_RETURN_IF_ERROR(ReadGenerationConfig(model_dir, &config));
  return config;
}

Result<ModelConfig> ParseModelConfig(const std::string& config_json) {
  SKEIN_ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Parse(config_json, "config.json"));
  SKEIN_ASSIGN_OR_RETURN(ModelConfig config, ReadConfig(file.root()));
  SKEIN_ASSIGN_OR_RETURN(const std::optional<DType> dtype, ReadAnyDType(file.root()));
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

int32_t ModelConfig::intermediate_padded() const { return Padded(intermediate_size); }

int32_t ModelConfig::widest_intermediate_padded() const {
  return Padded(
      std::max({intermediate_size, decision.intermediate_size, decoder.shared_expert_size}));
}

int32_t ModelConfig::expert_padded() const { return Padded(expert_size); }

int64_t ModelConfig::KvBytesPerToken(DType dtype) const {
  return int64_t{2} * num_kv_layers() * num_kv_heads * head_dim *
         static_cast<int64_t>(SizeOf(dtype));
}

int32_t ModelConfig::KvLayer(int32_t layer) const {
  if (bidirectional) return 0;
  if (!has_linear_layers()) return layer;
  return static_cast<int32_t>(
      std::count(decoder.linear.layers.begin(), decoder.linear.layers.begin() + layer, false));
}

int64_t ModelConfig::StateBytes() const {
  const LinearLayers& linear = decoder.linear;
  const int64_t conv = int64_t{kConvWidth - 1} * linear.conv_width();
  const int64_t delta = int64_t{linear.num_v_heads} * linear.k_dim * linear.v_dim;
  return num_linear_layers() * (conv + delta) * static_cast<int64_t>(sizeof(float));
}

}  // namespace skein
