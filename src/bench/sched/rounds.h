#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "base/result.h"
#include "skein/policies.h"

namespace skein {

// The cost of one scheduling round: planning a step and taking in its results.
struct RoundCost {
  double mean_us = 0;
  double p99_us = 0;
};

// Runs `num_rounds` rounds of a scheduler with `waiting` requests in its queue, one of which each
// round takes and another replaces (whose arrival is not counted), under preset prefill-only with
// this order. Prompts of 257 to 330 tokens in groups of 50 that share 256; the cache holds eight
// groups, so nearly every round publishes blocks and evicts others. Fails where the order is
// unknown.
Result<RoundCost> MeasureRounds(Order order, int32_t waiting, int32_t num_rounds);

// The same of the orders fcfs, srjf and srjf-calibrated, each with each of `queues` waiting:
// [{order, waiting, us_per_round, p99_us}].
Result<nlohmann::ordered_json> BenchRounds(std::span<const int32_t> queues, int32_t num_rounds);

}  // namespace skein
