#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/handover/messages.h"
#include "skein/request.h"

namespace skein {

// The engine that a handed-over request runs in (HandoverEngine draws the stages).
enum class CallStage { kPrefill, kExporting, kPeer, kLocal };

// The answer to a handed-over request: it is drawn from its beginning in every stage, and each of
// its tokens is passed on once. Thread-safe, but for `mutex`, which the caller holds where a
// comment says so.
class HandoverCall {
 public:
  // REQUIRES: `request` generates.
  HandoverCall(Request request, OutputCallback callback);

  const Request& request() const { return request_; }
  const OutputCallback& callback() const { return callback_; }

  std::mutex mutex;
  // Guarded by `mutex`.
  CallStage stage = CallStage::kPrefill;
  RequestId id = 0;        // for the caller
  RequestId local_id = 0;  // in the engine of this process
  // The next outputs begin with the first token again.
  void BeginStage(CallStage next);
  // Marks samples that the caller no longer reads; all of them if `sample` is negative.
  void NoteCancelled(int32_t sample);
  bool IsCancelled(int32_t sample) const { return samples_[sample].cancelled; }
  bool HasEnded(int32_t sample) const { return samples_[sample].ended; }
  bool AllEnded() const;
  // Whether a sample has neither ended nor been cancelled.
  bool AnyLives() const;

  // Takes `mutex`. The part of an output of the present stage that the caller does not have yet, if
  // any. In the stage kPrefill the end of a sample that has used its one token is none. *differs:
  // the tokens are not those that the caller has, and the output is of no use.
  std::optional<RequestOutput> Take(RequestOutput output, TimeUs now_us, bool* differs);
  // Takes `mutex`. Whether the stage kPrefill is over.
  bool IsPrefilled();

 private:
  struct Sample {
    std::vector<TokenId> delivered;
    size_t num_seen = 0;  // tokens in the present stage
    bool prefilled = false;
    bool cancelled = false;
    bool ended = false;
  };

  const Request request_;
  const OutputCallback callback_;
  std::vector<Sample> samples_;
  RequestTimes times_;  // of the prefill
  int32_t cached_tokens_ = 0;
};

}  // namespace skein
