#pragma once

#include <cstdint>

#include "skein/request.h"

namespace skein {

// How prefill and decode share the device.
enum class Sharing {
  kWhole,    // a step is prefill only or decode only, prefill first; a prompt is split only if it
             // alone exceeds the token budget
  kChunked,  // decodes first, prefill chunks fill the token budget
  // Decodes first, then complete prompts. A running prefill stops for more urgent work
  // (sched/preemption/preemption.h) and goes on later:
  kPreemptLayer,  // stops at the next layer
  kPreemptOp,     // stops at the next ticket
};
constexpr bool Preempts(Sharing sharing) {
  return sharing == Sharing::kPreemptLayer || sharing == Sharing::kPreemptOp;
}

// The boundaries at which a running step can stop for more urgent work. Only the executor uses
// these values, except for kChunk and kNone.
enum class Granularity {
  kOpTile,  // between two tickets of an operator
  kOp,      // between two operators
  kLayer,   // between two layers
  kChunk,   // between two steps of a prompt that is longer than a step
  kNone,    // never: a started prompt goes on to its end
};
// Whether a step can stop before its end.
constexpr bool StopsSteps(Granularity granularity) { return granularity <= Granularity::kLayer; }

// The rule for which waiting continuations join the running batch.
enum class DecodeSet {
  kStatic,  // request-level: a batch runs until its last request has finished; only then it returns
            // its results and gives its slots to the next batch
  kFill,    // continuous: as many requests as fit, at every step
  kPrefixHomogeneous,  // continuous: best candidate first, until the stop rule ends the batch
                       // (sched/decode_set/prefix_groups.h)
  kDynamic,            // continuous: as many requests as memory and the time of a step allow
                       // (sched/decode_set/dynamic_batch.h)
};

// The order of waiting requests of the same priority.
enum class Order {
  kFcfs,  // first come, first served
  kFair,  // start-time fair queueing between clients (sched/order/fair_queue.h)
  // Shortest remaining job first (sched/order/jct_order.h):
  kSrjf,            // ranked once, by the prefix cache at the request's arrival
  kSrjfCalibrated,  // ranked again at every change of the prefix cache
  // Earliest deadline first (sched/order/slack_order.h):
  kEdf,
  kDeadlineEdf,  // requests that have missed their deadline go last
  kSlackEdf,     // requests that can no longer meet their deadline go last, too
  // SGLang's cache-aware orders, over full KV blocks. bench/sched/radix_orders.h has the original
  // orders over tokens:
  kLpm,        // the longest cached prefix first
  kDfsWeight,  // depth first over the tree of cached prefixes, the heaviest branch first
  // Requests with a deadline are ordered by deadline. Among the others, the client with the least
  // work goes first, with its shortest remaining job. No request waits for ever
  // (sched/order/auto_order.h).
  kAuto,
};

// How the operators of a pass use memory. Only the executor uses it: it changes no plan.
enum class Execution {
  kPlain,   // each operator computes all tokens of a step before the next operator
  kHybrid,  // all operators but attention compute one chunk of tokens at a time
            // (model/forward/workspace.h)
};

// The part of the keys and values of OneShot requests that is kept. Unless all are kept, a prompt
// is computed in one step. Keys and values that are not kept take no block: they exist for one
// layer at a time.
enum class Retention {
  kAll,
  kPrefix,  // the longest leading part that finds blocks; the rest is discarded
  kValue,   // of that part, the tokens that several of the latest prompts share, and further tokens
            // while blocks are free
  kNone,    // nothing; blocks that are cached already are still used
};

// How much prefill work goes into a step.
enum class Batching {
  kSingle,    // of one request: long prompts fill the device, and a request that runs alone ends
              // earlier
  kSaturate,  // of as many requests as keep the device busy (SaturationTokens); a longer prompt
              // runs alone
  kBudget,    // of as many requests as the token budget holds
  // As many requests as the deadline of the most urgent one allows, up to slo_batch_tokens
  // (sched/batching/slo_batch.h).
  kSloAware,
  // As kSloAware if the first prompt's deadline can still be met, else as kSaturate
  // (sched/batching/auto_batch.h).
  kAuto,
};

// The granularity of a preempting sharing rule, unless another granularity is chosen.
constexpr Granularity GranularityOf(Sharing sharing) {
  return sharing == Sharing::kPreemptLayer ? Granularity::kLayer : Granularity::kOpTile;
}

// A point of the policy space: the choices that a preset makes.
struct Policies {
  Order order = Order::kFcfs;
  Batching batching = Batching::kBudget;
  Sharing sharing = Sharing::kChunked;
  Granularity granularity = Granularity::kOpTile;  // of a preempting sharing rule
  DecodeSet decode_set = DecodeSet::kFill;
  Execution execution = Execution::kPlain;
  Retention retention = Retention::kAll;
  // A cold prefix that several OneShot requests share is computed once, in its own row
  // (sched/prefix/shared_prefix.h). A request may wait for another that is computing its prefix.
  bool forests = false;
  // With sharing kWhole: the longest time that decodes wait for prefills. After this time, they
  // take the step after the running one. 0: they wait until no prefill is left. If waiting is
  // bounded (EngineConfig::max_wait_us), decodes do not wait as long.
  TimeUs max_decode_wait_us = 0;
  int32_t chunk_tokens = 0;  // of a step, instead of max_num_batched_tokens; 0:
                             // max_num_batched_tokens

  bool operator==(const Policies&) const = default;
};

}  // namespace skein
