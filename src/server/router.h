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

// The objects that handlers may use. Thread-safe; lives as long as any handler runs.
struct ServerContext {
  const ServerConfig* config = nullptr;
  const ModelRegistry* models = nullptr;  // null while models load
  Metrics* metrics = nullptr;
  bool serving = true;                    // false while models load and while the server drains
  std::function<uint64_t()> random_seed;  // the seed of requests that name none
  RouteClass route_class = RouteClass::kOther;  // the class of the request's route
  BatchService* batches = nullptr;              // null: there are none
  // Counts tokens against the limits of the caller's key; null: it has none.
  std::function<void(int64_t num_tokens)> charge;
};

using Handler =
    std::function<void(const ServerContext& context, std::shared_ptr<const HttpRequest> request,
                       std::shared_ptr<Responder> responder)>;

struct Route {
  std::string method;
  std::string path;  // ends with '/': a prefix
  // kWork needs the key and a loaded model, runs on a worker thread if its body is long and is
  // refused while draining; kOpen needs neither and runs at once.
  enum class Kind { kWork, kOpen } kind = Kind::kWork;
  Handler handler;
  RouteClass route_class = RouteClass::kOther;
  // Whether a short body takes long, too, and so a worker thread. Null: none does.
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

  // Null if there is none; *allowed_methods then lists those of the path (empty: no such path).
  const Route* Find(std::string_view method, std::string_view path,
                    std::string* allowed_methods) const;

 private:
  std::vector<Route> routes_;
};

}  // namespace skein
