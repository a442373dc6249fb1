#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "skein/request.h"

namespace skein {

// When the requests of a scenario arrive.
struct ArrivalPattern {
  enum class Kind {
    kBursts,   // `size` at a time, every `interval_s`; size 0: all at the same time
    kPoisson,  // independently, `rate_per_s` on average
    kClosed,   // the next begins when one ends; `concurrency` run at the same time
  };
  Kind kind = Kind::kBursts;
  int32_t size = 0;
  double interval_s = 0;
  double rate_per_s = 0;
  int32_t concurrency = 1;
};

// A closed interval from which a number is drawn.
struct IntRange {
  int32_t low = 0;
  int32_t high = 0;
};

// Requests of one kind.
struct ScenarioRequests {
  std::string request_class;
  int32_t count = 1;
  std::string prompt;                // a text; if it is empty:
  IntRange prompt_tokens;            // this many generated tokens
  int32_t shared_prefix_tokens = 0;  // the first of them, which all requests of the kind share
  IntRange max_tokens{16, 16};
  bool ignore_eos = true;
  SamplingParams sampling;  // request i draws with sampling.seed + i
};

// A named load for the offline benchmark. Its requests are taken from the kinds in turn, until each
// kind has no more.
struct Scenario {
  std::string name;
  std::string description;
  uint64_t seed = 1;
  double time_limit_s = 300;  // at this time, running requests are cancelled and count as failed
  ArrivalPattern arrival;
  std::vector<ScenarioRequests> requests;
};

// Reads a scenario from JSON. Errors name the field. Unknown fields are errors, so that a
// misspelled field is noticed.
//
//   {"name": "...", "description": "...", "seed": 1, "time_limit_s": 300,
//    "arrival": {"pattern": "bursts", "size": 8, "interval_s": 0.5}
//             | {"pattern": "poisson", "rate_per_s": 4} | {"pattern": "closed", "concurrency": 8},
//    "requests": [{"class": "chat", "count": 8, "prompt": "text" | "prompt_tokens": 64 | [16, 256],
//                  "shared_prefix_tokens": 0, "max_tokens": 32 | [8, 64], "ignore_eos": true,
//                  "sampling": {"temperature": 0, "top_k": 0, "top_p": 1, "min_p": 0,
//                               "repetition_penalty": 1, "presence_penalty": 0,
//                               "frequency_penalty": 0, "seed": 0}}]}
Result<Scenario> ParseScenario(std::string_view json);
Result<Scenario> LoadScenario(const std::string& path);

// Keeps the first `max_requests` requests in the order in which they are taken. REQUIRES:
// max_requests > 0.
void LimitRequests(int32_t max_requests, Scenario* scenario);

}  // namespace skein
