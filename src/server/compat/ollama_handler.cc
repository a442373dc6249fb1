#include <spdlog/fmt/fmt.h>

#include <memory>
#include <utility>

#include "base/clock.h"
#include "server/compat/compat_body.h"
#include "server/compat/ollama_chat.h"
#include "server/generation/generation_call.h"
#include "server/json/request_body.h"
#include "server/reads/pooling_call.h"
#include "server/routes.h"

namespace skein {
namespace {

void SendAnswer(const Json& json, Responder* responder) {
  HttpResponse response;
  response.body = DumpJson(json);
  responder->Send(std::move(response));
}

Json Details() {
  Json details;
  details["parent_model"] = "";
  details["format"] = "skein";
  details["family"] = "";
  details["families"] = nullptr;
  details["parameter_size"] = "";
  details["quantization_level"] = "";
  return details;
}

// Lists the served models. The server does not know the sizes and digests of their files.
void ListTags(const ServerContext& context, std::shared_ptr<const HttpRequest>,
              std::shared_ptr<Responder> responder) {
  Json models = Json::array();
  for (const ModelEntry& model : context.models->entries()) {
    Json entry;
    entry["name"] = model.name();
    entry["model"] = model.name();
    entry["modified_at"] = Rfc3339Now();
    entry["size"] = 0;
    entry["digest"] = "";
    entry["details"] = Details();
    models.push_back(std::move(entry));
  }
  SendAnswer({{"models", std::move(models)}}, responder.get());
}

Status ShowModel(const ServerContext& context, const HttpRequest& request,
                 std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(Json body, ParseBody(context, request));
  MoveMember("name", "model", &body);
  DropLatestTag(*context.models, &body);
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(const ModelEntry* model, FindModel(*context.models, &reader));
  Json answer;
  answer["modelfile"] = "";
  answer["parameters"] = "";
  answer["template"] = "";
  answer["details"] = Details();
  answer["model_info"] = {{"general.name", model->name()},
                          {"general.context_length", model->max_model_len}};
  answer["capabilities"] = Json::array();
  if (model->traits.generates) answer["capabilities"] = {"completion", "tools"};
  if (model->traits.generates && model->reasoning.style != ReasoningStyle::kNone) {
    answer["capabilities"].push_back("thinking");
  }
  if (model->traits.embeds) answer["capabilities"].push_back("embedding");
  SendAnswer(answer, responder.get());
  return Status::Ok();
}

// Starts an embedding of the texts in the body's member `field`.
Status StartOllamaEmbedding(const ServerContext& context, const HttpRequest& request,
                            const char* field, bool is_list, std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(Json body, ParseBody(context, request));
  const std::string asked = StringMember(body, "model");
  DropLatestTag(*context.models, &body);
  if (!body.contains("truncate")) body["truncate"] = true;
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(PoolingCall call, BeginEmbedding(context, &reader));
  const InputOptions options = ReadInputOptions(&reader, *call.model);
  ReadEmbeddingFields(&reader, /*normalize_by_default=*/true, &call);
  const TimeUs begin_us = MonotonicClock().NowUs();
  SKEIN_RETURN_IF_ERROR(ReadCallTexts(options, field, &reader, &call));
  const std::string model = asked.empty() ? call.model->name() : asked;
  FinishPooling(context, std::move(call), std::move(responder),
                [model, is_list, begin_us](const PooledResults& results) {
                  std::string vectors;
                  for (const std::vector<float>& vector : results.vectors) {
                    if (!vectors.empty()) vectors += ',';
                    AppendFloats(vector, &vectors);
                  }
                  if (!is_list) return "{\"embedding\":" + vectors + "}";
                  return fmt::format(
                      R"({{"model":{},"embeddings":[{}],"total_duration":{},"load_duration":0,)"
                      R"("prompt_eval_count":{}}})",
                      DumpJson(model), vectors, (MonotonicClock().NowUs() - begin_us) * 1000,
                      results.usage.input_tokens);
                });
  return Status::Ok();
}

Status StartEmbedList(const ServerContext& context, const HttpRequest& request,
                      std::shared_ptr<Responder> responder) {
  return StartOllamaEmbedding(context, request, "input", true, std::move(responder));
}

Status StartEmbedOne(const ServerContext& context, const HttpRequest& request,
                     std::shared_ptr<Responder> responder) {
  return StartOllamaEmbedding(context, request, "prompt", false, std::move(responder));
}

void ShowVersion(const ServerContext&, std::shared_ptr<const HttpRequest>,
                 std::shared_ptr<Responder> responder) {
  SendAnswer({{"version", SKEIN_VERSION}}, responder.get());
}

}  // namespace

void AddOllamaRoutes(Router* router) {
  router->AddWork("POST", "/api/chat", OllamaChat(), RouteClass::kGenerate, &MayNeedGrammar);
  router->AddWork("POST", "/api/generate", OllamaGenerate(), RouteClass::kGenerate,
                  &MayNeedGrammar);
  router->AddWork("POST", "/api/embed", Starting(&StartEmbedList, &OllamaFailure),
                  RouteClass::kEmbed);
  router->AddWork("POST", "/api/embeddings", Starting(&StartEmbedOne, &OllamaFailure),
                  RouteClass::kEmbed);
  router->AddWork("POST", "/api/show", Starting(&ShowModel, &OllamaFailure));
  router->AddWork("GET", "/api/tags", ListTags);
  router->AddWork("GET", "/api/ps", ListTags);
  router->AddOpen("GET", "/api/version", ShowVersion);
}

}  // namespace skein
