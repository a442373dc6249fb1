#pragma once

#include <cstdint>
#include <string>

namespace skein {

// Microseconds that a step takes, as a polynomial of its work; all zero: not known.
struct CostFit {
  double step_us = 0;   // whatever is in it
  double token_us = 0;  // for each token computed
  double pair_us = 0;   // for each pair of a token computed and a token it attends to
  double row_us = 0;    // for each row
  bool operator==(const CostFit&) const = default;
};

// How keys and values are kept.
enum class KvStorage {
  kPaged,       // in blocks of 32 tokens that sequences share and exchange
  kContiguous,  // one sequence at a time, end to end in memory of its own; nothing outlives it
};

// What an engine is told when it is built. Every limit is a named maximum; what exceeds one is
// refused with its name.
struct EngineConfig {
  // A point of the policy space: "prelude", "vllm-fcfs" (also called "chunked-fcfs"), "paged-fcfs",
  // "prefill-only", "feather", "sglang-lpm", "sglang-dfs-weight", "nano-vllm", "request-level",
  // "distserve", "distserve-cp2k" or "distserve-cp8k", "layer-level" or "flow-prefill".
  std::string preset = "prelude";
  // Of the preset's choices, where not empty, these instead.
  std::string execution;  // of the model's operators: "plain" or "hybrid"
  std::string retention;  // of OneShot requests' keys and values: "all", "prefix", "value", "none"
  // Of waiting work: "fcfs", "fair", "srjf", "srjf-calibrated", "edf", "d-edf", "s-edf", "lpm" or
  // "dfs-weight".
  std::string order;
  std::string batching;  // of prefill work: "single", "saturate", "budget", "slo-aware"
  // "srjf" and "srjf-calibrated": what a job's time is taken to be, "proxy" (its missing tokens) or
  // "model" (what `cost` predicts; the proxy where that is not known); and how much a second of
  // waiting counts, in seconds of the device's work. [0, 100]
  std::string jct = "proxy";
  double aging = 0.1;
  CostFit cost;  // of the device, from a profile run
  // Deadlines, for the orders "edf", "d-edf" and "s-edf" and for "slo-aware" batching: the time to
  // the first token that requests are given which name none, at least 1; how long a request that
  // can no longer meet its deadline may wait behind others (0: for ever); and how many tokens a
  // batch may have, at least 1.
  int32_t default_slo_ttft_ms = 10'000;
  int32_t max_late_ms = 30'000;
  int32_t slo_batch_tokens = 2048;
  // Tokens of a step where not 0, instead of the preset's chunk ("distserve-cp2k", "-cp8k") or
  // max_num_batched_tokens, which it must not exceed.
  int32_t chunk_tokens = 0;
  // How prefill and decode share the device: "whole", "chunked", "preempt-layer" or "preempt-op".
  std::string sharing;
  // With the last two: where a running prefill stops for more urgent work ("op-tile", "op",
  // "layer", "chunk" or "none"; empty: what the sharing's name says), how many stopped ones keep
  // their activations (at least 1; beyond that the least urgent is computed again), and how long
  // one may be stopped in all.
  std::string preempt_granularity;
  int32_t max_suspended_steps = 2;
  int32_t max_suspended_ms = 10'000;
  // Likewise, of decodes that ask for a rate (slo_tpot_us): "own" (they take steps of their own,
  // for which a prefill stops), "mixed" (steps with chunks of the prefill, short enough for the
  // rate) or what is cheaper by the cost model ("by-cost", the default). "own" where that is not
  // known.
  std::string decode_steps;
  // Likewise, tokens of KV blocks that prompts leave free for what preempts them, as far as an
  // eighth of the pool allows. At least 0.
  int32_t express_tokens = 1024;
  std::string decode_set;  // who joins the running batch: "static", "fill", "dynamic" or "flock"
  // Decode set "dynamic" only: the batch shrinks while its steps take longer, and grows while they
  // take less; 0: memory alone decides.
  int32_t dynamic_step_ms = 0;
  // Decode set "flock" only: when the best companion is not added ("never", "heuristic", "bandit"
  // or "q-learning"; empty: "bandit"), what one of the last two has learned before (JSON, a table
  // of sched/decode_set/stop_table.h; empty: nothing), the seed of its random decisions, and how
  // long a request may be passed by others at most. At least 1.
  std::string flock_stop;
  // By what it knows companions: "prefix" (empty: that), or for comparisons "radix" (the same,
  // token by token over a radix tree) or "user" (requests of one `user` are a group: an oracle).
  std::string flock_by;
  // Constants of the stop rules in place of their own, "name=value,...": max-lost, small-batch,
  // max-lost-small, max-lost-peers, max-loss, exploration, alpha, gamma, epsilon-start,
  // epsilon-decay, epsilon-floor, learn (sched/decode_set/stop_policy.h).
  std::string flock_constants;
  std::string flock_table;
  uint64_t flock_seed = 0;
  int32_t flock_max_wait_ms = 10'000;

  int32_t vocab_size = 0;                 // of the model; token ids are below it
  int32_t max_model_len = 0;              // tokens: prompt and output together
  int32_t num_kv_blocks = 0;              // blocks of 32 tokens
  int32_t max_num_seqs = 64;              // samples decoded at once
  int32_t max_num_batched_tokens = 2048;  // tokens computed in one step; >= max_num_seqs
  int32_t max_queued_requests = 4096;     // waiting to be scheduled for the first time
  // "prelude" only: how long a request may wait for another one that is computing their common
  // prefix; 0: not at all.
  int32_t max_prefix_wait_ms = 200;
  int32_t max_logprobs = 20;  // of one token
  // kContiguous needs max_num_seqs to be 1; no prefix is cached or shared then.
  KvStorage kv_storage = KvStorage::kPaged;
  bool enable_prefix_caching = true;
  // What the model can answer: tokens and labels, an embedding, classes.
  bool generates = true;
  bool embeds = false;
  bool classifies = false;
  // Embeddings and classes need every hidden state of the prompt in one pass (mean or CLS pooling,
  // encoders): such prompts are not cut, and take nothing from the prefix cache.
  bool reads_whole_prompts = false;
  int32_t num_adapters = 1;  // Request::adapter_id is below it; 0 is the base model
  // For tests: requests of one token go the way of those with many, with the same answers.
  bool force_decode_path = false;
};

}  // namespace skein
