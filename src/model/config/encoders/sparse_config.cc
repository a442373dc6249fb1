#include "model/config/encoders/sparse_config.h"

#include <utility>
#include <vector>

#include "io/json_file.h"
#include "model/config/config_fields.h"
#include "model/config/encoders/module_list.h"

namespace skein {
namespace {

constexpr char kPoolingKind[] = "SpladePooling", kTableKind[] = "SparseStaticEmbedding";

Result<SparseFields> ReadPooling(const std::string& path) {
  SKEIN_ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Load(path));
  const JsonObject& json = file.root();
  SparseFields sparse;
  SKEIN_ASSIGN_OR_RETURN(const auto strategy, json.String("pooling_strategy"));
  if (strategy && *strategy != "max" && *strategy != "sum") {
    return Unsupported(json, "pooling_strategy",
                       "is '" + *strategy + "'; supported are 'max' and 'sum'");
  }
  sparse.sums = strategy == "sum";
  SKEIN_ASSIGN_OR_RETURN(const auto activation, json.String("activation_function"));
  if (activation && *activation != "relu" && *activation != "log1p_relu") {
    return Unsupported(json, "activation_function",
                       "is '" + *activation + "'; supported are 'relu' and 'log1p_relu'");
  }
  sparse.log_twice = activation == "log1p_relu";
  return sparse;
}

// Reads the modules of documents, and the directory of the queries' weights, from
// router_config.json:
// {"types": {name: type}, "structure":
// {"query": [name], "document": [name]}}. The folder of a module has its name.
Result<std::optional<SparseFields>> ReadRouter(const std::string& dir) {
  SKEIN_ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Load(dir + "/router_config.json"));
  SKEIN_ASSIGN_OR_RETURN(const auto types, file.root().Object("types"));
  SKEIN_ASSIGN_OR_RETURN(const auto structure, file.root().Object("structure"));
  if (!types || !structure) return std::optional<SparseFields>();
  SKEIN_ASSIGN_OR_RETURN(const auto documents, structure->Strings("document"));
  SKEIN_ASSIGN_OR_RETURN(const auto queries, structure->Strings("query"));
  const auto first_of = [&](const std::vector<std::string>& names,
                            const char* kind) -> Result<std::string> {
    for (const std::string& name : names) {
      SKEIN_ASSIGN_OR_RETURN(const auto type, types->String(name));
      if (type && ModuleKind(*type) == kind) return name;
    }
    return std::string();
  };
  if (!documents) return std::optional<SparseFields>();
  SKEIN_ASSIGN_OR_RETURN(const std::string of_documents, first_of(*documents, kPoolingKind));
  if (of_documents.empty()) return std::optional<SparseFields>();
  SKEIN_ASSIGN_OR_RETURN(SparseFields sparse,
                         ReadPooling(dir + "/" + of_documents + "/config.json"));
  const std::vector<std::string> names = queries.value_or(std::vector<std::string>());
  SKEIN_ASSIGN_OR_RETURN(const std::string of_queries, first_of(names, kPoolingKind));
  sparse.documents_only = of_queries.empty();
  if (!sparse.documents_only) return std::optional<SparseFields>(sparse);
  SKEIN_ASSIGN_OR_RETURN(const std::string table, first_of(names, kTableKind));
  if (!table.empty()) sparse.query_dir = dir + "/" + table;
  return std::optional<SparseFields>(sparse);
}

}  // namespace

Result<std::optional<SparseFields>> LoadSparseFields(const std::string& model_dir) {
  for (const ModuleEntry& module : LoadModuleList(model_dir)) {
    if (module.kind == "Router") return ReadRouter(module.dir);
    if (module.kind != kPoolingKind) continue;
    SKEIN_ASSIGN_OR_RETURN(const SparseFields sparse, ReadPooling(module.dir + "/config.json"));
    return std::optional<SparseFields>(sparse);
  }
  return std::optional<SparseFields>();
}

Status UseSparseHead(const SparseFields& sparse, ModelConfig* config) {
  const std::string name = config->ArchitectureName();
  if (!config->encoder.predicts_masked) {
    return Status(StatusCode::kInvalidArgument,
                  "the pooling splade needs a head that predicts masked tokens; the model is a " +
                      name + ", not a model such as BertForMaskedLM",
                  "pooling");
  }
  if (config->architecture == Architecture::kDebertaV2 ||
      config->architecture == Architecture::kMpnet) {
    return Status(
        StatusCode::kUnsupported,
        "the pooling splade is not supported for the head of " + name +
            "; supported are BertForMaskedLM, RobertaForMaskedLM, XLMRobertaForMaskedLM, "
            "DistilBertForMaskedLM, ModernBertForMaskedLM, GteForMaskedLM and NewForMaskedLM",
        "pooling");
  }
  config->head = Head::kMaskedLanguageModel;
  config->encoder.sparse = sparse;
  return Status::Ok();
}

Status AdaptHead(Pooling pooling, ModelConfig* config) {
  const bool is_sparse = config->head == Head::kMaskedLanguageModel;
  if (pooling == Pooling::kSplade && !is_sparse) return UseSparseHead({}, config);
  if (pooling != Pooling::kSplade && is_sparse) config->head = Head::kNone;
  return Status::Ok();
}

}  // namespace skein
