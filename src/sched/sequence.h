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
#include "skein/token_grammar.h"

namespace skein {

// The class of a request. It is decided once, when the request arrives, by its effective budget.
enum class ExecutionClass {
  kOneShot,  // at most one token, or a read output: one pass over the prompt
  kDecode,   // many steps: holds a decode slot and its KV blocks
};

// The state of a sequence:
//
//                       admitted             prompt computed           last token
//   kWaiting ----------------------> kPrefilling ----------> kDecoding ----------> kFinished
//                                     ^   |   |                |  |  ^                 ^
//                          admitted   |   |   | one token      |  |  | forked         |
//                          again      |   |   +----------------|--|--|----------------+
//                                     |   | no block is left   |  |  (a further sample)
//                                     |   v for an older one   |  |
//                                    kPreempted <--------------+  |
//                                                                 v
//   from every state: cancelled ---> kFinished       logits not finite ---> kFailed
//
// A preempted sequence has given its blocks back and recomputes its tokens. A further sample that
// finds no block when it is forked starts as preempted.
enum class SequenceState { kWaiting, kPrefilling, kDecoding, kPreempted, kFinished, kFailed };

constexpr bool IsRunning(SequenceState state) {
  return state == SequenceState::kPrefilling || state == SequenceState::kDecoding;
}
constexpr bool HasEnded(SequenceState state) {
  return state == SequenceState::kFinished || state == SequenceState::kFailed;
}

struct Sequence;
struct SharedPrefix;

// The remaining work of a suspended step.
struct StepRest {
  TimeUs left_us = 0;      // predicted remaining time
  int32_t num_tokens = 0;  // tokens of one prompt that are computed when the step ends
};

// The urgency of a request by the configured order: the smaller urgency goes first.
struct Urgency {
  int32_t priority = 0;
  int64_t rank = 0;  // set by the order policy; 0 if arrival alone decides
  auto operator<=>(const Urgency&) const = default;
};

// The facts of a request that an order policy fixes at its arrival.
struct OrderMemo {
  int64_t num_tokens = 0;  // missing tokens of the prompt; 0: the policy keeps nothing
  double stretch = 0;      // wanted wait over the predicted time
  TimeUs work_us = 0;      // the predicted time that counts; 0: the remaining time
  TimeUs overdue_us = std::numeric_limits<TimeUs>::max();  // from then on it goes first, once...
  int64_t overdue_tokens = 0;  // ...the policy has counted so many computed tokens
};

// The bound on a request's wait. From `presses_us` on the request goes before all that do not
// press, by `due_us`.
struct WaitBound {
  TimeUs presses_us = std::numeric_limits<TimeUs>::max();  // the largest: it has no bound
  TimeUs due_us = 0;
  bool presses = false;  // its rank says so
};

// A request, as the scheduler stores it.
struct RequestRecord {
  RequestId id = 0;
  uint64_t arrival = 0;    // number of arrivals before this one
  Urgency urgency;         // changed by the order policy, and when other requests wait for this one
  TimeUs deadline_us = 0;  // when the answer's first token is due
  TimeUs rank_until_us = std::numeric_limits<TimeUs>::max();  // sched/order/rank_timers.h
  WaitBound wait;
  StepRest step_rest;       // of the step with its prompt, while that step is suspended
  TimeUs suspended_us = 0;  // of the last dropped step with its prompt; 0 once a later step ends
  int32_t num_missing = 0;  // tokens of the prompt to be computed, as the order last saw it
  int64_t num_charged = 0;  // Ranking::num_charged, until it is admitted
  OrderMemo memo;           // Ranking::memo
  // The cost model's prediction for the prompt when the request was first scheduled (0: no
  // prediction), and the number of that step.
  double predicted_us = 0;
  int64_t first_iteration = 0;
  TimeUs waits_for_prefix_since_us = -1;
  Request request;  // its prompt has moved into the first sequence
  int32_t prompt_len = 0;
  int32_t budget = 0;  // the most tokens of output
  ExecutionClass execution_class = ExecutionClass::kDecode;
  bool scheduled = false;  // whether it was ever admitted
  bool forked = false;     // the prompt is computed; each sample has a sequence of its own
  bool whole = false;      // the prompt must be computed in one row
  int32_t tail_len = 1;    // the last tokens of the prompt that must be computed in one row
  // The first position with a wanted log-probability that has not been delivered; prompt_len if
  // there is none. A position that is computed again does not deliver its log-probability again.
  int32_t next_prompt_logprob = 0;
  // Whether the request has a TPOT deadline, and prefills stop for decode steps of such requests.
  bool decodes_in_own_steps = false;
  int32_t decode_set_member = -1;  // its number in the decode set; -1: not there
  std::vector<bool> live;          // [num_samples]: not ended
  // [num_samples] if the request has a grammar, else empty.
  std::vector<std::unique_ptr<GrammarState>> grammar_states;
  int32_t num_live = 0;
  int32_t cached_tokens = 0;
  RequestTimes times;
  std::vector<std::unique_ptr<Sequence>> sequences;
};

// Whether another request may compute a part of the prompt's prefix. False while the request needs
// the hidden states of that part.
inline bool SharesPrefix(const RequestRecord& request) {
  return !request.whole && request.next_prompt_logprob > 1;
}

// The order of sequences: more urgent first, then earlier arrival, then lower sample.
struct SequenceKey {
  Urgency urgency;
  uint64_t arrival = 0;
  int32_t sample = 0;
  auto operator<=>(const SequenceKey&) const = default;
};

// One sample of a request. Until the prompt is computed, it stands for all samples.
struct Sequence {
  Sequence(RequestRecord* owner, int32_t its_sample, PrefixScope scope)
      : request(owner), sample(its_sample), blocks(scope) {}

  RequestRecord* request;
  int32_t sample;
  SequenceState state = SequenceState::kWaiting;
  std::vector<TokenId> tokens;  // prompt and output
  int32_t num_computed = 0;     // tokens with keys and values in `blocks`
  int32_t num_slots = 0;        // number of decode slots held
  TimeUs token_us = 0;          // when its last token was drawn
  bool in_step = false;         // in the plan that is being executed
  SequenceBlocks blocks;
  // The state in the current step:
  std::vector<DrawSpec> draws;
  const OutputSpec* read = nullptr;
  PromptLogprobsRange prompt_logprobs;
  SharedPrefix* shared_prefix = nullptr;  // until its first own tokens are computed
  size_t shared_prefix_index = 0;         // index in shared_prefix->members
  bool holds_shared_prefix = false;       // its blocks begin with those of the prefix

  SequenceId id() const { return MakeSequenceId(request->id, sample); }
  SequenceKey key() const { return {request->urgency, request->arrival, sample}; }
  bool oneshot() const { return request->execution_class == ExecutionClass::kOneShot; }
  int32_t num_remaining() const { return static_cast<int32_t>(tokens.size()) - num_computed; }
  // The most tokens that may come from the prefix cache. The tail is always computed, and so is the
  // token before the next log-probability of the prompt that is still to be delivered.
  int32_t max_cached_tokens() const {
    if (request->whole) return 0;
    const auto all_but_tail = static_cast<int32_t>(tokens.size()) - request->tail_len;
    const int32_t next = request->next_prompt_logprob;
    return next < request->prompt_len ? next - 1 : all_but_tail;
  }
  // The tokens that another request may compute for this one, and the token behind them.
  std::span<const TokenId> shareable() const {
    return std::span(tokens).first(max_cached_tokens() + 1);
  }
  // Blocks of `manager` that the sequence would need now, and the tokens that it would find cached.
  SequenceBlocks::Need NeedOf(const BlockManager& manager) const {
    return blocks.NeedOf(manager, tokens, max_cached_tokens());
  }
  // Decode slots that the sequence needs to run.
  int32_t slots_needed() const {
    if (oneshot()) return 0;
    return request->forked ? 1 : request->num_live;
  }
};

}  // namespace skein
