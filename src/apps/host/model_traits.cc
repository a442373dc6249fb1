#include "apps/host/model_traits.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "apps/host/decision_model_traits.h"
#include "apps/read_json.h"
#include "io/safetensors.h"
#include "model/config/encoders/module_list.h"
#include "model/config/encoders/sparse_config.h"

namespace skein {
namespace {

Status InvalidFile(const std::string& path, const std::string& problem) {
  return Status(StatusCode::kInvalidArgument, path + ": " + problem);
}

// The object in a file; an empty object if the file does not exist.
Result<Json> ReadObjectIfThere(const std::string& path) {
  return std::filesystem::exists(path) ? ReadJsonObject(path) : Json::object();
}

bool ContainsIgnoringCase(std::string_view text, std::string_view part) {
  const auto equal = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  return !std::ranges::search(text, part, equal).empty();
}

// Reads id2label in the order of the ids. Without it, the labels have the names of the reference
// library.
Status ReadLabels(const std::string& path, const Json& config_json, const ModelConfig& config,
                  ModelTraits* traits) {
  for (int32_t i = 0; i < config.num_classes; ++i) {
    traits->class_labels.push_back("LABEL_" + std::to_string(i));
  }
  const auto labels = config_json.find("id2label");
  if (labels == config_json.end() || labels->is_null()) return Status::Ok();
  if (!labels->is_object()) return InvalidFile(path, "'id2label' is not an object");
  for (int32_t i = 0; i < config.num_classes; ++i) {
    const auto label = labels->find(std::to_string(i));
    if (label == labels->end() || !label->is_string()) {
      return InvalidFile(path, "'id2label' holds " + std::to_string(labels->size()) +
                                   " labels but no text for \"" + std::to_string(i) + "\"");
    }
    traits->class_labels[i] = label->get<std::string>();
  }
  return Status::Ok();
}

Status ReadMatryoshka(const std::string& path, const Json& config_json, ModelTraits* traits) {
  const auto sizes = config_json.find("matryoshka_dimensions");
  if (sizes == config_json.end() || sizes->is_null()) {
    const auto any = config_json.find("is_matryoshka");
    traits->any_dimensions |= any != config_json.end() && *any == true;
    return Status::Ok();
  }
  if (!sizes->is_array()) return InvalidFile(path, "'matryoshka_dimensions' is not a list");
  for (const Json& size : *sizes) {
    if (!size.is_number_integer() || size < 1 || size > traits->embedding_size) {
      return InvalidFile(path, "'matryoshka_dimensions' holds " + size.dump() +
                                   "; must be in [1, " + std::to_string(traits->embedding_size) +
                                   "]");
    }
    traits->matryoshka_dimensions.push_back(size.get<int32_t>());
  }
  std::ranges::sort(traits->matryoshka_dimensions);
  return Status::Ok();
}

// Reads a Dense module, whose input size must be the output size of the modules before it.
Status ReadDense(const std::string& model_dir, const std::string& path, const Json& module,
                 ModelUse* use) {
  if (!module.contains("path") || !module["path"].is_string()) {
    return InvalidFile(path, "holds a Dense module without a 'path'");
  }
  SKEIN_ASSIGN_OR_RETURN(DenseModule dense,
                         LoadDenseModule(model_dir + "/" + module["path"].get<std::string>(),
                                         use->colbert.has_value()));
  int32_t& size = use->traits.embedding_size;
  if (dense.in_features != size) {
    return InvalidFile(dense.dir + "/config.json",
                       "'in_features' is " + std::to_string(dense.in_features) +
                           "; the modules before it give " + std::to_string(size));
  }
  size = dense.out_features;
  use->dense.push_back(std::move(dense));
  return Status::Ok();
}

// Whether a module belongs to SPLADE models, whose pooling LoadModelConfig reads.
bool IsOfSparse(std::string_view kind) {
  return kind == "MLMTransformer" || kind == "SpladePooling" || kind == "Router";
}

// Reads modules.json: the steps that turn hidden states into an embedding. LoadPooling reads the
// pooling itself.
Status ReadModules(const std::string& model_dir, const std::string& path, const Json& modules,
                   bool is_sparse, ModelUse* use) {
  if (!modules.is_array()) return InvalidFile(path, "is not a list of modules");
  bool& normalizes = use->traits.normalizes;
  normalizes = false;
  for (const Json& module : modules) {
    if (!module.is_object() || !module.contains("type") || !module["type"].is_string()) {
      return InvalidFile(path, "holds a module without a 'type'");
    }
    const auto type = module["type"].get<std::string>();
    const std::string_view kind = ModuleKind(type);
    if (kind == "Normalize") {
      normalizes = true;
    } else if (kind == "Dense" && !normalizes) {
      SKEIN_RETURN_IF_ERROR(ReadDense(model_dir, path, module, use));
    } else if (use->colbert && kind == "MultiVectorMask") {
      continue;  // LoadColbertConfig reads it
    } else if (kind != "Transformer" && kind != "Pooling" && !(is_sparse && IsOfSparse(kind))) {
      return Status(StatusCode::kUnsupported,
                    path + ": the module '" + type +
                        "' is not supported here; supported are Transformer, Pooling, Dense and "
                        "Normalize, in this order");
    }
  }
  return Status::Ok();
}

Status ReadPrompts(const std::string& path, const Json& json, ModelTraits* traits) {
  const auto prompts = json.find("prompts");
  if (prompts == json.end() || prompts->is_null()) return Status::Ok();
  if (!prompts->is_object()) return InvalidFile(path, "'prompts' is not an object");
  for (const auto& [name, text] : prompts->items()) {
    if (!text.is_string()) return InvalidFile(path, "the prompt '" + name + "' is not a string");
    traits->prompts[name] = text.get<std::string>();
  }
  const auto standard = json.find("default_prompt_name");
  if (standard == json.end() || standard->is_null()) return Status::Ok();
  if (!standard->is_string() || !traits->prompts.contains(standard->get<std::string>())) {
    return InvalidFile(
        path, "'default_prompt_name' is " + standard->dump() + ", which is none of the prompts");
  }
  traits->default_prompt = standard->get<std::string>();
  return Status::Ok();
}

// Reads the weights of a query's tokens. The table may end before the vocabulary of the model does.
Result<std::vector<float>> ReadQueryWeights(const std::string& path, int32_t vocab_size) {
  SKEIN_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  SKEIN_ASSIGN_OR_RETURN(const TensorView view, file.Find("weight"));
  if (view.shape.size() != 1 || view.row_elements() > vocab_size) {
    return InvalidFile(path, "'weight' has shape " + ShapeString(view.shape) +
                                 "; must be a vector of at most " + std::to_string(vocab_size) +
                                 " elements");
  }
  std::vector<float> weights(view.row_elements());
  view.ReadRows(0, 1, weights.data());
  return weights;
}

// Sets the traits of a SPLADE model.
Status UseSparse(ModelConfig config, ModelTraits* traits) {
  SKEIN_RETURN_IF_ERROR(AdaptHead(Pooling::kSplade, &config));
  traits->sparse.emplace().documents_only = config.encoder.sparse.documents_only;
  const std::string table = config.encoder.sparse.query_dir + "/model.safetensors";
  if (!config.encoder.sparse.query_dir.empty() && std::filesystem::exists(table)) {
    SKEIN_ASSIGN_OR_RETURN(traits->sparse->query_weights,
                           ReadQueryWeights(table, config.vocab_size));
  }
  traits->embedding_size = config.vocab_size;
  traits->normalizes = false;
  return Status::Ok();
}

Status PoolsNothing(const ModelConfig& config, const std::string& answers) {
  return Status(StatusCode::kInvalidArgument,
                "--pooling asks for embeddings; the model is a " + config.ArchitectureName() +
                    ", which gives " + answers,
                "pooling");
}

Status ReadSequenceLimit(const std::string& path, const Json& json, int32_t* limit) {
  const auto lower = json.find("do_lower_case");
  if (lower != json.end() && *lower == true) {
    return Status(StatusCode::kUnsupported,
                  path + ": 'do_lower_case' is true; texts are only lowered by the tokenizer");
  }
  const auto length = json.find("max_seq_length");
  if (length == json.end() || length->is_null()) return Status::Ok();
  // transformers writes 10^30 if there is no limit.
  constexpr double kUnlimited = 0x1p31;
  if (length->is_number() && *length >= kUnlimited) return Status::Ok();
  if (!length->is_number_integer() || *length < 1) {
    return InvalidFile(path,
                       "'max_seq_length' is " + length->dump() + "; must be a positive integer");
  }
  *limit = length->get<int32_t>();
  return Status::Ok();
}

}  // namespace

Status SetRerankTemplate(RerankTemplate option, const ModelConfig& config, ModelTraits* traits) {
  if (option == RerankTemplate::kAuto) return Status::Ok();
  traits->qwen3_reranker = option == RerankTemplate::kQwen3;
  if (traits->qwen3_reranker && (config.is_encoder() || config.head == Head::kNone)) {
    return Status(StatusCode::kInvalidArgument,
                  "--rerank-template is 'qwen3', which asks a causal model or a classifier built "
                  "from one; the model is a " +
                      config.ArchitectureName(),
                  "rerank-template");
  }
  return Status::Ok();
}

Result<ModelUse> LoadModelTraits(const std::string& model_dir, const std::string& name,
                                 const ModelConfig& config, std::optional<Pooling> pooling) {
  ModelUse use;
  ModelTraits& traits = use.traits;
  if (config.head == Head::kDecision) {
    if (pooling) return PoolsNothing(config, "decisions");
    traits.generates = false;
    SKEIN_ASSIGN_OR_RETURN(traits.decision_model, LoadDecisionModelTraits(model_dir, config));
    return use;
  }
  const std::string config_path = model_dir + "/config.json";
  SKEIN_ASSIGN_OR_RETURN(const Json config_json, ReadObjectIfThere(config_path));
  traits.generates = config.head == Head::kLanguageModel;
  const bool qwen3 = config.architecture == Architecture::kQwen3;
  traits.qwen3_reranker =
      qwen3 && config.head != Head::kNone && ContainsIgnoringCase(name, "reranker");
  if (config.head == Head::kClassifier) {
    if (pooling) return PoolsNothing(config, "classes");
    traits.classifies = true;
    traits.encodes_pairs = config.is_encoder();
    SKEIN_RETURN_IF_ERROR(ReadLabels(config_path, config_json, config, &traits));
    traits.multi_label = config_json.value("problem_type", Json()) == "multi_label_classification";
    // Qwen3's reranker has these two classes as a GGUF file, whose name says nothing.
    const std::vector<std::string> answers = {"yes", "no"};
    traits.qwen3_reranker |= qwen3 && traits.class_labels == answers;
    return use;
  }
  SKEIN_ASSIGN_OR_RETURN(use.colbert, LoadColbertConfig(model_dir));
  if (use.colbert && pooling) return PoolsNothing(config, "a vector for each token");
  const std::string modules_path = model_dir + "/modules.json";
  // A projection in the model's own file stands in place of modules.
  const bool has_modules = config.encoder.token_width == 0 && std::filesystem::exists(modules_path);
  traits.embeds = config.head == Head::kNone || config.head == Head::kMaskedLanguageModel ||
                  has_modules || pooling.has_value();
  if (use.colbert) traits.embeds = false;
  if (!traits.embeds && !use.colbert) return use;
  traits.embedding_size =
      config.encoder.token_width > 0 ? config.encoder.token_width : config.hidden_size;
  if (!pooling && config.head == Head::kMaskedLanguageModel) pooling = Pooling::kSplade;
  // Unless their files name a pooling, bidirectional models are pooled as in sentence-transformers.
  if (!pooling && !use.colbert) {
    SKEIN_ASSIGN_OR_RETURN(pooling, LoadPooling(model_dir));
  }
  use.pooling =
      pooling.value_or(config.bidirectional && !use.colbert ? Pooling::kMean : Pooling::kLast);
  if (use.pooling == Pooling::kSplade) {
    SKEIN_RETURN_IF_ERROR(UseSparse(config, &traits));
  }
  traits.any_dimensions = qwen3 && ContainsIgnoringCase(name, "qwen3-embedding");
  if (has_modules) {
    SKEIN_ASSIGN_OR_RETURN(const Json modules, ReadJson(modules_path));
    const bool is_sparse = config.head == Head::kMaskedLanguageModel;
    SKEIN_RETURN_IF_ERROR(ReadModules(model_dir, modules_path, modules, is_sparse, &use));
  }
  SKEIN_RETURN_IF_ERROR(ReadMatryoshka(config_path, config_json, &traits));
  const std::string prompts_path = model_dir + "/config_sentence_transformers.json";
  SKEIN_ASSIGN_OR_RETURN(const Json prompts, ReadObjectIfThere(prompts_path));
  SKEIN_RETURN_IF_ERROR(ReadPrompts(prompts_path, prompts, &traits));
  const std::string limit_path = model_dir + "/sentence_bert_config.json";
  SKEIN_ASSIGN_OR_RETURN(const Json limit, ReadObjectIfThere(limit_path));
  SKEIN_RETURN_IF_ERROR(ReadSequenceLimit(limit_path, limit, &use.max_seq_length));
  // ColBERT's queries and documents have lengths of their own.
  if (use.colbert) {
    const int32_t limit_of_all = std::exchange(use.max_seq_length, 0);
    if (use.colbert->document_length == 0) use.colbert->document_length = limit_of_all;
  }
  return use;
}

}  // namespace skein
