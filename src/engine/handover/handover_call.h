#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/handover/messages.h"
#include "skein/request.h"

namespace skein {

// The engine in which a handed-over request runs (HandoverEngine draws the stages).
enum class CallStage { kPrefill, kExporting, kPeer, kLocal };

// The answer to a handed-over request. Each stage draws the answer from its beginning, and each
// token is passed on once. Thread-safe, except for the members that `mutex` guards, as comments
// say: the caller must hold `mutex` to use them.
class HandoverCall {
 public:
  // REQUIRES: `request` generates.
  HandoverCall(Request request, OutputCallback callback);

  const Request& request() const { return request_; }
  const OutputCallback& callback() const { return callback_; }

  std::mutex mutex;
  // Guarded by `mutex`.
  CallStage stage = CallStage::kPrefill;
  RequestId id = 0;        // the id for the caller
  RequestId local_id = 0;  // the id in the engine of this process
  // Begins a stage: its outputs begin with the first token again.
  void BeginStage(CallStage next);
  // Marks samples that the caller no longer reads: one sample, or all samples if `sample` is
  // negative.
  void NoteCancelled(int32_t sample);
  bool IsCancelled(int32_t sample) const { return samples_[sample].cancelled; }
  bool HasEnded(int32_t sample) const { return samples_[sample].ended; }
  bool AllEnded() const;
  // Whether there is a sample that has neither ended nor been cancelled.
  bool AnyLives() const;

  // Takes `mutex`. Returns the part of the present stage's output that the caller does not have
  // yet, if any. In the stage kPrefill, the end of a sample that has used its one token is left
  // out. Sets *differs if the tokens are not those that the caller has: the output is then useless.
  std::optional<RequestOutput> Take(RequestOutput output, TimeUs now_us, bool* differs);
  // Takes `mutex`. Whether the stage kPrefill has ended.
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
