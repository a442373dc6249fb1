#include <memory>
#include <utility>

#include "server/json/api_error.h"
#include "server/routes.h"

namespace skein {
namespace {

constexpr std::string_view kModelPrefix = "/v1/models/";

// The outputs of a model; a causal model can also give typed decisions.
Json OutputModalities(const ModelTraits& traits) {
  Json modalities = Json::array();
  if (traits.generates) modalities = {"text", "decisions"};
  if (traits.decision_model) modalities.push_back("decisions");
  if (traits.embeds || traits.late_interaction) modalities.push_back("embeddings");
  if (traits.classifies) modalities.push_back("classes");
  return modalities;
}

Json Card(const ModelEntry& model, const std::string& name) {
  Json card;
  card["id"] = name;
  card["object"] = "model";
  card["created"] = model.created_s;
  card["owned_by"] = "skein";
  card["root"] = model.name();
  card["parent"] = model.parent.empty() ? Json(nullptr) : Json(model.parent);
  card["max_model_len"] = model.max_model_len;
  Json& architecture = card["architecture"];
  architecture["input_modalities"] = Json::array({"text"});
  architecture["output_modalities"] = OutputModalities(model.traits);
  return card;
}

void SendJson(const Json& json, Responder* responder) {
  HttpResponse response;
  response.body = DumpJson(json);
  responder->Send(std::move(response));
}

void ListModels(const ServerContext& context, std::shared_ptr<const HttpRequest>,
                std::shared_ptr<Responder> responder) {
  Json list;
  list["object"] = "list";
  list["data"] = Json::array();
  for (const ModelEntry& model : context.models->entries()) {
    for (const std::string& name : model.names) list["data"].push_back(Card(model, name));
  }
  SendJson(list, responder.get());
}

void ShowModel(const ServerContext& context, std::shared_ptr<const HttpRequest> request,
               std::shared_ptr<Responder> responder) {
  const std::string name = request->path.substr(kModelPrefix.size());
  const ModelEntry* model = context.models->Find(name);
  if (model == nullptr) {
    return responder->Send(ErrorResponse(
        Status(StatusCode::kNotFound, "the model " + name + " does not exist", "model")));
  }
  SendJson(Card(*model, name), responder.get());
}

}  // namespace

void AddModelsRoutes(Router* router) {
  router->AddWork("GET", "/v1/models", ListModels);
  router->AddWork("GET", std::string(kModelPrefix), ShowModel);
}

}  // namespace skein
