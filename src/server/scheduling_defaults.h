#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/http/http_message.h"

namespace skein {

// The purpose of a route. Each class of routes may have its own defaults of scheduling fields. SLO
// attainment is reported for each class.
enum class RouteClass {
  kOther,     // no work for the engine
  kGenerate,  // completions, chat
  kDecide,    // decisions, systemone
  kRank,      // score, rerank
  kEmbed,     // embeddings, pooling, classes
};
const char* NameOf(RouteClass route_class);

// Scheduling fields for requests that lack these fields (scheduling_fields.h).
struct SchedulingDefaults {
  std::optional<double> slo_ttft_ms;
  std::optional<double> slo_tpot_ms;
  std::optional<int32_t> priority;
  bool operator==(const SchedulingDefaults&) const = default;
};
using RouteDefaults = std::map<RouteClass, SchedulingDefaults>;

// An API key, with its limits and the scheduling fields of its requests.
struct ApiKey {
  std::string key;   // not empty
  std::string name;  // in the audit log; may be empty
  SchedulingDefaults defaults;
  int32_t requests_per_minute = 0;    // 0: any number
  int32_t max_parallel_requests = 0;  // 0: any number
  int64_t tokens_per_minute = 0;      // of prompts and answers; 0: any number
  int64_t tokens_per_day = 0;
};

// Reads "decide:ttft=250,tpot=50,priority=-1": one text per class (generate, decide, rank, embed)
// with each name at most once. ttft and tpot are milliseconds above 0 and at most a day, priority
// is an integer. Errors name the text.
Result<RouteDefaults> ParseRouteDefaults(const std::vector<std::string>& texts);

// Reads [{"key": "...", "name": "...", "slo_ttft_ms": 250, "slo_tpot_ms": 50, "priority": -1,
// "requests_per_minute": 60, "max_parallel_requests": 4, "tokens_per_minute": 10000,
// "tokens_per_day": 1000000}, ...]. Only `key` is required. Errors name the entry's number and the
// member, never a key.
Result<std::vector<ApiKey>> ParseApiKeys(std::string_view json);

// The entry whose key the request's Authorization header carries, or null. The time does not depend
// on the position of a difference between keys.
const ApiKey* FindApiKey(const std::vector<ApiKey>& keys, const HttpRequest& request);

}  // namespace skein
