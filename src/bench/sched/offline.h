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

// A request of a scenario that can be submitted as it is.
struct PlannedRequest {
  Request request;
  std::string request_class;
  TimeUs arrival_us = 0;  // from the start; unused in a closed loop
};

struct ScenarioPlan {
  std::vector<PlannedRequest> requests;  // in order of arrival
  // The number of requests whose prompt or output was shortened to fit the model's context.
  int64_t num_clipped = 0;
};

// Draws the requests of a scenario. They are the same for the same scenario, vocabulary and context
// length. Fails if a prompt's text cannot be tokenized.
Result<ScenarioPlan> PlanScenario(const Scenario& scenario, const Tokenizer& tokenizer,
                                  const EngineLimits& limits);

struct ScenarioOutcome {
  LoadReport report;
  int64_t num_clipped = 0;
};

// Submits a scenario's requests to an engine that has no other requests, waits for all answers and
// reports. Counters of the engine are differences of its statistics before and after. A request's
// time starts when it arrives on `clock`, or in a closed loop when it is submitted. At the
// scenario's time limit, running requests are cancelled and no further ones are submitted; all of
// these count as failed. `kv_block_bytes` converts blocks to the peak of KV bytes.
Result<ScenarioOutcome> RunScenario(Engine& engine, const Tokenizer& tokenizer,
                                    const Scenario& scenario, const Clock& clock,
                                    int64_t kv_block_bytes);

}  // namespace skein
