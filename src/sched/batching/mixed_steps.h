#pragma once

#include <cstdint>

#include "sched/cost_model.h"

namespace skein {

// Running decodes ask for a token every `rate_us`. There are two ways to give them their tokens
// while a prompt is computed:
//
//   inserted:  [ prefill ... |D| ... prefill ... |D| ... ]   the prefill stops for steps of decodes
//   mixed:     [ chunk + D ][ chunk + D ][ chunk + D ] ...   chunks so short that a step takes at
//                                                            most rate_us
//
// An inserted step reads all weights once more; a mixed step computes the prompt in pieces. It
// depends on the device which way costs more (FlowPrefill inserts, on GPUs). Both costs are
// predicted from measured steps of the same kind.
struct DecodeSharing {
  int32_t chunk_tokens = 0;  // of a mixed step; 0: not even one token fits beside the decodes
  // Tokens of all prompts in the step. If the chunk is the complete prompt, other prompts may
  // follow.
  int32_t step_tokens = 0;
  // The times that each way takes for the complete prompt and the same number of tokens for each
  // decode.
  double mixed_us = 0;
  double inserted_us = 0;

  // At about equal cost, steps are mixed. A mixed step is hardly ever suspended, and a suspended
  // step holds memory and may be computed again.
  bool mixes() const { return chunk_tokens > 0 && mixed_us <= 1.05 * inserted_us; }
};

// Compares the two ways for a prompt of which `new_tokens` must be computed behind `cached_tokens`.
// `decodes` is the work of one token for each decode. `max_tokens` limits the tokens of all prompts
// in a step; the tokens of further prompts count as one prompt without cached tokens. Inserted
// steps never take more than half of the device. O(log(new_tokens + max_tokens)). REQUIRES:
// new_tokens >= 1, rate_us > 0, the cost model is known.
DecodeSharing CompareDecodeSharing(const CostModel& cost, int64_t new_tokens, int64_t cached_tokens,
                                   int64_t max_tokens, const StepWork& decodes, double rate_us);

}  // namespace skein
