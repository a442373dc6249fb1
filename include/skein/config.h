#pragma once

#include <cstdint>

#include "skein/policies.h"
#include "skein/presets.h"
#include "skein/stop_options.h"

namespace skein {

// Microseconds that a step takes, as a polynomial of its work; all zero: not known.
struct CostFit {
  double step_us = 0;   // whatever is in it
  double token_us = 0;  // for each token computed
  double pair_us = 0;   // for each pair of a token computed and a token it attends to
  double row_us = 0;    // for each row
  bool operator==(const CostFit&) const = default;
};

// Microseconds that a step of decodes takes, by the keys and values that it reads:
//
//   step_us + row_us x (rows - free_rows) +
//   token_us x max(arithmetic_share x asked, unique + missed)
//
// `asked` tokens are those that the rows attend to, `unique` the different ones among them. A cache
// of `cache_tokens` supplies asked - unique tokens, as far as the different ones fit it; the others
// are `missed`. Rows up to free_rows cost nothing. All zero: not known.
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
  kContiguous,  // one sequence at a time, end to end in memory of its own; nothing outlives it
};

// With a sharing that preempts: the steps that compute the tokens of decodes with a TPOT while a
// prompt is computed (sched/batching/mixed_steps.h).
enum class DecodeSteps {
  kByCost,  // the cheaper way by the cost model; kOwn without a cost model
  kOwn,     // steps of decodes alone, for which the prefill stops
  kMixed,   // the prefill's own steps, cut to the TPOT; needs the cost model too
};

// For a sharing that preempts.
struct PreemptionConfig {
  // Suspended steps that keep their state, in [1, 64]. If there are more, the least urgent one is
  // dropped and computed again. max_suspended_us, at least 1, bounds the time a step is suspended,
  // including steps that were dropped before. A step beyond the bound goes before the running one.
  // Only decodes with a TPOT stop it.
  int32_t max_suspended_steps = 2;
  TimeUs max_suspended_us = 10'000'000;
  DecodeSteps decode_steps = DecodeSteps::kByCost;
  // Tokens of KV blocks that prompts leave free for preempting requests while others run, as far as
  // an eighth of the pool allows. At least 0.
  int32_t express_tokens = 1024;
};

// The estimate of a job's completion time.
enum class Jct { kMissingTokens, kModel };

// For the orders kSrjf and kSrjfCalibrated.
struct JctConfig {
  Jct by = Jct::kMissingTokens;  // that, too, where the costs are not known
  // How much a second of waiting counts, in seconds of the device's work. [0, 100]
  double aging = 0.1;
};

// For the orders by deadline and for slo-aware batching.
struct DeadlineConfig {
  TimeUs default_slo_us = 10'000'000;  // TTFT of requests without one of their own; at least 1
  // How long a request that can no longer meet its deadline may wait behind others; 0: for ever.
  TimeUs max_late_us = 30'000'000;
  int32_t slo_batch_tokens = 2048;  // of a batch; at least 1
};

// The scheduler's policies and limits.
struct SchedulerConfig {
  Policies policies = FindPreset(kDefaultPreset)->policies;
  PreemptionConfig preemption;
  JctConfig jct;
  DeadlineConfig deadlines;
  PrefixGroupOptions prefix_groups;  // of the decode set `prefix-homogeneous`
  // Decode set `dynamic`: the batch shrinks while its steps take longer than this, and grows while
  // they take less; 0: memory alone decides.
  TimeUs dynamic_step_us = 0;
  // With `forests`: how long a request may wait for another that is computing their common prefix,
  // from the first time it could have run. 0: it never waits.
  TimeUs max_prefix_wait_us = 200'000;
  CostFit cost;           // of the device, from a profile run
  DecodeFit decode_cost;  // the same for decodes that share prefixes

  int32_t num_kv_blocks = 0;              // blocks of 32 tokens
  int32_t num_states = 0;                 // of a model with linear layers; 0: it has none
  int32_t max_model_len = 0;              // tokens: prompt and output together
  int32_t max_num_seqs = 64;              // samples decoded at once
  int32_t max_num_batched_tokens = 2048;  // tokens computed in one step; >= max_num_seqs
  int32_t num_adapters = 1;               // Request::adapter_id is below it; 0 is the base model
  // kContiguous needs max_num_seqs to be 1; no prefix is cached or shared then.
  KvStorage kv_storage = KvStorage::kPaged;
  bool prefix_caching = true;
  // The most tokens of a prompt that must run in one row (EngineConfig::reads_whole_prompts). 0: no
  // prompt must. MakeSchedulerConfig sets it.
  int32_t max_whole_prompt_len = 0;
  // For tests: requests of one token go the way of those with many, with the same answers.
  bool force_decode_path = false;
};

// The values that an engine is built with. Every limit is a named maximum; a request beyond one is
// refused with its name.
struct EngineConfig {
  SchedulerConfig scheduler;
  int32_t vocab_size = 0;              // of the model; token ids are below it
  int32_t max_queued_requests = 4096;  // waiting to be scheduled for the first time
  // The estimated wait beyond which new requests are refused, for those that do not say how long
  // they would wait (Request::timeout_us). 0: none. A request that has waited twice as long without
  // being begun is ended.
  TimeUs max_wait_us = 0;
  int32_t max_logprobs = 20;  // of one token
  // The answers of the model: tokens and labels, an embedding, classes.
  bool generates = true;
  bool embeds = false;
  bool classifies = false;
  bool decides = false;     // DecideSpec
  int32_t num_actions = 0;  // of a decision model
  // Embeddings, classes and decisions need every hidden state of the prompt in one pass (mean or
  // CLS pooling, encoders): such prompts are not cut, and take nothing from the prefix cache.
  bool reads_whole_prompts = false;
  // A step without other prompts takes a whole one of up to so many tokens, even beyond
  // max_num_batched_tokens. 0: none beyond.
  int32_t long_prompt_tokens = 0;
};

}  // namespace skein
