#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "sched/decode_set/stop_policy.h"
#include "skein/config.h"
#include "skein/request.h"

namespace skein {

// How prefill and decode share the device.
enum class Sharing {
  kWhole,    // a step is prefill only or decode only, prefill first; a prompt is split only if it
             // alone exceeds the token budget
  kChunked,  // decodes first, prefill chunks fill the token budget
  // Decodes first, then complete prompts. A running prefill makes way for more urgent work
  // (sched/preemption/preemption.h) and goes on later:
  kPreemptLayer,  // at the next layer
  kPreemptOp,     // at the next ticket
};
constexpr bool Preempts(Sharing sharing) {
  return sharing == Sharing::kPreemptLayer || sharing == Sharing::kPreemptOp;
}

// The boundaries at which a running step can stop for more urgent work. Only the executor uses
// them, but for the last two.
enum class Granularity {
  kOpTile,  // between two tickets of an operator
  kOp,      // between two operators
  kLayer,   // between two layers
  kChunk,   // between two steps of a prompt that is longer than a step
  kNone,    // a started prompt goes on to its end
};
// Whether a step stops before its end at all.
constexpr bool StopsSteps(Granularity granularity) { return granularity <= Granularity::kLayer; }

// With a sharing that preempts: the steps that compute the tokens of decodes with a TPOT while a
// prompt is computed (sched/batching/mixed_steps.h).
enum class DecodeSteps {
  kByCost,  // the cheaper way by the cost model; kOwn without a cost model
  kOwn,     // steps of decodes alone, for which the prefill stops
  kMixed,   // the prefill's own steps, cut to the TPOT; needs the cost model too
};

// The rule for which waiting continuations join the running batch.
enum class DecodeSet {
  kStatic,   // request-level: a batch forms, runs until its last request has finished, and only
             // then returns its results and gives its slots to the next
  kFill,     // continuous: as many as fit, at every step
  kFlock,    // continuous: best candidate first, until the stop rule ends the batch
             // (sched/decode_set/prefix_groups.h)
  kDynamic,  // continuous: as many as memory and the time of a step allow
             // (sched/decode_set/dynamic_batch.h)
};

// The order of waiting requests of one priority.
enum class Order {
  kFcfs,  // first come, first served
  kFair,  // start-time fair queueing between clients (sched/order/fair_queue.h)
  // Shortest remaining job first (sched/order/jct_order.h):
  kSrjf,            // as things were when the request arrived
  kSrjfCalibrated,  // as they are, with every change of the prefix cache
  // Earliest deadline first (sched/order/slack_order.h):
  kEdf,
  kDeadlineEdf,  // requests that have missed it go last
  kSlackEdf,     // so do requests that can no longer meet it
  // SGLang's cache-aware orders, over full KV blocks. sched/order/radix_orders.h has the original
  // ones over tokens:
  kLpm,        // the longest cached prefix first
  kDfsWeight,  // depth first over the tree of cached prefixes, the heaviest branch first
};

// The way in which the decode set `flock` finds candidates that share a prefix.
enum class FlockBy {
  kPrefix,  // hashes of their prompts, in a chunked hash tree
  kRadix,   // for comparisons: their tokens, over a radix tree (sched/decode_set/radix_candidate.h)
  kUser,    // for comparisons: an oracle that is told the groups; `user` names a request's group
};

// The decode set `flock`.
struct FlockOptions {
  StopOptions stop;
  FlockBy by = FlockBy::kPrefix;
  // A request that has waited this long is overdue: it is next, regardless of its prefix and of the
  // stop rule. At least 1.
  TimeUs max_wait_us = 10'000'000;
  int32_t blocks_per_chunk = 1;
};

// How the operators of a pass use memory. Only the executor uses it: it changes no plan.
enum class Execution {
  kPlain,   // each goes over all of a step's tokens before the next
  kHybrid,  // all but attention go over a chunk of them at a time
            // (model/forward/workspace.h)
};

// The part of the keys and values of OneShot requests that is kept. If it is not all of them, a
// prompt is computed in one step. Keys and values that are not kept take no block: they exist for
// one layer at a time.
enum class Retention {
  kAll,
  kPrefix,  // the longest leading part that finds blocks; the rest is discarded
  kValue,   // of that part the tokens that several of the latest prompts share, and more while
            // blocks are free
  kNone,    // blocks that are cached already are still used
};

// How much prefill work goes into a step.
enum class Batching {
  kSingle,    // of one request: long prompts fill the device, and a request that runs alone ends
              // earlier
  kSaturate,  // of as many as keep the device busy (SaturationTokens); a longer prompt runs alone
  kBudget,    // of as many as the token budget holds
  // As many as the most urgent one's deadline allows, up to slo_batch_tokens
  // (sched/batching/slo_batch.h).
  kSloAware,
};

// The estimate of a job's completion time.
enum class Jct { kMissingTokens, kModel };

// The scheduler's limits and policies.
struct SchedulerConfig {
  Sharing sharing = Sharing::kChunked;
  Granularity granularity = Granularity::kOpTile;
  // Suspended steps that keep their state, with a sharing that preempts: at least 1. If there are
  // more, the least urgent one is dropped. max_suspended_us bounds the time a step is suspended,
  // including steps that were dropped before. A step beyond the bound goes before the running one.
  // Only decodes with a TPOT stop it.
  int32_t max_suspended_steps = 2;
  TimeUs max_suspended_us = 10'000'000;
  DecodeSteps decode_steps = DecodeSteps::kByCost;
  // With a sharing that preempts: blocks that prompts leave free for preempting requests while
  // others run.
  int32_t express_blocks = 0;
  // With sharing kWhole: the time that decodes wait for prefills. They then take a step after the
  // running one. 0: until no prefill is left.
  TimeUs max_decode_wait_us = 0;
  DecodeSet decode_set = DecodeSet::kFill;
  Order order = Order::kFcfs;
  Execution execution = Execution::kPlain;
  Retention retention = Retention::kAll;
  Batching batching = Batching::kBudget;
  Jct jct = Jct::kMissingTokens;
  double aging = 0.1;  // sched/order/jct_order.h
  CostFit cost;
  TimeUs default_slo_us = 10'000'000;  // of requests without a deadline of their own; at least 1
  TimeUs max_late_us = 30'000'000;     // sched/order/slack_order.h; 0: unbounded
  int32_t slo_batch_tokens = 2048;     // at least 1
  TimeUs dynamic_step_us = 0;          // decode set `dynamic`: the target time of a step; 0: any
  FlockOptions flock;
  std::shared_ptr<const StopTable> flock_learned;  // the table its stop rule continues from, or
                                                   // null
  // OneShot requests that share a cold prefix compute it once, in a row of its own
  // (sched/prefix/shared_prefix.h). A request may wait for another that is computing its prefix.
  bool forests = false;
  // The longest wait for a prefix, from the first time the request could have run. 0: it never
  // waits.
  TimeUs max_prefix_wait_us = 0;
  int32_t num_kv_blocks = 0;
  int32_t max_model_len = 0;
  int32_t max_num_seqs = 0;
  int32_t max_num_batched_tokens = 0;
  int32_t num_adapters = 1;  // adapter ids are below it; 0 is the base model
  bool prefix_caching = true;
  // One sequence at a time; none of its blocks stay in the cache (KvStorage::kContiguous).
  bool contiguous_kv = false;
  // The most tokens of a prompt that must run in one row (EngineConfig::reads_whole_prompts). 0: no
  // prompt must.
  int32_t max_whole_prompt_len = 0;
  bool force_decode_path = false;
};

// The memory that the largest step needs of an executor.
struct StepBounds {
  int32_t max_tokens = 0;
  // Blocks of keys and values that are not kept.
  int32_t max_own_blocks = 0;
};
StepBounds StepBoundsOf(Retention retention, int32_t max_model_len, int32_t max_num_batched_tokens);

// The memory choices of a preset and of the options that override it. They are the members
// `execution` and `retention` of a SchedulerConfig, and the number of steps that keep state. They
// are needed before the rest of the SchedulerConfig is known. Fails as MakeSchedulerConfig does.
struct MemoryChoices {
  Execution execution = Execution::kPlain;
  Retention retention = Retention::kAll;
  Granularity granularity = Granularity::kOpTile;
  // Steps that keep state at a time: the running one and the suspended ones. If it is more than 1,
  // a step of decodes alone runs beside all of them.
  int32_t num_steps = 1;
};
Result<MemoryChoices> MemoryChoicesOf(const EngineConfig& config);

// The default token budget of a step: the largest of `usual`, max_num_seqs and the chunk size. The
// preset or `config` sets the chunk size.
int32_t UsualBatchedTokens(const EngineConfig& config, int32_t usual);

// Ok if `config` names a stop rule that learns, so that its table can be kept. Fails as
// MakeSchedulerConfig does.
Status CheckFlockLearns(const EngineConfig& config);

// The scheduler's part of `config`. Fails with kInvalidArgument, naming the member, if a value is
// out of range or the preset is unknown.
Result<SchedulerConfig> MakeSchedulerConfig(const EngineConfig& config);

}  // namespace skein
