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
  kWhole,    // a step is prefill only or decode only, prefill first; a prompt is split only where
             // it alone exceeds the token budget
  kChunked,  // decodes first, prefill chunks fill the token budget
  // Decodes first, then whole prompts; a running prefill makes way for more urgent work
  // (sched/preemption/preemption.h) and goes on later:
  kPreemptLayer,  // at the next layer
  kPreemptOp,     // at the next ticket
};
constexpr bool Preempts(Sharing sharing) {
  return sharing == Sharing::kPreemptLayer || sharing == Sharing::kPreemptOp;
}

// Where a running step can stop for more urgent work. The executor's business but for the last two.
enum class Granularity {
  kOpTile,  // between two tickets of an operator
  kOp,      // between two operators
  kLayer,   // between two layers
  kChunk,   // between two steps of a prompt that is longer than a step
  kNone,    // a prompt that has begun goes on to its end
};
// Whether a step stops before its end at all.
constexpr bool StopsSteps(Granularity granularity) { return granularity <= Granularity::kLayer; }

// With a sharing that preempts: who computes the tokens of decodes that ask for a rate while a
// prompt is computed (sched/batching/mixed_steps.h).
enum class DecodeSteps {
  kByCost,  // what the cost model takes to be cheaper; kOwn where there is none
  kOwn,     // steps of decodes alone, for which the prefill stops
  kMixed,   // the prefill's own steps, cut to the rate; needs the cost model too
};

// Who joins the running batch.
enum class DecodeSet {
  kStatic,   // request-level: a batch forms, runs until its last request has finished, and only
             // then returns its results and gives its slots to the next
  kFill,     // continuous: as many as fit, at every step
  kFlock,    // continuous: best companion first, until the stop rule says so
             // (sched/decode_set/prefix_groups.h)
  kDynamic,  // continuous: as many as memory and the time of a step allow
             // (sched/decode_set/dynamic_batch.h)
};

// Who is first among waiting requests of one priority.
enum class Order {
  kFcfs,  // first come, first served
  kFair,  // start-time fair queueing between clients (sched/order/fair_queue.h)
  // Shortest remaining job first (sched/order/jct_order.h):
  kSrjf,            // as things were when the request arrived
  kSrjfCalibrated,  // as they are, with every change of the prefix cache
  // Earliest deadline first (sched/order/slack_order.h):
  kEdf,
  kDeadlineEdf,  // who has missed it goes last
  kSlackEdf,     // so does who can no longer meet it
  // SGLang's cache-aware orders, over whole KV blocks (sched/order/radix_orders.h has them
  // literally):
  kLpm,        // the longest cached prefix first
  kDfsWeight,  // depth first over the tree of cached prefixes, the heaviest branch first
};

// By what the decode set `flock` knows companions.
enum class FlockBy {
  kPrefix,  // hashes of their prompts, in a chunked hash tree
  kRadix,   // for comparisons: their tokens, over a radix tree (sched/decode_set/radix_candidate.h)
  kUser,    // for comparisons: an oracle that is told the groups; `user` names a request's group
};

// The decode set `flock`.
struct FlockOptions {
  StopOptions stop;
  FlockBy by = FlockBy::kPrefix;
  // A request that has waited so long is overdue: it is next, whatever it shares and whatever the
  // stop rule says. At least 1.
  TimeUs max_wait_us = 10'000'000;
  int32_t blocks_per_chunk = 1;
};

// How the operators of a pass use memory. The executor's business: it changes no plan.
enum class Execution {
  kPlain,   // each goes over all of a step's tokens before the next
  kHybrid,  // all but attention go over a chunk of them at a time
            // (model/forward/workspace.h)
};

// What is kept of the keys and values of OneShot requests. Where not all of them are, a prompt is
// computed in one step, and what is not kept takes no block: it exists for one layer at a time.
enum class Retention {
  kAll,
  kPrefix,  // the longest leading part that finds blocks; the rest is discarded
  kValue,   // of that part what several of the latest prompts share, and more where a block is free
  kNone,    // what is cached already is used all the same
};

// How much prefill work goes into a step.
enum class Batching {
  kSingle,    // of one request: long prompts fill the device, and what runs alone ends first
  kSaturate,  // of as many as keep the device busy (SaturationTokens); a prompt of more tokens
              // alone
  kBudget,    // of as many as the token budget holds
  // Of as many as the most urgent one's deadline allows, up to slo_batch_tokens
  // (sched/batching/slo_batch.h).
  kSloAware,
};

// What a job's completion time is taken to be.
enum class Jct { kMissingTokens, kModel };

// The scheduler's limits and policies.
struct SchedulerConfig {
  Sharing sharing = Sharing::kChunked;
  Granularity granularity = Granularity::kOpTile;
  // Suspended steps that keep their state, with a sharing that preempts: at least 1. Beyond that
  // the least urgent one is computed again. One that has been suspended for so long in all, before
  // it was dropped, too, goes before the running one and is stopped by decodes that ask for a rate
  // only.
  int32_t max_suspended_steps = 2;
  TimeUs max_suspended_us = 10'000'000;
  DecodeSteps decode_steps = DecodeSteps::kByCost;
  // With a sharing that preempts, blocks that prompts leave free where others run, for what
  // preempts them.
  int32_t express_blocks = 0;
  // With sharing kWhole, how long decodes wait for prefills before they take a step at the end of
  // the running one; 0: until no prefill is left.
  TimeUs max_decode_wait_us = 0;
  DecodeSet decode_set = DecodeSet::kFill;
  Order order = Order::kFcfs;
  Execution execution = Execution::kPlain;
  Retention retention = Retention::kAll;
  Batching batching = Batching::kBudget;
  Jct jct = Jct::kMissingTokens;
  double aging = 0.1;  // sched/order/jct_order.h
  CostFit cost;
  TimeUs default_slo_us = 10'000'000;  // of requests that name none; at least 1
  TimeUs max_late_us = 30'000'000;     // sched/order/slack_order.h; 0: unbounded
  int32_t slo_batch_tokens = 2048;     // at least 1
  TimeUs dynamic_step_us = 0;          // decode set `dynamic`: the step's time aimed at; 0: any
  FlockOptions flock;
  std::shared_ptr<const StopTable> flock_learned;  // what its stop rule continues from, or null
  // OneShot requests that share a prefix which is not cached compute it once, in a row of its own
  // (sched/prefix/shared_prefix.h), and a request may wait for another that is computing its
  // prefix.
  bool forests = false;
  // So long at most, from the first time it could have run; 0: never.
  TimeUs max_prefix_wait_us = 0;
  int32_t num_kv_blocks = 0;
  int32_t max_model_len = 0;
  int32_t max_num_seqs = 0;
  int32_t max_num_batched_tokens = 0;
  int32_t num_adapters = 1;  // adapter ids are below it; 0 is the base model
  bool prefix_caching = true;
  // One sequence at a time, of which nothing is kept (KvStorage::kContiguous).
  bool contiguous_kv = false;
  // Tokens of a prompt that must run whole (EngineConfig::reads_whole_prompts); 0: none must.
  int32_t max_whole_prompt_len = 0;
  bool force_decode_path = false;
};

// What the largest step takes of an executor.
struct StepBounds {
  int32_t max_tokens = 0;
  // Blocks of keys and values that are not kept.
  int32_t max_own_blocks = 0;
};
StepBounds StepBoundsOf(Retention retention, int32_t max_model_len, int32_t max_num_batched_tokens);

// What a preset and the choices in place of its own say of memory: the members `execution` and
// `retention` of a SchedulerConfig and what suspended steps need, before the rest of it can be
// known. Fails as MakeSchedulerConfig.
struct MemoryChoices {
  Execution execution = Execution::kPlain;
  Retention retention = Retention::kAll;
  Granularity granularity = Granularity::kOpTile;
  // That keep state at a time: the running one and those suspended. Where that is more than one, a
  // step of decodes alone runs beside all of them.
  int32_t num_steps = 1;
};
Result<MemoryChoices> MemoryChoicesOf(const EngineConfig& config);

// Tokens of a step where nobody says how many: `usual`, or what max_num_seqs and the chunk of the
// preset or of `config` need, if that is more.
int32_t UsualBatchedTokens(const EngineConfig& config, int32_t usual);

// Ok where a stop rule learns by `config`, so that a table can be kept of it. Fails likewise.
Status CheckFlockLearns(const EngineConfig& config);

// The scheduler's part of `config`. Fails with kInvalidArgument, naming the member, where a value
// is out of range or the preset is unknown.
Result<SchedulerConfig> MakeSchedulerConfig(const EngineConfig& config);

}  // namespace skein
