#include "model/config/encoders/colbert_config.h"

#include <utility>

#include "io/json_file.h"
#include "io/model_files.h"
#include "model/config/config_fields.h"
#include "model/config/encoders/module_list.h"

namespace skein {
namespace {

constexpr int32_t kUsualQueryLength = 32;
constexpr int32_t kUsualTokenWidth = 128;
constexpr char kStanford[] = "HF_ColBERT";

std::vector<std::string> Punctuation() {
  std::vector<std::string> tokens;
  for (const char c : std::string("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")) tokens.emplace_back(1, c);
  return tokens;
}

// The file, or an empty object if there is none.
Result<JsonFile> LoadIfThere(const std::string& path) {
  Result<JsonFile> file = JsonFile::Load(path);
  if (file.status().code() == StatusCode::kNotFound) return JsonFile::Parse("{}", path);
  return file;
}

Result<ColbertConfig> ReadStanford(const std::string& model_dir) {
  SKEIN_ASSIGN_OR_RETURN(const JsonFile file, LoadIfThere(model_dir + "/artifact.metadata"));
  const JsonObject& json = file.root();
  ColbertConfig colbert;
  SKEIN_ASSIGN_OR_RETURN(const auto query_marker, json.String("query_token_id"));
  SKEIN_ASSIGN_OR_RETURN(const auto document_marker, json.String("doc_token_id"));
  colbert.query_marker = query_marker.value_or("[unused0]");
  colbert.document_marker = document_marker.value_or("[unused1]");
  SKEIN_ASSIGN_OR_RETURN(const auto query_length, ReadSize(json, "query_maxlen", kMaxPosition));
  SKEIN_ASSIGN_OR_RETURN(const auto length, ReadSize(json, "doc_maxlen", kMaxPosition));
  colbert.expansion_length = colbert.query_length = query_length.value_or(kUsualQueryLength);
  colbert.document_length = length.value_or(0);
  SKEIN_ASSIGN_OR_RETURN(colbert.attends_to_expansion,
                         ReadFlag(json, "attend_to_mask_tokens", false));
  SKEIN_ASSIGN_OR_RETURN(const bool skips, ReadFlag(json, "mask_punctuation", true));
  if (skips) colbert.skipped_tokens = Punctuation();
  return colbert;
}

Result<ColbertConfig> ReadPylate(const JsonObject& json) {
  ColbertConfig colbert;
  SKEIN_ASSIGN_OR_RETURN(auto query_marker, json.String("query_prefix"));
  SKEIN_ASSIGN_OR_RETURN(auto document_marker, json.String("document_prefix"));
  colbert.query_marker = std::move(query_marker).value_or("");
  colbert.document_marker = std::move(document_marker).value_or("");
  SKEIN_ASSIGN_OR_RETURN(const auto query_length, ReadSize(json, "query_length", kMaxPosition));
  SKEIN_ASSIGN_OR_RETURN(const auto length, ReadSize(json, "document_length", kMaxPosition));
  colbert.query_length = query_length.value_or(0);
  colbert.document_length = length.value_or(0);
  SKEIN_ASSIGN_OR_RETURN(const bool expands, ReadFlag(json, "do_query_expansion", true));
  if (expands) {
    colbert.expansion_length = colbert.query_length = query_length.value_or(kUsualQueryLength);
  }
  SKEIN_ASSIGN_OR_RETURN(colbert.attends_to_expansion,
                         ReadFlag(json, "attend_to_expansion_tokens", false));
  SKEIN_ASSIGN_OR_RETURN(auto words, json.Strings("skiplist_words"));
  colbert.skipped_tokens = words ? *std::move(words) : Punctuation();
  return colbert;
}

Status ReadMask(const std::string& dir, ColbertConfig* colbert) {
  SKEIN_ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Load(dir + "/config.json"));
  const JsonObject& json = file.root();
  SKEIN_ASSIGN_OR_RETURN(auto words, json.Strings("skiplist_words"));
  if (words) colbert->skipped_tokens = *std::move(words);
  SKEIN_ASSIGN_OR_RETURN(const auto tasks, json.Strings("skiplist_tasks"));
  if (tasks && *tasks != std::vector<std::string>{"document"}) {
    return Unsupported(json, "skiplist_tasks", "is not [\"document\"]");
  }
  if (json.Has("keep_only_token_ids")) {
    return Unsupported(json, "keep_only_token_ids", "is there; only null is supported");
  }
  return Status::Ok();
}

// The layout of sentence-transformers: markers are prompts, which its tokenizer knows as tokens.
Result<ColbertConfig> ReadMultiVector(const std::string& model_dir) {
  SKEIN_ASSIGN_OR_RETURN(const JsonFile file,
                         LoadIfThere(model_dir + "/sentence_bert_config.json"));
  const JsonObject& json = file.root();
  ColbertConfig colbert;
  SKEIN_ASSIGN_OR_RETURN(const auto query_length, ReadSize(json, "query_length", kMaxPosition));
  SKEIN_ASSIGN_OR_RETURN(const auto length, ReadSize(json, "document_length", kMaxPosition));
  colbert.query_length = query_length.value_or(0);
  colbert.document_length = length.value_or(0);
  SKEIN_ASSIGN_OR_RETURN(const auto expansion, json.Object("query_expansion"));
  if (expansion) {
    SKEIN_RETURN_IF_ERROR(
        RequireSize(*expansion, "length", kMaxPosition, &colbert.expansion_length));
    SKEIN_ASSIGN_OR_RETURN(const auto strategy, expansion->String("strategy"));
    if (strategy != "fixed" && strategy != "min") {
      return Unsupported(*expansion, "strategy",
                         "is '" + strategy.value_or("") + "'; supported are 'fixed' and 'min'");
    }
    if (strategy == "fixed") colbert.query_length = colbert.expansion_length;
    SKEIN_ASSIGN_OR_RETURN(colbert.attends_to_expansion, ReadFlag(*expansion, "attend", false));
    SKEIN_ASSIGN_OR_RETURN(auto token, expansion->String("token"));
    colbert.expansion_token = std::move(token).value_or("");
  }
  for (const ModuleEntry& module : LoadModuleList(model_dir)) {
    if (module.kind == "MultiVectorMask") SKEIN_RETURN_IF_ERROR(ReadMask(module.dir, &colbert));
  }
  return colbert;
}

Result<bool> IsStanford(const std::string& model_dir) {
  SKEIN_ASSIGN_OR_RETURN(const JsonFile file, LoadIfThere(model_dir + "/config.json"));
  SKEIN_ASSIGN_OR_RETURN(const auto names, file.root().Strings("architectures"));
  return names && names->size() == 1 && names->front() == kStanford;
}

}  // namespace

Result<std::optional<ColbertConfig>> LoadColbertConfig(const std::string& model_dir) {
  const auto found = [](Result<ColbertConfig> colbert) -> Result<std::optional<ColbertConfig>> {
    if (!colbert.ok()) return colbert.status();
    return std::optional<ColbertConfig>(std::move(*colbert));
  };
  SKEIN_ASSIGN_OR_RETURN(const bool stanford, IsStanford(model_dir));
  if (stanford) return found(ReadStanford(model_dir));
  // A file that cannot be read is reported by the reader of its prompts.
  Result<JsonFile> file = JsonFile::Load(model_dir + "/config_sentence_transformers.json");
  if (!file.ok()) return std::optional<ColbertConfig>();
  SKEIN_ASSIGN_OR_RETURN(const auto type, file->root().String("model_type"));
  // Earlier versions of PyLate wrote no type.
  const bool is_pylate = type == "ColBERT" || (!type && file->root().Contains("query_prefix"));
  if (is_pylate) return found(ReadPylate(file->root()));
  if (type == "MultiVectorEncoder") return found(ReadMultiVector(model_dir));
  return std::optional<ColbertConfig>();
}

Status UseTokenVectors(const std::string& model_dir, ModelConfig* config) {
  const bool inline_projection = config->head == Head::kTokenVectors;
  if (!config->is_encoder() || config->architecture == Architecture::kDebertaV2 ||
      (config->head != Head::kNone && !inline_projection)) {
    return Status(StatusCode::kUnsupported,
                  "a ColBERT model must be an encoder without a head, and not "
                  "DeBERTa; this one is "
                  "a " +
                      config->ArchitectureName(),
                  "architectures");
  }
  config->head = Head::kTokenVectors;
  if (!inline_projection) return Status::Ok();
  config->encoder.token_width = kUsualTokenWidth;
  Result<ModelFiles> files = ModelFiles::Open(model_dir);
  if (files.status().code() == StatusCode::kNotFound) return Status::Ok();
  SKEIN_RETURN_IF_ERROR(files.status());
  SKEIN_ASSIGN_OR_RETURN(const TensorView projection, files->Find("linear.weight"));
  if (projection.shape.size() != 2 || projection.shape[0] < 1 || projection.shape[0] > kMaxWidth) {
    return Status(StatusCode::kInvalidArgument, "linear.weight is not a matrix");
  }
  config->encoder.token_width = static_cast<int32_t>(projection.shape[0]);
  return Status::Ok();
}

}  // namespace skein
