#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "server/http/http_message.h"
#include "server/metrics.h"
#include "server/model_registry.h"
#include "server/router.h"
#include "server/server_config.h"

namespace skein {

// The server's routes without HTTP, for callers in this process: the same handlers, on one thread
// for all. Streams are not supported: a body must not ask for one.
class LocalRoutes {
 public:
  // The objects that `models` points to must outlive this object. `random_seed` gives the seeds of
  // requests that have none, and the ids of answers. By default, every such seed is 0.
  explicit LocalRoutes(
      ModelRegistry models, std::function<uint64_t()> random_seed = [] { return uint64_t{0}; });
  // REQUIRES: every Post has been answered.
  ~LocalRoutes();
  LocalRoutes(const LocalRoutes&) = delete;
  LocalRoutes& operator=(const LocalRoutes&) = delete;

  // Whether there is a route POST `path`.
  bool Has(const std::string& path) const;
  // Passes a request to the handler of POST `path`, which must exist. `done` gets the answer on the
  // routes' thread. Any thread.
  void Post(const std::string& path, std::string body, std::function<void(HttpResponse)> done);
  // Ends the running requests. Each is answered soon, with an error unless its answer was already
  // complete. Any thread.
  void Abort();

 private:
  class LocalResponder;
  class AbortPause;

  void Enqueue(std::function<void()> task);
  void Run();

  ServerConfig config_;
  ModelRegistry models_;
  Metrics metrics_;
  Router router_;
  ServerContext context_;

  std::atomic<uint64_t> num_aborts_{0};  // requests of earlier aborts are given up
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_
  bool stop_ = false;                        // guarded by mutex_
  // The requests that have not been answered; used by the routes' thread alone.
  std::unordered_map<LocalResponder*, std::weak_ptr<LocalResponder>> open_;
  std::thread thread_;
};

}  // namespace skein
