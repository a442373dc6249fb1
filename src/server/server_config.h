#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "server/scheduling_defaults.h"

namespace skein {

inline constexpr int32_t kReserveConnections = 64;
inline constexpr char kAutomaticOrigins[] = "auto";

// All settings of the server itself; model_registry.h has the models.
struct ServerConfig {
  std::string host = "127.0.0.1";  // an address, or a name that resolves to one
  uint16_t port = 8000;            // 0: any free port
  // The keys that may ask for work. Empty: any caller may.
  std::vector<ApiKey> api_keys;
  RouteDefaults route_defaults;  // of scheduling fields; those of a key precede them
  // The priorities of the objectives that a gateway names in the head (docs/slo.md).
  std::map<std::string, int32_t, std::less<>> objectives;
  // The directory of /v1/files and /v1/batches; empty: there are no such routes.
  std::string batch_dir;
  int64_t max_batch_bytes = int64_t{10} << 30;  // of all files there; 413
  std::string ssl_certfile;                     // PEM; set together with ssl_keyfile for TLS
  std::string ssl_keyfile;
  std::string audit_log;  // a file, see audit_log.h; empty: none
  // CORS, and which web pages may ask for work. "*" allows all, empty none. kAutomaticOrigins: all
  // if there are keys, else pages of this machine. A page of the server itself always may.
  std::vector<std::string> allowed_origins = {kAutomaticOrigins};
  // The names that the field Host may have, without port; "*" allows all. Empty: all if there are
  // keys or `host` is not the loopback address, else the loopback's names.
  std::vector<std::string> allowed_hosts;

  int32_t num_io_threads = 2;      // sockets, SSE, detokenizing; all of short requests
  int32_t num_worker_threads = 2;  // parsing and tokenizing of long requests

  // Limits. Requests and connections beyond a limit are refused or closed, see
  // docs/ARCHITECTURE.md.
  // At the limit a new connection takes the place of the one that has been idle longest. If none is
  // idle, it may ask for health and metrics alone; kReserveConnections such ones beside.
  int32_t max_connections = 4096;
  int32_t max_connections_per_address = 0;  // further ones are closed at once; 0: any number
  size_t max_header_bytes = 32 << 10;  // for the head, the header of a chunk, and the trailers: 431
  size_t max_body_bytes = 10 << 20;    // 413
  size_t max_buffered_body_bytes = 256 << 20;  // of all bodies longer than 64 KiB together: 503
  size_t max_pipelined_bytes = 64 << 10;       // read ahead while a request runs
  size_t max_stream_queue_bytes = 1 << 20;     // unsent bytes when a stream writes more: aborted
  int64_t header_timeout_us = 30'000'000;      // first byte to end of the head
  int64_t body_timeout_us = 120'000'000;       // end of the head to end of the body
  int64_t idle_timeout_us = 75'000'000;        // keep-alive without a request
  int64_t write_timeout_us = 60'000'000;  // after this time without a taken byte a peer is gone
  int64_t tls_handshake_timeout_us = 10'000'000;
};

}  // namespace skein
