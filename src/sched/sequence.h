#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "sched/plan.h"
#include "sched/sequence_blocks.h"
#include "skein/request.h"

namespace skein {

// How long a request lives, decided once, when it arrives, on its effective budget.
enum class ExecutionClass {
  kOneShot,  // at most one token, or something read: one pass over the prompt, nothing kept
  kDecode,   // many steps: holds a decode slot and its KV blocks
};

// What a sequence is doing:
//
//                       admitted             prompt computed           last token
//   kWaiting ----------------------> kPrefilling ----------> kDecoding ----------> kFinished
//                                     ^   |   |                |  |  ^                 ^
//                          admitted   |   |   | one token      |  |  | forked         |
//                          again      |   |   +----------------|--|--|----------------+
//                                     |   | no block is left   |  |  (a further sample)
//                                     |   v for an elder       |  |
//                                    kPreempted <--------------+  |
//                                                                 v
//   from every state: cancelled ---> kFinished       logits not finite ---> kFailed
//
// A preempted sequence has given its blocks back and recomputes its tokens; a further sample that
// finds no block when it is forked starts out preempted.
enum class SequenceState { kWaiting, kPrefilling, kDecoding, kPreempted, kFinished, kFailed };

constexpr bool IsRunning(SequenceState state) {
  return state == SequenceState::kPrefilling || state == SequenceState::kDecoding;
}
constexpr bool HasEnded(SequenceState state) {
  return state == SequenceState::kFinished || state == SequenceState::kFailed;
}

struct Sequence;
struct SharedPrefix;

// What is left of a suspended step.
struct StepRest {
  TimeUs left_us = 0;      // as predicted
  int32_t num_tokens = 0;  // of one prompt that are computed when it ends
};

// How urgent a request is, by the configured order: the smaller goes first.
struct Urgency {
  int32_t priority = 0;
  int64_t rank = 0;  // what the order policy says; 0 where arrival alone decides
  auto operator<=>(const Urgency&) const = default;
};

// A request inside the scheduler.
struct RequestRecord {
  RequestId id = 0;
  uint64_t arrival = 0;    // arrivals before this one
  Urgency urgency;         // changes by the order policy, and where others wait for the request
  TimeUs deadline_us = 0;  // when the answer's first token is due
  TimeUs rank_until_us = std::numeric_limits<TimeUs>::max();  // sched/order/rank_timers.h
  StepRest step_rest;       // of the step that its prompt is in, where that is suspended
  TimeUs suspended_us = 0;  // of the step with its prompt that was dropped last, until it has ended
  int32_t num_missing = 0;  // tokens of the prompt to be computed, as the order last saw it
  int64_t num_charged = 0;  // Ranking::num_charged, until it is admitted
  // What the cost model said that its prompt would take when it was first scheduled (0: nothing),
  // and the step of that time.
  double predicted_us = 0;
  int64_t first_iteration = 0;
  TimeUs waits_for_prefix_since_us = -1;
  Request request;  // its prompt has moved into the first sequence
  int32_t prompt_len = 0;
  int32_t budget = 0;  // tokens of output, at most
  ExecutionClass execution_class = ExecutionClass::kDecode;
  bool scheduled = false;  // ever admitted
  bool forked = false;     // the prompt is computed; each sample has a sequence of its own
  bool whole = false;      // the prompt must be computed in one row
  // Another request may compute a part of its prefix: none of what it needs the hidden states of.
  bool shares_prefix = true;
  // The first position whose log-probability is wanted and has not been delivered; prompt_len where
  // there is none. What is computed again does not deliver it again.
  int32_t next_prompt_logprob = 0;
  // It asks for a TPOT, and prefills stop for steps of such decodes.
  bool decodes_in_own_steps = false;
  int32_t decode_set_member = -1;  // its number in the decode set; -1: not there
  std::vector<bool> live;          // [num_samples]: not ended
  int32_t num_live = 0;
  int32_t cached_tokens = 0;
  RequestTimes times;
  std::vector<std::unique_ptr<Sequence>> sequences;
};

// Who goes first: the more urgent, then earlier arrival, then lower sample.
struct SequenceKey {
  Urgency urgency;
  uint64_t arrival = 0;
  int32_t sample = 0;
  auto operator<=>(const SequenceKey&) const = default;
};

// One sample of a request, or all of them until the prompt is computed.
struct Sequence {
  Sequence(RequestRecord* owner, int32_t its_sample, PrefixScope scope)
      : request(owner), sample(its_sample), blocks(scope) {}

  RequestRecord* request;
  int32_t sample;
  SequenceState state = SequenceState::kWaiting;
  std::vector<TokenId> tokens;  // prompt and output
  int32_t num_computed = 0;     // tokens whose KV is in `blocks`
  int32_t num_slots = 0;        // decode slots held
  TimeUs token_us = 0;          // when its last token was drawn
  bool in_step = false;         // in the plan now being executed
  SequenceBlocks blocks;
  // Of the current step:
  std::vector<DrawSpec> draws;
  const OutputSpec* read = nullptr;
  PromptLogprobsRange prompt_logprobs;
  SharedPrefix* shared_prefix = nullptr;  // until its first own tokens are computed
  size_t shared_prefix_index = 0;         // in shared_prefix->members
  bool holds_shared_prefix = false;       // its blocks begin with those of the prefix

  SequenceId id() const { return MakeSequenceId(request->id, sample); }
  SequenceKey key() const { return {request->urgency, request->arrival, sample}; }
  bool oneshot() const { return request->execution_class == ExecutionClass::kOneShot; }
  int32_t num_remaining() const { return static_cast<int32_t>(tokens.size()) - num_computed; }
  // How many of its tokens may come from the prefix cache: the last is always computed, and so is
  // what precedes a log-probability that is still to be delivered.
  int32_t max_cached_tokens() const {
    if (request->whole) return 0;
    const auto all_but_last = static_cast<int32_t>(tokens.size()) - 1;
    const int32_t next = request->next_prompt_logprob;
    return next < request->prompt_len ? next - 1 : all_but_last;
  }
  // What another may compute for it, and the token behind that.
  std::span<const TokenId> shareable() const {
    return std::span(tokens).first(max_cached_tokens() + 1);
  }
  // Blocks that it would need of `manager` now, and what it would find cached.
  SequenceBlocks::Need NeedOf(const BlockManager& manager) const {
    return blocks.NeedOf(manager, tokens, max_cached_tokens());
  }
  // Decode slots it needs to run.
  int32_t slots_needed() const {
    if (oneshot()) return 0;
    return request->forked ? 1 : request->num_live;
  }
};

}  // namespace skein
