#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "base/result.h"
#include "skein/policies.h"

namespace skein {

// The cost of one scheduling round: planning a step and handling its results.
struct RoundCost {
  double mean_us = 0;
  double p99_us = 0;
};

// Runs `num_rounds` rounds of a scheduler with `waiting` requests in its queue. Each round takes
// one request, and another one replaces it; this arrival is not timed. The preset is prefill-only
// with the given order. Prompts have 257 to 330 tokens, in groups of 50 that share 256 tokens. The
// cache holds eight groups, so nearly every round publishes blocks and evicts others. Fails if the
// order is unknown.
Result<RoundCost> MeasureRounds(Order order, int32_t waiting, int32_t num_rounds);

// Runs MeasureRounds for the orders fcfs, srjf and srjf-calibrated, each with each length in
// `queues`: [{order, waiting, us_per_round, p99_us}].
Result<nlohmann::ordered_json> BenchRounds(std::span<const int32_t> queues, int32_t num_rounds);

}  // namespace skein
