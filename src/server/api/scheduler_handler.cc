#include <memory>
#include <utility>

#include "server/generation/generation_call.h"
#include "server/json/json.h"
#include "server/routes.h"

namespace skein {
namespace {

const char* StateName(RequestView::State state) {
  switch (state) {
    case RequestView::State::kRunning:
      return "running";
    case RequestView::State::kSuspended:
      return "suspended";
    case RequestView::State::kWaiting:
      break;
  }
  return "waiting";
}

double Milliseconds(TimeUs us) { return 1e-3 * static_cast<double>(us); }

Json RequestJson(const RequestView& view) {
  Json json;
  json["id"] = view.id;
  json["state"] = StateName(view.state);
  json["class"] = view.oneshot ? "oneshot" : "decode";
  json["priority"] = view.priority;
  json["adapter_id"] = view.adapter_id;
  json["n"] = view.num_samples;
  json["prompt_tokens"] = view.prompt_tokens;
  json["cached_tokens"] = view.cached_tokens;
  json["computed_tokens"] = view.computed_tokens;
  json["output_tokens"] = view.output_tokens;
  json["age_ms"] = Milliseconds(view.age_us);
  json["slack_ms"] = view.slack_us ? Json(Milliseconds(*view.slack_us)) : Json(nullptr);
  return json;
}

Json ViewJson(const ModelEntry& model, const EngineView& view) {
  Json json;
  json["model"] = model.name();
  json["num_running"] = view.num_running;
  json["num_suspended"] = view.num_suspended;
  json["num_waiting"] = view.num_waiting;
  json["requests"] = Json::array();
  for (const RequestView& request : view.requests) json["requests"].push_back(RequestJson(request));
  json["block_tokens"] = view.block_tokens;
  json["num_blocks"] = view.num_blocks;
  json["num_used_blocks"] = view.num_used_blocks;
  json["num_cached_blocks"] = view.num_cached_blocks;
  json["num_prefixes"] = view.num_prefixes;
  json["prefixes"] = Json::array();
  for (const PrefixView& prefix : view.prefixes) {
    json["prefixes"].push_back({{"parent", prefix.parent},
                                {"num_blocks", prefix.num_blocks},
                                {"num_sequences", prefix.num_sequences}});
  }
  return json;
}

// Answers with the scheduler's requests and the tree of cached prefixes, as numbers: no contents
// and no names of users. Adapters share the engine of the first model.
Status StartView(const ServerContext& context, const HttpRequest&,
                 std::shared_ptr<Responder> responder) {
  const ModelEntry& model = context.models->entries().front();
  return model.engine->View([&model, responder = std::move(responder)](EngineView view) {
    HttpResponse response;
    response.body = DumpJson(ViewJson(model, view));
    responder->Send(std::move(response));
  });
}

}  // namespace

void AddSchedulerRoute(Router* router) {
  router->AddWork("GET", "/scheduler", Starting(&StartView));
}

}  // namespace skein
