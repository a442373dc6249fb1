#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "server/model_registry.h"
#include "server/server_config.h"

namespace skein {

// The HTTP server: accepts connections, checks keys and limits, and passes requests to their
// routes' handlers.
//
//   loading --SetModels--> serving --BeginDrain--> draining --Abort, Stop--> stopped
//
// Sockets are assigned to the num_io_threads threads in turn. The num_worker_threads threads parse
// and tokenize requests; short requests are handled on the thread that receives them. The engine's
// thread only appends outputs to a mailbox.
// Thread rule: any thread may call the members; Start, SetModels and Stop once each.
class HttpServer {
 public:
  explicit HttpServer(ServerConfig config);
  ~HttpServer();  // calls Stop
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Binds the port and begins to answer, with "Loading model" at first. Returns the port. Fails if
  // the address is in use or unknown, or if the TLS files do not match; the error names the option.
  Result<uint16_t> Start();

  // Starts to serve requests. The models must outlive the server.
  void SetModels(ModelRegistry models);

  // Refuses new work with 503 and turns /health to 503; running requests continue.
  void BeginDrain();
  // The number of requests that are being computed or answered.
  int32_t num_active_requests() const;
  bool Drained() const { return num_active_requests() == 0; }
  // Ends running requests: their clients get an error, and the engine cancels them.
  void Abort();
  // Closes all connections and ends the threads. Afterwards no request reaches an engine, and
  // outputs of earlier requests are dropped.
  void Stop();

 private:
  class Impl;  // keeps Asio out of this header: Asio adds seconds to every compilation

  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
