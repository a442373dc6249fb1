#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "skein/request.h"

namespace skein {

// A request as the scheduler sees it.
struct RequestView {
  enum class State {
    kWaiting,
    kRunning,    // admitted: it holds KV blocks, or its rows are in the step
    kSuspended,  // the step with its prompt was stopped for more urgent work
  };

  RequestId id = 0;
  State state = State::kWaiting;
  bool oneshot = false;  // one pass over the prompt; false: it decodes
  int32_t priority = 0;
  int32_t adapter_id = 0;
  int32_t num_samples = 1;
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;    // prompt tokens that were taken from the prefix cache
  int32_t computed_tokens = 0;  // prompt and output tokens with keys and values
  int32_t output_tokens = 0;    // of the sample that has the most output tokens
  TimeUs age_us = 0;            // since the request's arrival
  // Until the first token is due. Unset: there is no deadline, or the token has been sent.
  std::optional<TimeUs> slack_us;
};

// Consecutive blocks of the prefix cache without a branch in between. The same number of sequences
// reference each of them.
struct PrefixView {
  int32_t parent = -1;  // index of the run of blocks before this run; -1: this run begins prompts
  int32_t num_blocks = 0;
  int32_t num_sequences = 0;  // sequences that reference the run now; 0: only cached
};

// The state of an engine at one instant. The lists are bounded; the counts beside them are not.
struct EngineView {
  static constexpr size_t kRequestsMax = 200;
  static constexpr size_t kPrefixesMax = 200;

  std::vector<RequestView> requests;  // running ones first, then suspended ones, then by urgency
  int32_t num_running = 0;
  int32_t num_suspended = 0;
  int32_t num_waiting = 0;
  std::vector<PrefixView> prefixes;  // each behind its parent; the most used and largest first
  int32_t num_prefixes = 0;
  int32_t block_tokens = 0;
  int32_t num_blocks = 0;
  int32_t num_used_blocks = 0;    // referenced by a sequence
  int32_t num_cached_blocks = 0;  // held by the prefix cache alone
};

}  // namespace skein
