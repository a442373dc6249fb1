#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "bench/sched/scenario.h"
#include "bench/serving/load_report.h"
#include "skein/engine.h"
#include "text/tokenizer.h"

namespace skein {

// A request of a scenario, ready to be submitted.
struct PlannedRequest {
  Request request;
  std::string request_class;
  TimeUs arrival_us = 0;  // from the start; of no meaning in a closed loop
};

struct ScenarioPlan {
  std::vector<PlannedRequest> requests;  // in order of arrival
  // Requests shortened, in prompt or output, to fit the model's context.
  int64_t num_clipped = 0;
};

// Draws the requests of a scenario; the same for the same scenario, vocabulary and context length.
// Fails if a prompt's text cannot be tokenized.
Result<ScenarioPlan> PlanScenario(const Scenario& scenario, const Tokenizer& tokenizer,
                                  const EngineLimits& limits);

struct ScenarioOutcome {
  LoadReport report;
  int64_t num_clipped = 0;
};

// Puts a scenario's requests to an engine that does nothing else meanwhile, waits for all answers
// and reports; what the engine counts is taken from its statistics before and after. A request's
// time starts when it arrives, on `clock`, in a closed loop when it is submitted. After the
// scenario's time limit, running requests are cancelled and the others are not submitted; both
// have failed. `kv_block_bytes` turns blocks into the peak of KV bytes.
Result<ScenarioOutcome> RunScenario(Engine& engine, const Tokenizer& tokenizer,
                                    const Scenario& scenario, const Clock& clock,
                                    int64_t kv_block_bytes);

}  // namespace skein
