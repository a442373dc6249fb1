#pragma once

#include <cstdint>

#include "skein/policies.h"
#include "skein/presets.h"
#include "skein/stop_options.h"

namespace skein {

// The microseconds that a step takes, as a polynomial of its work. If all are zero, the costs are
// not known.
struct CostFit {
  double step_us = 0;   // of any step, whatever rows it has
  double token_us = 0;  // for each computed token
  double pair_us = 0;   // for each pair of a computed token and a token that it attends to
  double row_us = 0;    // for each row
  bool operator==(const CostFit&) const = default;
};

// The microseconds that a step of decodes takes, by the keys and values that the step reads:
//
//   step_us + row_us x (rows - free_rows) +
//   token_us x max(arithmetic_share x asked, unique + missed)
//
// `asked` counts the tokens that the rows attend to, a shared token once for each row; `unique`
// counts each token once. A cache of `cache_tokens` supplies asked - unique tokens, as far as the
// unique tokens fit the cache; the other tokens are `missed`. Rows up to free_rows cost nothing. If
// all are zero, the costs are not known.
struct DecodeFit {
  double step_us = 0;
  double row_us = 0;
  double free_rows = 0;
  double token_us = 0;
  double arithmetic_share = 0;
  double cache_tokens = 0;
  bool operator==(const DecodeFit&) const = default;
};

// How keys and values are kept.
enum class KvStorage {
  kPaged,       // in blocks of 32 tokens that sequences share and exchange
  kContiguous,  // one sequence at a time, end to end in its own memory; no keys outlive it
};

// Used by a sharing rule that preempts: the steps that compute the tokens of decodes with a TPOT
// deadline while a prompt is computed (sched/batching/mixed_steps.h).
enum class DecodeSteps {
  kByCost,  // the one of the two that costs less by the cost model; kOwn without a cost model
  kOwn,     // steps of decodes alone, for which the prefill stops
  kMixed,   // the prefill's own steps, cut to the TPOT deadline; needs the cost model too
};

// Limits of a sharing rule that preempts.
struct PreemptionConfig {
  // Suspended steps that keep their state, in [1, 64]. If there are more, the least urgent step is
  // dropped and computed again. max_suspended_us, at least 1, bounds the time for which a step is
  // suspended, including steps that were dropped before. A step beyond the bound runs before the
  // running step. Only decodes with a TPOT deadline stop it then.
  int32_t max_suspended_steps = 2;
  TimeUs max_suspended_us = 10'000'000;
  DecodeSteps decode_steps = DecodeSteps::kByCost;
  // The tokens of KV blocks that prompts leave free for preempting requests while other requests
  // run; at most an eighth of the pool. At least 0.
  int32_t express_tokens = 1024;
};

// The estimate of a job's completion time.
enum class Jct { kMissingTokens, kModel };

// For the orders kSrjf and kSrjfCalibrated.
struct JctConfig {
  Jct by = Jct::kMissingTokens;  // kMissingTokens also stands for kModel if costs are not known
  // The weight of a second of waiting, in seconds of the device's work. [0, 100]
  double aging = 0.1;
};

// For the orders by deadline and for slo-aware batching.
struct DeadlineConfig {
  TimeUs default_slo_us = 10'000'000;  // TTFT of requests that name no deadline; at least 1
  // The time that a request which can no longer meet its deadline may wait behind others. 0: no
  // limit.
  TimeUs max_late_us = 30'000'000;
  int32_t slo_batch_tokens = 2048;  // of a batch; at least 1
};

// The scheduler's policies and limits.
struct SchedulerConfig {
  Policies policies = FindPreset(kDefaultPreset)->policies;
  PreemptionConfig preemption;
  JctConfig jct;
  DeadlineConfig deadlines;
  PrefixGroupOptions prefix_groups;  // for the decode set `prefix-homogeneous`
  // For the decode set `dynamic`. The batch shrinks while its steps take longer than this time, and
  // grows while they take less. 0: memory alone decides.
  TimeUs dynamic_step_us = 0;
  // With `forests` or Batching::kSaturate: the longest time that a request waits for another
  // request to compute their common prefix. It counts from the first time at which the request
  // could have run. 0: it never waits.
  TimeUs max_prefix_wait_us = 200'000;
  CostFit cost;           // of the device, from a profile run
  DecodeFit decode_cost;  // the same for decodes that share prefixes

  int32_t num_kv_blocks = 0;              // blocks of 32 tokens
  int32_t num_host_kv_blocks = 0;         // blocks that the host keeps of those evicted; 0: none
  int32_t num_states = 0;                 // states of a model with linear layers; 0: it has none
  int32_t max_model_len = 0;              // tokens: prompt and output together
  int32_t max_num_seqs = 64;              // samples decoded at once
  int32_t max_num_batched_tokens = 2048;  // tokens computed in one step; >= max_num_seqs
  int32_t num_adapters = 1;               // Request::adapter_id is below it; 0 is the base model
  // kContiguous needs max_num_seqs to be 1. No prefix is then cached or shared.
  KvStorage kv_storage = KvStorage::kPaged;
  bool prefix_caching = true;
  // The most tokens of a prompt that must run in one row (EngineConfig::reads_whole_prompts). 0: no
  // prompt must run in one row. MakeSchedulerConfig sets it.
  int32_t max_whole_prompt_len = 0;
  // For tests: requests of one token run as Decode, like those with many tokens, and get the same
  // answers.
  bool force_decode_path = false;
};

// The values that an engine is built with. Every limit is a named maximum. A request beyond a limit
// is refused, and the message names the limit.
struct EngineConfig {
  SchedulerConfig scheduler;
  int32_t vocab_size = 0;              // of the model; token ids are below it
  int32_t max_queued_requests = 4096;  // requests waiting to be scheduled for the first time
  // Requests without a timeout (Request::timeout_us) are refused if their estimated wait is longer
  // than this time, or leaves too little of twice this time for their run. 0: no limit. A request
  // that has not been begun in time for its answer to come within twice this time is ended
  // (engine/overload/wait_limits.h).
  TimeUs max_wait_us = 0;
  // Whether a request is refused if it would probably miss its slo_ttft_us, and ended if it has not
  // been begun in time for it. Otherwise it is served late.
  bool refuses_late = false;
  int32_t max_logprobs = 20;  // of one token
  // The answers that the model can give: tokens and labels, an embedding, classes.
  bool generates = true;
  bool embeds = false;
  bool classifies = false;
  bool decides = false;     // the answers of DecideSpec
  int32_t num_actions = 0;  // of a decision model; else 0
  // Embeddings, classes and decisions need every hidden state of the prompt in one pass (mean or
  // CLS pooling, encoders). Prompts of such models are not cut, and take nothing from the prefix
  // cache.
  bool reads_whole_prompts = false;
  // A step without other prompts takes a whole one of up to so many tokens, even beyond
  // max_num_batched_tokens. 0: none beyond.
  int32_t long_prompt_tokens = 0;
};

}  // namespace skein
