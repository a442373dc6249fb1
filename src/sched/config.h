#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "skein/config.h"

namespace skein {

// How prefill and decode share the device.
enum class Sharing {
  kWhole,    // a step is prefill only or decode only, prefill first; a prompt is split only where
             // it alone exceeds the token budget
  kChunked,  // decodes first, prefill chunks fill the token budget
};

// Who joins the running batch.
enum class DecodeSet {
  kStatic,  // request-level: a batch forms, runs until its last request has finished, and only
            // then returns its results and gives its slots to the next
  kFill,    // continuous: as many as fit, at every step
};

// The scheduler's limits and policies. The order is first come, first served within a priority,
// and prefill work is grouped up to the token budget, in all presets so far.
struct SchedulerConfig {
  Sharing sharing = Sharing::kChunked;
  DecodeSet decode_set = DecodeSet::kFill;
  int32_t num_kv_blocks = 0;
  int32_t max_model_len = 0;
  int32_t max_num_seqs = 0;
  int32_t max_num_batched_tokens = 0;
  int32_t num_adapters = 1;  // adapter ids are below it; 0 is the base model
  bool prefix_caching = true;
  // Tokens of a prompt that must run whole (EngineConfig::reads_whole_prompts); 0: none must.
  int32_t max_whole_prompt_len = 0;
  bool force_decode_path = false;
};

// The scheduler's part of `config`. Fails with kInvalidArgument, naming the member, where a value
// is out of range or the preset is unknown.
Result<SchedulerConfig> MakeSchedulerConfig(const EngineConfig& config);

}  // namespace skein
