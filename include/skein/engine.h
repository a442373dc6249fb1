#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "skein/engine_view.h"
#include "skein/request.h"
#include "skein/status.h"

namespace skein {

struct EngineLimits {
  int32_t vocab_size = 0;
  int32_t max_model_len = 0;  // tokens: prompt and output together
  int32_t max_num_seqs = 0;   // samples decoded at once; also the limit of num_samples
  int32_t max_logprobs = 0;
  int32_t max_queued_requests = 0;
  // The most tokens of a prompt whose output needs all its hidden states in one pass (mean pooling,
  // encoders). 0: prompts are not read whole.
  int32_t max_whole_prompt_len = 0;
  // For any other prompt: the most tokens from the first that a DecideSpec reads to the end.
  int32_t max_tail_len = 0;
  // The outputs of the model.
  bool generates = true;  // GenerateSpec, LabelSpec, prompt log-probabilities
  bool embeds = false;
  bool classifies = false;
  bool decides = false;     // the answers of DecideSpec
  int32_t num_actions = 0;  // of a decision model
};

// The number of relative errors up to each of EngineStats::kErrorBounds, and above the last one.
struct ErrorHistogram {
  std::array<uint64_t, 21> counts{};
  double sum = 0;
};

// Counters since the start, and current gauges. The unit is tokens unless the name says otherwise.
struct EngineStats {
  // Gauges.
  int32_t num_requests_waiting = 0;
  int32_t num_requests_running = 0;
  // Bit i is set if adapter i + 1 has a running request, or a waiting one. Only the first 64
  // adapters are shown.
  uint64_t running_adapters = 0;
  uint64_t waiting_adapters = 0;
  int32_t kv_blocks_total = 0;
  int32_t kv_blocks_used = 0;        // referenced by a request
  int32_t kv_blocks_cached = 0;      // held by the prefix cache alone; evictable
  int32_t host_kv_blocks_total = 0;  // blocks that the memory of the host has room for
  int32_t host_kv_blocks_used = 0;   // of those, with the contents of an evicted block
  // Decode set `prefix-homogeneous`: the length of the prefix that the whole batch shares.
  int64_t prefix_groups_shared_tokens = 0;
  // Counters.
  uint64_t prompt_tokens = 0;         // tokens of prompts, computed or cached
  uint64_t decode_prompt_tokens = 0;  // those of Decode-class requests
  uint64_t generation_tokens = 0;
  uint64_t prefix_cache_queries = 0;
  uint64_t prefix_cache_hits = 0;
  uint64_t host_kv_blocks_saved = 0;   // evicted blocks that were copied to the host
  uint64_t host_kv_blocks_loaded = 0;  // blocks that were copied back
  uint64_t num_preemptions = 0;        // recomputations because KV ran out
  uint64_t shared_prefixes = 0;        // computed once for several OneShot requests (forests)
  uint64_t shared_prefix_tokens = 0;   // tokens that requests took from those prefixes
  uint64_t prefix_waits = 0;           // requests that waited while another computed their prefix
  uint64_t calls_refused = 0;          // by Submit and SubmitGroup, for the length of the queue
  uint64_t calls_refused_early = 0;    // by CheckWait
  uint64_t requests_oneshot = 0;       // finished requests, by execution class
  uint64_t requests_decode = 0;
  uint64_t decode_slots_taken = 0;   // slots that the decode set assigned; OneShot takes none
  uint64_t wasted_decode_slots = 0;  // slot-steps held by finished requests (request level)
  // On a prefill instance: requests that its decode peer took, those of them that ran here in the
  // end, and KV blocks that were sent.
  uint64_t requests_handed_over = 0;
  uint64_t requests_taken_back = 0;
  uint64_t handover_blocks = 0;
  // Decode set `prefix-homogeneous`: requests that joined the batch, those of them that were
  // overdue, and rounds in which the stop rule let no (further) request join.
  uint64_t prefix_groups_joined = 0;
  uint64_t prefix_groups_overdue = 0;
  uint64_t prefix_groups_stops = 0;
  uint64_t steps_oneshot = 0;  // steps, by class of plan
  uint64_t steps_mixed = 0;
  uint64_t steps_decode = 0;
  // Steps that a preempting sharing rule stopped for more urgent work, then resumed, or dropped. A
  // dropped step is computed again, unless no request waits for it any more.
  uint64_t steps_preempted = 0;
  uint64_t steps_resumed = 0;
  uint64_t steps_dropped = 0;
  // The time from a signal that stops the running step to its standstill, and the number of
  // signals.
  uint64_t blocking_us = 0;
  uint64_t max_blocking_us = 0;
  uint64_t signals = 0;
  // The delays of threads that had to wake; blocking_us does not contain them. The engine's thread
  // wakes for an arrival, the alarm's thread when a running step must stop.
  uint64_t wakeups = 0;
  uint64_t wakeup_us = 0;  // from the arrival or the set time until the thread runs
  uint64_t max_wakeup_us = 0;
  uint64_t rounds = 0;  // scheduling rounds, and by their cause:
  uint64_t rounds_arrival = 0;
  uint64_t rounds_cancellation = 0;
  uint64_t rounds_timer = 0;
  uint64_t rounds_completion = 0;
  uint64_t scheduler_us = 0;  // time spent in scheduling rounds
  uint64_t prefill_us = 0;    // time in steps without decode rows
  uint64_t decode_us = 0;     // time in steps with decode rows only
  uint64_t mixed_us = 0;      // time in steps with decode rows and prefills
  // The histogram of tokens per step: counts of steps with at most 1, 8, 16, 32, ..., 16384 tokens,
  // and with more.
  static constexpr std::array<int32_t, 13> kIterationTokenBounds = {
      1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
  std::array<uint64_t, 14> iteration_tokens{};
  uint64_t iteration_tokens_sum = 0;
  // The errors |predicted / real - 1| of the time from a request's first step to its first token,
  // if there is a cost model. One histogram is for requests that had the device to themselves. The
  // other is for all other requests: their steps held more than the predicted work.
  static constexpr std::array<double, 20> kErrorBounds = {
      0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1,
      0.125, 0.15, 0.2,   0.25, 0.3,  0.4,  0.5,  0.75, 1,    2};
  ErrorHistogram ttft_error_alone;
  ErrorHistogram ttft_error_shared;
};

// The serving engine: takes tokenized requests, answers with tokens.
// Thread rule: every member may be called from any thread.
class Engine {
 public:
  virtual ~Engine() = default;

  // Checks the request against the limits and queues it. On success `*id` is its id, and `callback`
  // gets the request's outputs until each sample has finished. Fails with kInvalidArgument (naming
  // the field in the API's spelling), kResourceExhausted (queue full) or kUnavailable (shut down);
  // the callback is then never called.
  virtual Status Submit(Request request, OutputCallback callback, RequestId* id) = 0;

  // Submits requests that belong together (GroupSpec), all or none. They are scheduled as if they
  // had arrived at one time, in order. `callback` gets the outputs of all of them. `*ids` gets one
  // id for each. Fails as Submit does. An invalid member fails the group, and `message` begins with
  // the member's index.
  virtual Status SubmitGroup(std::vector<Request> requests, OutputCallback callback,
                             std::vector<RequestId>* ids) = 0;

  // Fails with kResourceExhausted if Submit would now refuse the request for its wait, whatever its
  // prompt of at most `max_prompt_len` tokens. `request` has all but its prompt. So the caller need
  // not make the prompt of a request that would be refused. Ok decides nothing: Submit checks
  // again.
  virtual Status CheckWait(const Request& /*request*/, int64_t /*max_prompt_len*/) {
    return Status::Ok();
  }

  // Ends a request (all its samples, with kCancelled) within one step. Unknown ids are ignored.
  virtual void Cancel(RequestId id) = 0;
  // Ends one sample of a request, which the client no longer reads (because a stop string matched).
  virtual void CancelSample(RequestId id, int32_t sample) = 0;

  virtual EngineLimits Limits() const = 0;
  virtual EngineStats Stats() const = 0;
  // Hands the state of the scheduler to `done`, on the engine's thread, as soon as the running step
  // ends or can be stopped; `done` must not block. Fails with kUnsupported if the engine has no
  // scheduler, kUnavailable after the shutdown, and kResourceExhausted if too many calls wait for
  // the state.
  virtual Status View(std::function<void(EngineView)> /*done*/) {
    return {StatusCode::kUnsupported, "this engine has no scheduler to look into"};
  }
};

}  // namespace skein
