#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "server/http/http_message.h"
#include "server/metrics.h"
#include "server/model_registry.h"
#include "server/router.h"
#include "server/server_config.h"

namespace skein {

// The server's routes in this process, without HTTP: the same handlers, one thread for all of them.
// Answers that come in pieces (streams) are not supported.
class LocalRoutes {
 public:
  // The models' pointees outlive this.
  explicit LocalRoutes(ModelRegistry models);
  // REQUIRES: every Post has been answered.
  ~LocalRoutes();
  LocalRoutes(const LocalRoutes&) = delete;
  LocalRoutes& operator=(const LocalRoutes&) = delete;

  // Hands a request to the handler of POST `path`, which must exist; `done` gets the answer on the
  // routes' thread. Any thread.
  void Post(const std::string& path, std::string body, std::function<void(HttpResponse)> done);

 private:
  class LocalResponder;

  void Enqueue(std::function<void()> task);
  void Run();

  ServerConfig config_;
  ModelRegistry models_;
  Metrics metrics_;
  Router router_;
  ServerContext context_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_
  bool stop_ = false;                        // guarded by mutex_
  std::thread thread_;
};

}  // namespace skein
