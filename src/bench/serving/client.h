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

// The address of a server. Plain HTTP only: a load test does not measure encryption.
struct ServerUrl {
  std::string host;
  std::string port;
  std::string path;  // before /v1; empty or "/..."
};

// Parses "http://host[:port][/path]"; a trailing "/v1" may be given or left out.
Result<ServerUrl> ParseServerUrl(std::string_view url);

struct LoadOptions {
  ServerUrl url;
  BenchRequestFormat format;
  std::string api_key;            // sent as a bearer token unless empty
  int32_t concurrency = 0;        // 0: open loop, by arrival times; else so many requests at a time
  double speed = 1;               // open loop: arrival times are divided by this
  int32_t max_connections = 512;  // open loop: what is due beyond waits here, its time running
  TimeUs request_timeout_us = 600'000'000;  // from sending to the end of the answer
  TimeUs time_limit_us = 3600'000'000;      // of the whole load: then what is left fails
};

struct LoadOutcome {
  std::vector<LoadRecord> records;  // of the requests sent, in order of sending
  TimeUs duration_us = 0;           // from the start to the end of the last answer
  int64_t num_not_sent = 0;         // the time limit came first
};

// The first model that the server lists.
Result<std::string> FetchModelName(const LoadOptions& options);

// Puts the requests to the server and waits for all answers. Connections are kept and used again.
// A request's time starts when it is due: at its arrival in an open loop, when a place is free in a
// closed one. Failures of single requests are in their records; a Status comes only of what
// concerns all: a name that does not resolve, a prompt that cannot be put to the endpoint.
// Runs on the caller's thread.
Result<LoadOutcome> RunLoad(const std::vector<WorkloadRequest>& requests,
                            const LoadOptions& options);

}  // namespace skein
