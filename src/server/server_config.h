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

// All settings of the server itself. Settings of models are in model_registry.h.
struct ServerConfig {
  std::string host = "127.0.0.1";  // an address, or a name that resolves to one
  uint16_t port = 8000;            // 0: any free port
  // The keys that may ask for work. Empty: any caller may.
  std::vector<ApiKey> api_keys;
  RouteDefaults route_defaults;  // defaults of scheduling fields; a key's own come first
  // The priorities of the objectives that a gateway names in a header (docs/slo.md).
  std::map<std::string, int32_t, std::less<>> objectives;
  // The directory of /v1/files and /v1/batches; empty: there are no such routes.
  std::string batch_dir;
  int64_t max_batch_bytes = int64_t{10} << 30;  // of all files in batch_dir; beyond it: 413
  std::string ssl_certfile;                     // PEM; set together with ssl_keyfile for TLS
  std::string ssl_keyfile;
  std::string audit_log;  // a file, see audit_log.h; empty: none
  // The origins of web pages that may ask for work (CORS). "*" allows all, an empty list none.
  // kAutomaticOrigins: all if there are keys, otherwise pages of this machine. Pages of the server
  // itself are always allowed.
  std::vector<std::string> allowed_origins = {kAutomaticOrigins};
  // The names that the field Host may have, without port; "*" allows all. Empty: all names if there
  // are keys or if `host` is not the loopback address, otherwise the loopback's names.
  std::vector<std::string> allowed_hosts;

  int32_t num_io_threads = 2;  // for sockets, SSE and detokenizing, and all work of short requests
  int32_t num_worker_threads = 2;  // for parsing and tokenizing long requests

  // Limits. Requests and connections beyond a limit are refused or closed, see
  // docs/ARCHITECTURE.md.
  // At the limit, a new connection replaces the connection that has been idle longest. If none is
  // idle, the new connection may ask only for health and metrics; there is room for
  // kReserveConnections of these.
  int32_t max_connections = 4096;
  int32_t max_connections_per_address = 0;  // further connections are closed at once; 0: no limit
  size_t max_header_bytes = 32 << 10;  // of the head, of a chunk's header, and of the trailers: 431
  size_t max_body_bytes = 10 << 20;    // 413
  size_t max_buffered_body_bytes = 256 << 20;  // of all bodies longer than 64 KiB together: 503
  size_t max_pipelined_bytes = 64 << 10;       // read ahead while a request is answered
  size_t max_stream_queue_bytes = 1 << 20;     // unsent bytes of a stream; with more it is aborted
  int64_t header_timeout_us = 30'000'000;      // from the first byte to the end of the head
  int64_t body_timeout_us = 120'000'000;       // from the end of the head to the end of the body
  int64_t idle_timeout_us = 75'000'000;        // a kept connection without a request
  int64_t write_timeout_us = 60'000'000;       // a peer that accepts no byte for this long is gone
  int64_t tls_handshake_timeout_us = 10'000'000;
};

}  // namespace skein
