#include "server/router.h"

#include <utility>

namespace skein {
namespace {

bool Matches(std::string_view pattern, std::string_view path) {
  if (pattern.size() > 1 && pattern.back() == '/') {
    return path.size() > pattern.size() && path.substr(0, pattern.size()) == pattern;
  }
  return pattern == path;
}

}  // namespace

void Router::Add(Route route) { routes_.push_back(std::move(route)); }

void Router::AddWork(std::string method, std::string path, Handler handler, RouteClass route_class,
                     bool (*is_heavy)(std::string_view body)) {
  Add({std::move(method), std::move(path), Route::Kind::kWork, std::move(handler), route_class,
       is_heavy});
}

void Router::AddOpen(std::string method, std::string path, Handler handler) {
  Add({std::move(method), std::move(path), Route::Kind::kOpen, std::move(handler)});
}

const Route* Router::Find(std::string_view method, std::string_view path,
                          std::string* allowed_methods) const {
  allowed_methods->clear();
  for (const Route& route : routes_) {
    if (!Matches(route.path, path)) continue;
    if (route.method == method) return &route;
    if (!allowed_methods->empty()) *allowed_methods += ", ";
    *allowed_methods += route.method;
  }
  return nullptr;
}

}  // namespace skein
