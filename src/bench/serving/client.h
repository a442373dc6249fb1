#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/sim/workload.h"
#include "base/result.h"
#include "bench/serving/load_report.h"
#include "bench/serving/protocol.h"

namespace skein {

// The address of a server. HTTP without TLS: a load test does not measure encryption.
struct ServerUrl {
  std::string host;
  std::string port;
  std::string path;  // before /v1: empty or "/..."
};

// Parses "http://host[:port][/path]". A trailing "/v1" is optional.
Result<ServerUrl> ParseServerUrl(std::string_view url);

struct LoadOptions {
  ServerUrl url;
  BenchRequestFormat format;
  std::string api_key;  // sent as a bearer token unless empty
  // 0: open loop by arrival times; otherwise the number of requests at a time.
  int32_t concurrency = 0;
  double speed = 1;  // open loop: divides the arrival times
  // Open loop: further due requests wait in the client; the wait counts.
  int32_t max_connections = 512;
  TimeUs request_timeout_us = 600'000'000;  // from sending to the end of the answer
  TimeUs time_limit_us = 3600'000'000;      // of the whole load; requests that are left then fail
};

struct LoadOutcome {
  std::vector<LoadRecord> records;  // of the requests that were sent, in order of sending
  TimeUs duration_us = 0;           // from the start to the end of the last answer
  int64_t num_not_sent = 0;         // requests that were not sent before the time limit
};

// Fetches the name of the first model that the server lists.
Result<std::string> FetchModelName(const LoadOptions& options);

// Sends the requests to the server and waits for all answers. Connections are kept and reused. The
// time of a request starts when it is due: at its arrival in an open loop, when one of
// `concurrency` requests has ended in a closed loop. Failures of single requests are in their
// records. The call fails only for errors that concern all requests: a name that does not resolve,
// or a prompt that the endpoint cannot take. Runs on the caller's thread.
Result<LoadOutcome> RunLoad(const std::vector<WorkloadRequest>& requests,
                            const LoadOptions& options);

}  // namespace skein
