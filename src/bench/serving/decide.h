#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/serving/client.h"
#include "bench/serving/load_report.h"
#include "server/json/json.h"

namespace skein {

// A load of decisions together with chat, sent to a server over HTTP.
struct DecideLoad {
  ServerUrl url;
  std::string api_key;
  std::string model;
  int32_t num_inputs = 16;       // distinct inputs, each asked many times
  int32_t input_words = 200;     // words of an input
  int32_t shared_words = 0;      // words at the beginning that all inputs share
  int32_t num_questions = 4;     // about each input: predicate, choice and score in turn
  int64_t num_requests = 200;    // decisions that are asked for under load
  int32_t concurrency = 4;       // clients that ask for decisions, each one at a time
  int32_t chat_concurrency = 0;  // clients that chat at the same time
  int32_t chat_max_tokens = 64;
  TimeUs time_limit_us = 600'000'000;  // of the load: no further request is sent then
};

// Makes the body of the request about input number `index`.
Json MakeDecisionBody(const DecideLoad& load, int32_t index);

// All probabilities of a decisions answer, in order. kInternal if the answer has another form.
Result<std::vector<double>> ProbabilitiesOf(const Json& answer);

// The differences between answers under load and answers of the idle server.
struct Drift {
  int64_t compared = 0;   // number of compared probabilities
  int64_t different = 0;  // number of these that are not equal
  double max_abs = 0;

  void Add(const std::vector<double>& idle, const std::vector<double>& loaded);
};

struct DecideOutcome {
  Distribution idle_ms;  // each distinct decision alone, asked a second time
  Distribution ms;       // under load
  int64_t completed = 0;
  int64_t failed = 0;
  std::string first_error;
  double duration_s = 0;
  int64_t input_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t chat_completed = 0;
  int64_t chat_output_tokens = 0;
  Drift drift;
};

// Asks for each distinct decision twice while the server is idle, then for all of them under load,
// and compares the answers. Fails if the idle server fails.
Result<DecideOutcome> RunDecideLoad(const DecideLoad& load);

}  // namespace skein
