#include <spdlog/fmt/fmt.h>

#include <bit>
#include <memory>
#include <utility>

#include "server/api/token_embeddings.h"
#include "server/generation/answer_format.h"
#include "server/generation/generation_call.h"
#include "server/json/base64.h"
#include "server/json/request_body.h"
#include "server/reads/pooling_call.h"
#include "server/routes.h"

namespace skein {
namespace {

// The form of the vectors in an answer. kBytes: the body holds their numbers alone, little-endian
// binary32, one vector behind the other.
enum class VectorFormat { kFloat, kBase64, kBytes };

// Reads encoding_format. vLLM has the same names.
VectorFormat ReadVectorFormat(FieldReader* reader, PoolingCall* call) {
  const std::string format = reader->String("encoding_format").value_or("float");
  if (format == "base64") return VectorFormat::kBase64;
  if (format == "bytes_only") {
    call->content_type = "application/octet-stream";
    return VectorFormat::kBytes;
  }
  if (format != "float") {
    reader->RefuseValue("encoding_format", R"("float", "base64" or "bytes_only")", Json(format));
  }
  return VectorFormat::kFloat;
}

std::string VectorBytes(const PooledResults& results) {
  static_assert(std::endian::native == std::endian::little);
  std::string body;
  if (!results.vectors.empty()) {
    body.reserve(results.vectors.size() * results.vectors.front().size() * sizeof(float));
  }
  for (const std::vector<float>& vector : results.vectors) {
    body.append(reinterpret_cast<const char*>(vector.data()), vector.size() * sizeof(float));
  }
  return body;
}

// Makes a list answer. Each entry holds one vector: {"object": `entry`, "index", `name`: vector}.
// `head` has the first members.
std::string VectorList(const Json& head, const char* entry, const char* name, VectorFormat format,
                       const PooledResults& results) {
  if (format == VectorFormat::kBytes) return VectorBytes(results);
  std::string body = DumpJson(head);
  body.pop_back();
  body += R"(,"data":[)";
  for (size_t i = 0; i < results.vectors.size(); ++i) {
    body += fmt::format(R"({}{{"object":"{}","index":{},"{}":)", i > 0 ? "," : "", entry, i, name);
    if (format == VectorFormat::kBase64) {
      body += '"';
      AppendBase64(std::as_bytes(std::span(results.vectors[i])), &body);
      body += '"';
    } else {
      AppendFloats(results.vectors[i], &body);
    }
    body += '}';
  }
  body += R"(],"usage":)" + DumpJson(ReadUsageJson(results.usage)) + "}";
  return body;
}

Json ListHead(const ModelEntry& model) {
  Json head;
  head["object"] = "list";
  head["model"] = model.name();
  return head;
}

Json ListHead(const ModelEntry& model, const char* id_prefix, uint64_t random) {
  Json head;
  head["id"] = MakeAnswerId(id_prefix, random);
  head["object"] = "list";
  head["created"] = UnixSeconds();
  head["model"] = model.name();
  return head;
}

Status StartEmbeddings(const ServerContext& context, const HttpRequest& request,
                       std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(PoolingCall call, BeginEmbedding(context, &reader));
  InputOptions options = ReadInputOptions(&reader, *call.model);
  ReadPromptName(&reader, *call.model, &options);
  ReadEmbeddingFields(&reader, call.model->traits.normalizes, &call);
  const VectorFormat format = ReadVectorFormat(&reader, &call);
  SKEIN_RETURN_IF_ERROR(ReadCallTexts(options, "input", &reader, &call));
  Json head = ListHead(*call.model);
  FinishPooling(context, std::move(call), std::move(responder),
                [head = std::move(head), format](const PooledResults& results) {
                  return VectorList(head, "embedding", "embedding", format, results);
                });
  return Status::Ok();
}

// Chooses the output that /pooling reads: by `task` if it is given, else by the outputs of the
// model.
Result<PoolingCall> BeginTask(const ServerContext& context, FieldReader* reader) {
  SKEIN_ASSIGN_OR_RETURN(const ModelEntry* model, FindModel(*context.models, reader));
  const auto task = reader->String("task");
  if (task && *task != "embed" && *task != "classify") {
    reader->RefuseValue(
        "task", "\"embed\" or \"classify\", or \"token_embed\" with a ColBERT model", Json(*task));
    return reader->status();
  }
  const bool embeds = task ? *task == "embed" : model->traits.embeds;
  return embeds ? BeginEmbedding(context, reader) : BeginClassification(context, reader);
}

// Whether /pooling is asked for the vectors of tokens: a ColBERT model gives nothing else.
Result<bool> AsksTokens(const ServerContext& context, FieldReader* reader) {
  SKEIN_ASSIGN_OR_RETURN(const ModelEntry* model, FindModel(*context.models, reader));
  const auto task = reader->String("task");
  return model->traits.late_interaction && (!task || *task == "token_embed");
}

Status StartPooling(const ServerContext& context, const HttpRequest& request,
                    std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(const bool tokens, AsksTokens(context, &reader));
  if (tokens) return StartTokenEmbeddings(context, &reader, std::move(responder));
  SKEIN_ASSIGN_OR_RETURN(PoolingCall call, BeginTask(context, &reader));
  InputOptions options = ReadInputOptions(&reader, *call.model);
  const bool embeds = std::holds_alternative<EmbedSpec>(call.request.output);
  const bool activate = reader.Bool("use_activation").value_or(true);
  if (embeds) {
    ReadPromptName(&reader, *call.model, &options);
    ReadEmbeddingFields(&reader, activate && call.model->traits.normalizes, &call);
  } else if (activate) {
    call.activation = ActivationOf(call.model->traits);
  }
  const VectorFormat format = ReadVectorFormat(&reader, &call);
  SKEIN_RETURN_IF_ERROR(ReadCallTexts(options, "input", &reader, &call));
  Json head = ListHead(*call.model, "pool", context.random_seed());
  FinishPooling(context, std::move(call), std::move(responder),
                [head = std::move(head), format](const PooledResults& results) {
                  return VectorList(head, "pooling", "data", format, results);
                });
  return Status::Ok();
}

std::string ClassList(Json answer, const ModelTraits& traits, const PooledResults& results) {
  answer["data"] = Json::array();
  for (const std::vector<float>& probs : results.vectors) {
    const auto best = std::max_element(probs.begin(), probs.end()) - probs.begin();
    Json entry;
    entry["index"] = answer["data"].size();
    entry["label"] = ClassLabel(traits, static_cast<size_t>(best));
    entry["probs"] = probs;
    entry["num_classes"] = probs.size();
    answer["data"].push_back(std::move(entry));
  }
  answer["usage"] = ReadUsageJson(results.usage);
  return DumpJson(answer);
}

Status StartClassify(const ServerContext& context, const HttpRequest& request,
                     std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(PoolingCall call, BeginClassification(context, &reader));
  const InputOptions options = ReadInputOptions(&reader, *call.model);
  if (reader.Bool("use_activation").value_or(true)) {
    call.activation = ActivationOf(call.model->traits);
  }
  SKEIN_RETURN_IF_ERROR(ReadCallTexts(options, "input", &reader, &call));
  Json head = ListHead(*call.model, "classify", context.random_seed());
  const ModelTraits& traits = call.model->traits;
  FinishPooling(context, std::move(call), std::move(responder),
                [head = std::move(head), &traits](const PooledResults& results) {
                  return ClassList(head, traits, results);
                });
  return Status::Ok();
}

}  // namespace

void AddEmbeddingsRoutes(Router* router) {
  router->AddWork("POST", "/v1/embeddings", Starting(&StartEmbeddings), RouteClass::kEmbed);
  router->AddWork("POST", "/pooling", Starting(&StartPooling), RouteClass::kEmbed);
  for (const char* path : {"/classify", "/v1/classify"}) {  // the second is what smg asks
    router->AddWork("POST", path, Starting(&StartClassify), RouteClass::kEmbed);
  }
}

}  // namespace skein
