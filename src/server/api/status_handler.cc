#include <memory>
#include <utility>

#include "server/json/api_error.h"
#include "server/routes.h"

namespace skein {
namespace {

void Health(const ServerContext& context, std::shared_ptr<const HttpRequest>,
            std::shared_ptr<Responder> responder) {
  if (!context.serving) {
    return responder->Send(context.models == nullptr ? LoadingResponse() : DrainingResponse());
  }
  HttpResponse response;
  response.body = R"({"status":"ok"})";
  responder->Send(std::move(response));
}

// Liveness: says that the process answers, also while it loads or drains, since a restart would not
// help then.
void Live(const ServerContext&, std::shared_ptr<const HttpRequest>,
          std::shared_ptr<Responder> responder) {
  HttpResponse response;
  response.body = R"({"status":"alive"})";
  responder->Send(std::move(response));
}

void Version(const ServerContext&, std::shared_ptr<const HttpRequest>,
             std::shared_ptr<Responder> responder) {
  HttpResponse response;
  response.body = R"({"version":")" SKEIN_VERSION R"("})";
  responder->Send(std::move(response));
}

void ShowMetrics(const ServerContext& context, std::shared_ptr<const HttpRequest>,
                 std::shared_ptr<Responder> responder) {
  HttpResponse response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body =
      context.metrics->Render(context.models != nullptr ? *context.models : ModelRegistry());
  responder->Send(std::move(response));
}

}  // namespace

void AddStatusRoutes(Router* router) {
  router->AddOpen("GET", "/health", Health);
  router->AddOpen("GET", "/readyz", Health);
  router->AddOpen("GET", "/livez", Live);
  router->AddOpen("GET", "/ping", Health);
  router->AddOpen("POST", "/ping", Health);
  router->AddOpen("GET", "/version", Version);
  router->AddOpen("GET", "/metrics", ShowMetrics);
}

}  // namespace skein
