#pragma once

#include <cstdint>

#include "base/result.h"
#include "skein/config.h"

namespace skein {

// The memory that an executor needs for the largest step.
struct StepBounds {
  int32_t max_tokens = 0;
  // Blocks of keys and values that are not kept after the step.
  int32_t max_own_blocks = 0;
};
StepBounds StepBoundsOf(Retention retention, int32_t max_model_len, int32_t max_num_batched_tokens);

// The number of steps that keep state at the same time: the running step and the suspended steps.
// If there is more than one, a step of decodes alone runs beside all of them.
int32_t NumSteps(const SchedulerConfig& config);

// Blocks that prompts leave free for preempting requests while other requests run; 0 if no request
// preempts.
int32_t ExpressBlocks(const SchedulerConfig& config);

// The most tokens of a prompt from the first that a decision reads to the last; they run in one
// row.
int32_t MaxTailLen(const SchedulerConfig& config);

// The default token budget of a step: the largest of `usual`, max_num_seqs and the chunk.
int32_t UsualBatchedTokens(const SchedulerConfig& config, int32_t usual);

// Returns ok if `config` names a stop rule that learns, so that its table can be kept.
Status CheckStopRuleLearns(const SchedulerConfig& config);

// Makes the configuration for a Scheduler: `config.scheduler`, checked, and with the values that
// follow from others. These values are the tokens of a step with a chunk, max_whole_prompt_len, and
// contiguous storage without cached and shared prefixes. Fails with kInvalidArgument, naming the
// member, if a value is out of range or does not go with another value. A second call with the
// result changes nothing more.
Result<SchedulerConfig> MakeSchedulerConfig(const EngineConfig& config);

}  // namespace skein
