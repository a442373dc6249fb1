#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/http_message.h"
#include "server/metrics.h"
#include "server/model_registry.h"
#include "server/scheduling_defaults.h"
#include "server/server_config.h"

namespace skein {

class BatchService;  // server/batches/batch_service.h

// The objects that handlers may use. Thread-safe; outlives all running handlers.
struct ServerContext {
  const ServerConfig* config = nullptr;
  const ModelRegistry* models = nullptr;  // null while models load
  Metrics* metrics = nullptr;
  bool serving = true;                    // false while models load and while the server drains
  std::function<uint64_t()> random_seed;  // the seed of requests that have none
  RouteClass route_class = RouteClass::kOther;  // the class of the request's route
  size_t body_bytes = 0;                        // the length of the request's body
  BatchService* batches = nullptr;              // null: there are none
  // Counts tokens against the limits of the caller's key; null if the key has no limit.
  std::function<void(int64_t num_tokens)> charge;
};

using Handler =
    std::function<void(const ServerContext& context, std::shared_ptr<const HttpRequest> request,
                       std::shared_ptr<Responder> responder)>;

struct Route {
  std::string method;
  std::string path;  // a path that ends with '/' matches all paths that begin with it
  // kWork: the caller needs a key, the model must be loaded, long bodies run on a worker thread,
  // and requests are refused while the server drains. kOpen: none of this applies, and the handler
  // runs at once.
  enum class Kind { kWork, kOpen } kind = Kind::kWork;
  Handler handler;
  RouteClass route_class = RouteClass::kOther;
  // Whether even a short body takes long, and so needs a worker thread. Null: no short body does.
  bool (*is_heavy)(std::string_view body) = nullptr;
};

// Finds the route of a request. Immutable after the last Add.
class Router {
 public:
  void Add(Route route);
  void AddWork(std::string method, std::string path, Handler handler,
               RouteClass route_class = RouteClass::kOther,
               bool (*is_heavy)(std::string_view body) = nullptr);
  void AddOpen(std::string method, std::string path, Handler handler);

  // Null if there is no such route. Then *allowed_methods lists the methods that the path has
  // (empty: there is no such path).
  const Route* Find(std::string_view method, std::string_view path,
                    std::string* allowed_methods) const;

 private:
  std::vector<Route> routes_;
};

}  // namespace skein
