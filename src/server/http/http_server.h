#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "server/model_registry.h"
#include "server/server_config.h"

namespace skein {

// The HTTP server: accepts connections, guards the routes, passes requests to their handlers.
//
//   loading --SetModels--> serving --BeginDrain--> draining --Abort, Stop--> stopped
//
// num_io_threads get the sockets in turn. num_worker_threads parse and tokenize requests; the
// receiving thread does so for short ones. The engine's thread only appends to a mailbox.
// Thread rule: the members may be called from any thread; Start, SetModels and Stop once each.
class HttpServer {
 public:
  explicit HttpServer(ServerConfig config);
  ~HttpServer();  // stops
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Binds and begins to answer, "Loading model" at first. Returns the port. Fails if the address is
  // in use or unknown or the TLS files do not fit; the error names the option.
  Result<uint16_t> Start();

  // Starts to serve requests. The models must outlive the server.
  void SetModels(ModelRegistry models);

  // Refuses new work with 503 and turns /health to 503; running requests continue.
  void BeginDrain();
  // The number of requests that are computed or answered.
  int32_t num_active_requests() const;
  bool Drained() const { return num_active_requests() == 0; }
  // Ends running requests with an error to their clients, and cancels them in the engine.
  void Abort();
  // Closes all connections and ends the threads. No request reaches an engine afterwards, and
  // outputs of earlier ones are dropped.
  void Stop();

 private:
  class Impl;  // keeps Asio out of this header: it costs its includers seconds each

  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
