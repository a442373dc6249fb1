#include <memory>
#include <string>
#include <utility>

#include "server/api/page_html.h"
#include "server/routes.h"

namespace skein {
namespace {

// The page loads nothing from other servers and connects to this server only.
constexpr char kContentPolicy[] =
    "default-src 'none'; connect-src 'self'; img-src data:; script-src 'unsafe-inline'; style-src "
    "'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

void ShowPage(const ServerContext&, std::shared_ptr<const HttpRequest>,
              std::shared_ptr<Responder> responder) {
  HttpResponse response;
  response.content_type = "text/html; charset=utf-8";
  response.headers.emplace_back("Content-Security-Policy", kContentPolicy);
  response.body = kPageHtml;
  responder->Send(std::move(response));
}

}  // namespace

void AddPageRoute(Router* router) { router->AddOpen("GET", "/", ShowPage); }

}  // namespace skein
