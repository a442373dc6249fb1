#pragma once

#include <cstdint>

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

// The rule for which waiting continuations join the running batch.
enum class DecodeSet {
  kStatic,  // request-level: a batch forms, runs until its last request has finished, and only
            // then returns its results and gives its slots to the next
  kFill,    // continuous: as many as fit, at every step
  kPrefixHomogeneous,  // continuous: best candidate first, until the stop rule ends the batch
                       // (sched/decode_set/prefix_groups.h)
  kDynamic,            // continuous: as many as memory and the time of a step allow
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
  // SGLang's cache-aware orders, over full KV blocks. bench/sched/radix_orders.h has the original
  // ones over tokens:
  kLpm,        // the longest cached prefix first
  kDfsWeight,  // depth first over the tree of cached prefixes, the heaviest branch first
  // By deadline where a request names one, else the shortest remaining job of the client with the
  // least work; no request waits for ever (sched/order/auto_order.h).
  kAuto,
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
  // kSloAware where the first prompt's deadline can still be met, else kSaturate
  // (sched/batching/auto_batch.h).
  kAuto,
};

// The granularity of a sharing that preempts, unless another is chosen.
constexpr Granularity GranularityOf(Sharing sharing) {
  return sharing == Sharing::kPreemptLayer ? Granularity::kLayer : Granularity::kOpTile;
}

// A point of the policy space: the choices that a preset makes.
struct Policies {
  Order order = Order::kFcfs;
  Batching batching = Batching::kBudget;
  Sharing sharing = Sharing::kChunked;
  Granularity granularity = Granularity::kOpTile;  // of a sharing that preempts
  DecodeSet decode_set = DecodeSet::kFill;
  Execution execution = Execution::kPlain;
  Retention retention = Retention::kAll;
  // OneShot requests that share a cold prefix compute it once, in a row of its own
  // (sched/prefix/shared_prefix.h). A request may wait for another that is computing its prefix.
  bool forests = false;
  // With sharing kWhole: the time that decodes wait for prefills. They then take a step after the
  // running one. 0: until no prefill is left.
  TimeUs max_decode_wait_us = 0;
  int32_t chunk_tokens = 0;  // of a step, in place of max_num_batched_tokens; 0: that

  bool operator==(const Policies&) const = default;
};

}  // namespace skein
