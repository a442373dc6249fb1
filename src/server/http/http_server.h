#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "server/model_registry.h"
#include "server/server_config.h"

namespace skein {

// The HTTP server: accepts connections, guards the routes, hands requests to their handlers.
//
//   loading --SetModels--> serving --BeginDrain--> draining --Abort, Stop--> stopped
//
// Sockets are dealt out to num_io_threads in turn. Requests are parsed and tokenized by
// num_worker_threads, short ones at once, by the thread that received them; the engine's thread
// only ever appends to a mailbox.
// Thread rule: the members may be called from any thread, Start, SetModels and Stop once each.
class HttpServer {
 public:
  explicit HttpServer(ServerConfig config);
  ~HttpServer();  // stops
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Binds and begins to answer, "Loading model" at first. Returns the port. Fails, naming the
  // option, when the address is in use or unknown or the TLS files do not fit.
  Result<uint16_t> Start();

  // From here on requests are served. The models must outlive the server.
  void SetModels(ModelRegistry models);

  // New work is refused with 503, /health turns 503; what runs goes on.
  void BeginDrain();
  // Requests that are being worked on or answered.
  int32_t num_active_requests() const;
  bool Drained() const { return num_active_requests() == 0; }
  // Running requests end with an error to their clients, and are cancelled in the engine.
  void Abort();
  // Closes all connections and ends the threads. No request reaches an engine afterwards, and
  // outputs of earlier ones are dropped.
  void Stop();

 private:
  class Impl;  // keeps Asio out of this header: it costs its includers seconds each

  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
