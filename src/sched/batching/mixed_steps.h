#pragma once

#include <cstdint>

#include "sched/cost_model.h"

namespace skein {

// Two ways to give running decodes, which ask for a token each `rate_us`, their tokens while a
// prompt is computed:
//
//   inserted:  [ prefill ... |D| ... prefill ... |D| ... ]   the prefill stops for steps of decodes
//   mixed:     [ chunk + D ][ chunk + D ][ chunk + D ] ...   chunks so short that a step takes at
//                                                            most rate_us
//
// An inserted step reads all weights once more, a mixed one computes the prompt in pieces. Which is
// dearer depends on the device (FlowPrefill inserts, on GPUs); both are predicted by what steps of
// their kind were measured to take.
struct DecodeSharing {
  int32_t chunk_tokens = 0;  // of a mixed step; 0: not even one token fits beside the decodes
  // Of all prompts in it: where the chunk is the whole prompt, others may follow it in the step.
  int32_t step_tokens = 0;
  // The whole prompt and as many tokens for each decode, either way.
  double mixed_us = 0;
  double inserted_us = 0;

  // Where they are about as dear, mixed: such a step is hardly ever suspended, which holds memory
  // and may end in computing it again.
  bool mixes() const { return chunk_tokens > 0 && mixed_us <= 1.05 * inserted_us; }
};

// For a prompt of which `new_tokens` are to be computed behind `cached_tokens`. `decodes`: the work
// of one token for each. `max_tokens`: of prompts in a step; further ones are counted as one with
// nothing before it. Inserted steps never take more than half of the device.
// O(log(new_tokens + max_tokens)).
// REQUIRES: new_tokens >= 1, rate_us > 0, the cost model is known.
DecodeSharing CompareDecodeSharing(const CostModel& cost, int64_t new_tokens, int64_t cached_tokens,
                                   int64_t max_tokens, const StepWork& decodes, double rate_us);

}  // namespace skein
